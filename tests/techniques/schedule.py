"""What tests of schedules share: the rates of a real run, and the progress at which each step should stand."""

from __future__ import annotations

from effbench.recipe import Recipe, Training
from toy import run, spend, vectors

PEAK = 3e-3  # of the toy's AdamW
LAST = 0.01  # the most that a schedule which decays fully may leave of its peak


def progresses(steps: int) -> list[float]:
    """The progress at the end of each step, which the loop foretells; of the first it knows only the beginning."""
    return [0.0, *((step + 1) / steps for step in range(1, steps))]


def factors(recipe: Recipe, steps: int) -> list[float]:
    """The learning rate of every step of a run, as a share of the optimizer's peak, the same in all groups."""
    seen: list[float] = []

    def look(training: Training) -> None:
        rates = {group["lr"] / PEAK for group in training.optimizer.param_groups}
        assert len(rates) == 1
        seen.extend(rates)

    run(recipe, steps, look=look)
    assert len(seen) == steps
    return seen


class SlowSteps:
    """A clock of seconds by which every step takes a tenth."""

    def spent(self, training: Training) -> float:
        return 0.1 * training.step


def ends_decayed(make) -> bool:
    """Whether the last rate is at most 1 % of the highest, under budgets of steps and of seconds.

    make: () -> recipe.
    """
    last = []
    for steps in (10, 20, 40):
        rates = factors(make(), steps)
        last.append(rates[-1] / max(rates))
    rates = []
    spend(make(), "3s", SlowSteps(), look=lambda training: rates.append(training.optimizer.param_groups[0]["lr"]))
    assert len(rates) == 30
    return max(*last, rates[-1] / max(rates)) <= LAST


__all__ = ["LAST", "PEAK", "ends_decayed", "factors", "progresses", "vectors"]
