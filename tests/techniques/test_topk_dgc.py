import pytest
import torch

from effbench.errors import Conflict, InvalidTechnique
from effbench.optimizers import sgd
from effbench.techniques import compose
from effbench_techniques.optimization_centric.objective.sam import sam
from effbench_techniques.system_centric.optimization.topk_dgc import Waiting, share_at, topk_dgc
from ranks import distance, evaluated, gradients, on_all_ranks
from toy import run, same, tokens, vectors

MOMENTUM = sgd(0.1, momentum=0.9, weight_decay=0.01)
DENSE = {"share": 1.0, "masking": False}


@pytest.mark.parametrize("toy", [vectors, tokens])
def test_all_numbers_at_once_are_plain_data_parallelism(toy) -> None:
    for optimizer in (MOMENTUM, sgd(0.1, momentum=0.9, weight_decay=0.0, nesterov=True)):
        recipe = toy(optimizer=optimizer)
        assert distance(topk_dgc.apply(recipe, DENSE), recipe) < 1e-6


def test_another_optimizer_keeps_its_momentum() -> None:
    def adamw(model) -> torch.optim.Optimizer:
        return torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-4)  # or it divides rounding errors by nothing

    recipe = tokens(optimizer=adamw)
    assert distance(topk_dgc.apply(recipe, DENSE), recipe) < 1e-6


def test_what_is_sent_and_what_waits_add_up_to_the_gradient() -> None:
    def waits(training) -> torch.Tensor:
        waiting = training.kept.get("topk_dgc", {})
        parameters = training.model.parameters()
        return torch.cat([waiting[p].total.flatten() if waiting else torch.zeros(p.numel()) for p in parameters])

    ours, whole = (gradients(recipe, waits) for recipe in (topk_dgc.apply(tokens(), {"share": 0.02}), tokens()))
    torch.testing.assert_close(ours, whole, rtol=1e-5, atol=1e-6)


def waiting(*numbers: float) -> Waiting:
    return Waiting(torch.zeros(len(numbers)), torch.tensor(numbers))


def test_the_largest_are_sent_and_what_is_left_waits() -> None:
    before = waiting(1.0, -5.0, 3.0, -2.0, 0.5)
    numbers, positions = before.take(0.4, masking=True)
    assert dict(zip(positions.tolist(), numbers.tolist(), strict=True)) == {1: -5.0, 2: 3.0}
    assert before.total.tolist() == [1.0, 0.0, 0.0, -2.0, 0.5]  # sent + rest = all, exactly
    numbers, _ = waiting(1.0, 2.0, 3.0).take(0.01, masking=True)
    assert numbers.tolist() == [3.0]  # one at the least


def test_momentum_adds_up_as_in_the_paper_and_is_forgotten_where_it_was_sent() -> None:
    """Algorithm 4: u = m u + g, v = v + u; what is sent leaves both."""
    state, parameter = waiting(0.0, 0.0), torch.tensor([10.0, 10.0])
    rule = {"local": {"momentum": 0.5, "weight_decay": 0.1, "nesterov": False}}
    u, v = torch.zeros(2), torch.zeros(2)
    for slope in (torch.tensor([1.0, 4.0]), torch.tensor([2.0, -1.0])):
        state.add(parameter, slope, rule)
        u = 0.5 * u + slope + 0.1 * parameter
        v = v + u
    torch.testing.assert_close(state.total, v)
    torch.testing.assert_close(state.velocity, u)
    _, positions = state.take(0.5, masking=True)
    kept = 1 - int(positions)
    assert state.velocity[positions] == 0.0
    assert state.velocity[kept] == u[kept]
    unmasked = waiting(1.0, 2.0)
    unmasked.velocity.fill_(7.0)
    unmasked.take(0.5, masking=False)
    assert unmasked.velocity.tolist() == [7.0, 7.0]


def test_the_share_falls_exponentially_from_a_quarter() -> None:
    shares = [share_at(progress, 0.001, 0.4) for progress in (0.0, 0.1, 0.2, 0.3, 0.4, 1.0)]
    ratio = (0.001 / 0.25) ** 0.25
    assert shares == pytest.approx([0.25, 0.25 * ratio, 0.25 * ratio**2, 0.25 * ratio**3, 0.001, 0.001])
    assert share_at(0.0, 0.5, 0.4) == 0.5


def test_bytes_are_eight_for_each_number_that_is_sent() -> None:
    recipe = topk_dgc.apply(vectors(), {"share": 0.1, "warmup": 0.0, "processes": 3})
    sent = on_all_ranks(recipe, lambda training: training.group.wire.traffic.so_far()["all_gather"].bytes, steps=4)
    numbers = sum(-(-p.numel() // 10) for p in vectors().model().parameters())
    once = on_all_ranks(recipe, lambda training: training.group.wire.traffic.so_far()["all_gather"].bytes, steps=3)
    assert [more - less for more, less in zip(sent, once, strict=True)] == [2 * 8 * numbers] * 3  # to each of 2 others


def test_ranks_agree_and_learn() -> None:
    recipe = vectors(optimizer=MOMENTUM)

    def told(training) -> tuple[list[float], float]:
        everything = recipe.loader(torch.arange(64), training)
        return evaluated(training).tolist(), recipe.loss(training.model(everything.inputs), everything).mean().item()

    (one, late), (other, _) = on_all_ranks(topk_dgc.apply(recipe, {"share": 0.1}), told, steps=100)
    assert one == other
    _, early = on_all_ranks(recipe, told, steps=1)[0]
    assert late < 0.8 * early


def test_one_process_is_the_baseline() -> None:
    assert same(run(topk_dgc.apply(tokens(), {"processes": 1})).model, run(tokens()).model)


def test_it_refuses_what_it_cannot_do() -> None:
    for options, why in (
        ({"share": 0.0}, "share is 0.0"),
        ({"share": 1.5}, "share is 1.5"),
        ({"warmup": 2.0}, "warmup is"),
    ):
        with pytest.raises(InvalidTechnique, match=why):
            topk_dgc.apply(vectors(), options)
    with pytest.raises(Conflict, match="topk_dgc and sam exclude each other: it takes two gradients"):
        compose(vectors(), {"topk_dgc": {}, "sam": {}}, {"topk_dgc": topk_dgc, "sam": sam})
