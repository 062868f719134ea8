import multiprocessing
from multiprocessing.synchronize import Event

import pytest
import torch

from effbench.distributed.launch import RankError
from effbench.errors import Conflict, InvalidTechnique
from effbench.meters import flop_of_a_step
from effbench.models import mlp
from effbench.optimizers import sgd
from effbench.recipe import Recipe
from effbench.techniques import compose
from effbench_techniques.model_centric.curriculum.progressive_stacking import progressive_stacking
from effbench_techniques.optimization_centric.averaged_weights.ema import ema
from effbench_techniques.system_centric.model.ssp import ssp
from ranks import counted, distance, evaluated, on_all_ranks
from toy import CLASSES, images, run, same, tokens, vectors

KNOWN = {each.name: each for each in (ssp, ema, progressive_stacking)}
SGD = sgd(0.1, momentum=0.9, weight_decay=0.01)
TOLERANCE = 1e-6


@pytest.mark.parametrize("processes", [3, 4])
@pytest.mark.parametrize("toy", [vectors, tokens])
def test_without_staleness_it_is_data_parallelism(toy, processes: int) -> None:
    recipe = toy(optimizer=SGD)
    assert distance(ssp.apply(recipe, {"processes": processes, "staleness": 0}), recipe) < TOLERANCE


@pytest.mark.parametrize("staleness", [0, 2])
def test_one_worker_sees_its_own_changes_at_once(staleness: int) -> None:
    recipe = tokens(optimizer=SGD)
    assert distance(ssp.apply(recipe, {"processes": 2, "staleness": staleness}), recipe, steps=7) < TOLERANCE


def held_up(recipe: Recipe, until: Event) -> Recipe:
    """Let the second worker begin its second step when it is told to."""

    def gradient(training, batch):
        if training.group.rank == 2 and training.step == 1:
            assert until.wait(60)
        return recipe.gradient(training, batch)

    return recipe.wrap(gradient=gradient)


def gaps(training) -> dict[int, int]:
    if training.group.rank:
        return {}
    seen = dict(training.kept["ssp"]["gaps"])
    assert training.measured == {"largest_clock_gap_steps": max(seen)}
    return seen


@pytest.mark.parametrize("staleness", [0, 1, 3])
def test_no_two_workers_are_further_apart_than_it_says(staleness: int) -> None:
    """The second worker waits until the server has seen the first as far ahead as it may be."""
    told = multiprocessing.get_context("fork").Event()
    recipe = ssp.apply(vectors(), {"staleness": staleness})

    def look(training) -> None:  # on the server after the first round, while it serves no one, and on the first worker
        if training.group.rank == 1 and training.step == staleness + 1:
            told.set()

    seen = on_all_ranks(held_up(recipe, told), gaps, steps=12, look=look)[0]
    assert sum(seen.values()) == 2 * 12
    assert max(seen) <= staleness
    assert max(seen) >= staleness - 1


def test_with_staleness_beyond_all_steps_nobody_waits() -> None:
    """The first worker takes all its steps while the second stands at its second."""
    told = multiprocessing.get_context("fork").Event()
    recipe = ssp.apply(vectors(), {"staleness": 100})

    def look(training) -> None:
        if training.group.rank == 1 and training.step == 12:
            told.set()

    seen = on_all_ranks(held_up(recipe, told), gaps, steps=12, look=look)[0]
    assert sum(seen.values()) == 2 * 12
    assert max(seen) in {9, 10}  # as the last change of the first, or the second of the second, comes in before


def test_reads_are_as_rare_as_staleness_allows() -> None:
    size = 4 * (2 + sum(tensor.numel() for tensor in mlp(6, CLASSES, width=8, depth=2).parameters()))
    for staleness, reads in ((0, 12), (1, 6), (4, 2)):
        server, worker = counted(ssp.apply(vectors(), {"processes": 2, "staleness": staleness}), steps=12)
        assert server["send"] == (reads * size, reads)
        assert worker["send"] == (13 * size, 13)  # the last says that it is done


def test_batch_statistics_are_common_too() -> None:
    def statistics(training) -> torch.Tensor:
        buffers = training.recipe.eval_model(training).buffers()
        return torch.cat([buffer.flatten() for buffer in buffers if buffer.is_floating_point()])

    server, *workers = on_all_ranks(ssp.apply(images(), {"staleness": 0}), statistics)
    assert torch.allclose(server, workers[0])
    assert torch.equal(*workers)


def test_a_worker_that_dies_ends_the_trial_with_its_own_story() -> None:
    recipe = ssp.apply(vectors(), {})

    def gradient(training, batch):
        if training.group.rank == 2 and training.step == 2:
            raise ZeroDivisionError("found on the way")
        return recipe.gradient(training, batch)

    with pytest.raises(RankError, match="ZeroDivisionError: found on the way"):
        on_all_ranks(recipe.wrap(gradient=gradient), evaluated)


@pytest.mark.parametrize("staleness", [0, 2])
def test_meters_may_take_more_steps_when_all_is_over(staleness: int) -> None:
    recipe = ssp.apply(vectors(), {"staleness": staleness})
    first, *others = on_all_ranks(recipe, lambda training: [flop_of_a_step(training) for _ in range(3)])
    assert others == [first] * 2
    assert first[0] == first[2] > 0.0


def test_one_process_is_the_baseline() -> None:
    assert same(run(ssp.apply(tokens(), {"processes": 1})).model, run(tokens()).model)


def test_what_it_refuses() -> None:
    with pytest.raises(InvalidTechnique, match="staleness is -1; it should be 0 or more steps"):
        ssp.apply(vectors(), {"staleness": -1})
    with pytest.raises(Conflict, match="ema would look at those of a worker"):
        compose(vectors(), {"ema": {}, "ssp": {}}, KNOWN)
    with pytest.raises(Conflict, match="progressive_stacking would do something to all of them at once"):
        compose(tokens(), {"progressive_stacking": {}, "ssp": {}}, KNOWN)
