"""How far a run is, the same on all ranks that go in step, without a question at every step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from effbench.budget import Budget

if TYPE_CHECKING:
    from effbench.clock import Clock
    from effbench.recipe import Training

_STRETCH = 1 / 64  # share of the budget after which the clock is looked at again, at the latest


class Pace:
    """Brings `training.progress` up to date; it never falls.

    What is counted, every rank knows by itself. What is measured is the word of rank 0's clock, and asking for it makes
    all ranks wait for each other, which methods that communicate rarely must not be made to do. So they ask in the
    first steps, after what has slowed them down, and whenever a 64th of the budget or half of what was left has gone;
    in between each step is taken to last as long as those since the last look, or as all on the average, whichever is
    longer: some send what others do not. The last steps are therefore asked for one by one, and no run ends but by the
    clock.

    A rank that goes by itself looks at its own clock in every step.
    """

    __slots__ = ("_budget", "_clock", "_heard", "_is_asked", "_next", "_per_step", "_step")

    def __init__(self, training: Training, budget: Budget, clock: Clock) -> None:
        group = training.group
        self._budget, self._clock = budget, clock
        self._is_asked = group.size > 1 and not group.is_apart and not budget.is_counted
        self._heard, self._step, self._per_step, self._next = 0.0, 0, 0.0, 0.0

    def look(self, training: Training) -> None:
        """Look before a step."""
        expected = self._heard + self._per_step * (training.step - self._step)
        if self._is_asked and self._per_step > 0.0 and expected < self._next:
            training.progress = max(training.progress, expected)
        else:
            self.ask(training)

    def ask(self, training: Training) -> None:
        """Look at the clock itself, as after something that takes longer than a step."""
        found = self._budget.progress(self._clock.spent(training))
        if self._is_asked:
            found = training.group.agree(found)
            if steps := training.step - self._step:
                self._per_step = max((found - self._heard) / steps, found / training.step)
            self._heard, self._step = found, training.step
            self._next = found + min(_STRETCH, (1.0 - found) / 2)
        training.progress = max(training.progress, found)
