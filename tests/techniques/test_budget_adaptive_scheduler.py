from itertools import pairwise

import pytest

from effbench.clock import ExampleClock
from effbench.errors import InvalidTechnique
from effbench.optimizers import sgd
from effbench.recipe import Recipe, Training
from effbench_techniques.budgeted_training.training.budget_adaptive_scheduler import budget_adaptive_scheduler
from toy import images, run, same, spend, tokens, vectors


class Machine:
    """A clock of seconds: an example takes 1/8 of one, times how slow the machine is at the time, plus an overhead."""

    def __init__(self, slow=lambda seconds: 1.0, overhead: float = 0.0) -> None:
        self.slow, self.overhead, self.seconds, self.steps = slow, overhead, 0.0, 0
        self.lasted: list[float] = []

    def spent(self, training: Training) -> float:
        if training.step > self.steps:
            self.steps = training.step
            self.lasted.append((0.125 * len(training.losses) + self.overhead) * self.slow(self.seconds))
            self.seconds += self.lasted[-1]
        return self.seconds


def halfway(factor: float):
    return lambda seconds: factor if seconds >= 40.0 else 1.0


def trained(recipe: Recipe, machine: Machine, budget: str = "80s") -> tuple[Training, list[int], list[float]]:
    """Train; return also the examples of every step, and its rate as a share of the peak."""
    sizes, rates = [], []

    def look(training: Training) -> None:
        group = training.optimizer.param_groups[0]
        sizes.append(len(training.losses))
        rates.append(group["lr"] / group["initial_lr"])

    return spend(recipe, budget, machine, look=look), sizes, rates


@pytest.mark.parametrize("make", [vectors, images, tokens])
def test_where_every_step_costs_the_same_it_is_the_baseline(make) -> None:
    assert same(run(budget_adaptive_scheduler.apply(make(), {}), 40).model, run(make(), 40).model)
    counted = [
        spend(recipe, "320 examples", ExampleClock())
        for recipe in (budget_adaptive_scheduler.apply(make(), {}), make())
    ]
    assert same(counted[0].model, counted[1].model)
    timed = [trained(recipe, Machine())[0] for recipe in (budget_adaptive_scheduler.apply(make(), {}), make())]
    assert same(timed[0].model, timed[1].model)
    assert timed[0].step == 80


def test_a_slowdown_is_met_by_smaller_batches_so_that_the_planned_updates_still_fit() -> None:
    plain, _, _ = trained(vectors(), Machine(halfway(2.0)))
    ours, sizes, _ = trained(budget_adaptive_scheduler.apply(vectors(), {}), Machine(halfway(2.0)))
    assert plain.step == 60  # of the 80 that were planned
    assert 72 <= ours.step < 80
    assert sizes.index(4) in range(40, 40 + 8 + 1)  # as patient as it was told to be
    assert set(sizes[sizes.index(4) :]) == {4}


def test_a_grave_slowdown_is_met_down_to_the_smallest_share_and_no_further() -> None:
    _, sizes, _ = trained(budget_adaptive_scheduler.apply(vectors(), {}), Machine(halfway(16.0)), "400s")
    assert list(dict.fromkeys(sizes)) == [8, 4, 2]
    _, sizes, _ = trained(budget_adaptive_scheduler.apply(vectors(), {"smallest": 0.5}), Machine(halfway(16.0)), "400s")
    assert list(dict.fromkeys(sizes)) == [8, 4]


@pytest.mark.parametrize(("optimizer", "factor"), [(sgd(0.01, 0.9, 0.0), 0.5), (None, 0.5**0.5)])
def test_the_rate_goes_down_with_the_batch_and_to_nothing_at_the_end(optimizer, factor: float) -> None:
    facts = {"optimizer": optimizer} if optimizer else {}
    recipe = budget_adaptive_scheduler.apply(vectors(lr_schedule=lambda progress: 1.0 - progress, **facts), {})
    machine = Machine(halfway(2.0))
    _, sizes, rates = trained(recipe, machine)
    ends = [sum(machine.lasted[: step + 1]) / 80.0 for step in range(len(sizes))]
    expected = [(1.0 - end) * (factor if size == 4 else 1.0) for end, size in zip(ends, sizes, strict=True)]
    settled = [step for step in range(2, len(sizes)) if sizes[step] == sizes[step - 1] and step not in (40, 41)]
    assert [rates[step] for step in settled] == pytest.approx([expected[step] for step in settled], abs=1e-6)
    assert rates[-1] == pytest.approx(0.0, abs=0.01)


def test_when_the_machine_is_fast_again_batches_are_whole_again() -> None:
    machine = Machine(lambda seconds: 2.8 if 20.0 <= seconds < 50.0 else 1.0)
    _, sizes, _ = trained(budget_adaptive_scheduler.apply(vectors(), {}), machine)
    assert list(dict.fromkeys(sizes)) == [8, 4]
    assert sizes[-1] == 8
    assert sum(one != other for one, other in pairwise(sizes)) == 2  # no to and fro


def test_it_gives_up_where_half_a_batch_takes_as_long() -> None:
    machine = Machine(lambda seconds: 3.0 if seconds > 4000.0 else 1.0, overhead=100.0)
    training, sizes, _ = trained(budget_adaptive_scheduler.apply(vectors(), {}), machine, "8000s")
    assert 0 < sizes.count(4) <= 10
    assert sizes[-1] == 8
    assert training.kept["budget_adaptive_scheduler"].is_futile


@pytest.mark.parametrize("slow", [1.0, 2.0, 5.0])
def test_the_budget_is_overrun_by_no_more_than_a_step(slow: float) -> None:
    machine = Machine(halfway(slow))
    trained(budget_adaptive_scheduler.apply(vectors(), {}), machine)
    assert 80.0 <= machine.seconds + 1e-6 < 80.0 + machine.lasted[-1]


def test_a_hiccup_changes_nothing() -> None:
    machine = Machine(lambda seconds: 10.0 if 30.0 <= seconds < 31.0 else 1.0)
    _, sizes, _ = trained(budget_adaptive_scheduler.apply(vectors(), {}), machine)
    assert set(sizes) == {8}


@pytest.mark.parametrize("options", [{"smallest": 0.0}, {"slowdown": 1.0}, {"patience": 2}])
def test_wrong_options_are_refused(options: dict) -> None:
    with pytest.raises(InvalidTechnique, match=f"{next(iter(options))} is"):
        budget_adaptive_scheduler.apply(vectors(), options)


def test_the_smallest_share_of_one_is_the_baseline() -> None:
    recipe = budget_adaptive_scheduler.apply(vectors(), {"smallest": 1.0})
    assert same(trained(recipe, Machine(halfway(3.0)))[0].model, trained(vectors(), Machine(halfway(3.0)))[0].model)
