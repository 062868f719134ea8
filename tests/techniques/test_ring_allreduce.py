import pytest
import torch
import torch.distributed as dist

from effbench.distributed.group import Group
from effbench.distributed.launch import run_ranks
from effbench.errors import InvalidTechnique, NotApplicable
from effbench.optimizers import sgd
from effbench.techniques import compose
from effbench_techniques.optimization_centric.large_batch.gradient_accumulation import gradient_accumulation
from effbench_techniques.optimization_centric.objective.sam import sam
from effbench_techniques.system_centric.optimization.ring_allreduce import ring, ring_allreduce
from ranks import distance, on_all_ranks
from toy import run, same, tokens, vectors

KNOWN = {technique.name: technique for technique in (ring_allreduce, sam, gradient_accumulation)}
SGD = sgd(0.1, momentum=0.9, weight_decay=0.01)
TOLERANCE = 1e-6


def sums(ranks: int, elements: int) -> list[tuple[torch.Tensor, torch.Tensor, float]]:
    """What the ring makes of random numbers, what torch's all-reduce does, and the bytes that each rank sends."""

    def body(group: Group) -> list[tuple[torch.Tensor, torch.Tensor, float]]:
        mine = torch.randn(elements, generator=torch.Generator().manual_seed(group.rank))
        other = mine.clone()
        before = group.wire.traffic.so_far()
        ring(mine)
        sent = group.wire.traffic.since(before)
        assert set(sent) <= {"send"}
        dist.all_reduce(other)
        return group.gather((mine, other, sent["send"].bytes if sent else 0.0))

    return run_ranks(ranks, body)


@pytest.mark.parametrize(("ranks", "elements"), [(2, 12), (2, 7), (3, 12), (4, 13), (4, 2)])
def test_the_sum_is_that_of_torch_and_the_same_on_all_ranks(ranks: int, elements: int) -> None:
    found = sums(ranks, elements)
    for mine, other, _ in found:
        assert torch.equal(mine, found[0][0])
        if ranks == 2:
            assert torch.equal(mine, other)
        torch.testing.assert_close(mine, other, rtol=1e-6, atol=1e-6)
    # 2 (N - 1) / N of the size for each rank, exactly where it can be divided, and always on the average
    size = 4 * elements
    assert sum(sent for *_, sent in found) == 2 * (ranks - 1) * size
    if elements % ranks == 0:
        assert [sent for *_, sent in found] == [2 * (ranks - 1) / ranks * size] * ranks


@pytest.mark.parametrize("processes", [2, 3])
@pytest.mark.parametrize("toy", [vectors, tokens])
def test_several_processes_train_the_weights_of_one(toy, processes: int) -> None:
    recipe = toy(optimizer=SGD, batch_size=lambda progress: 7)
    assert distance(ring_allreduce.apply(recipe, {"processes": processes}), recipe) < TOLERANCE


@pytest.mark.parametrize("other", [{"sam": {}}, {"gradient_accumulation": {"micro_batches": 2}}])
def test_every_gradient_is_averaged_and_micro_batches_once(other) -> None:
    recipe = tokens(optimizer=SGD)
    ours = compose(recipe, {"ring_allreduce": {}, **other}, KNOWN)[0]
    assert distance(ours, compose(recipe, other, KNOWN)[0]) < TOLERANCE


def test_a_step_sends_the_gradient_around_the_ring_whatever_the_number_of_micro_batches() -> None:
    recipe = vectors()
    size = 4 * sum(p.numel() for p in recipe.model().parameters())
    for others in ({}, {"gradient_accumulation": {"micro_batches": 2}}):
        ours = compose(recipe, {"ring_allreduce": {}, **others}, KNOWN)[0]
        sent = on_all_ranks(ours, lambda training: training.group.wire.traffic.so_far()["send"].bytes, steps=3)
        assert sum(sent) == 3 * 2 * size


def test_one_process_is_the_baseline() -> None:
    assert same(run(ring_allreduce.apply(tokens(), {"processes": 1})).model, run(tokens()).model)


def test_it_refuses_more_processes_than_examples() -> None:
    with pytest.raises(NotApplicable, match="9 processes share batches of 8 examples"):
        ring_allreduce.apply(vectors(), {"processes": 9})
    with pytest.raises(InvalidTechnique, match="ring_allreduce: processes is 0"):
        ring_allreduce.apply(vectors(), {"processes": 0})
