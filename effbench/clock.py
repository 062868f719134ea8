"""Where the time goes, and how much of the budget is spent.

The ledger divides wall and CPU time among named lines; every moment belongs to exactly one line. Clocks read it, or
count steps, examples and tokens, or add up prices. None is ever paused: evaluation is simply another line.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from effbench.errors import InvalidBudget, NotApplicable, UnknownName

if TYPE_CHECKING:
    from effbench.recipe import Training

#: Lines that the budget pays for. `extra` is a technique's own work: scoring, searching, growing, averaging.
ON_THE_CLOCK = ("data", "forward_backward", "update", "extra")
#: Lines that it does not.
OFF_THE_CLOCK = ("setup", "evaluation", "checkpoint", "metering", "idle")

_IS_PAID = {line: line in ON_THE_CLOCK for line in (*ON_THE_CLOCK, *OFF_THE_CLOCK)}
_DIGITS = 9  # of progress: a million prices add up to it, in spite of rounding


class Ledger:
    """Wall seconds by line, CPU seconds in all, and those that the budget paid for where somebody asks for them.

    now: monotonic wall clock, seconds.
    cpu: CPU clock of this process, seconds; asking it is a system call, so no step does that for nothing.
    since: `now()` at which the first line, set-up, began; default: now.
    synchronize: waits until the device has done what it was told, before a total is read.
    """

    __slots__ = (
        "_cpu",
        "_line",
        "_now",
        "_paid",
        "_since_cpu",
        "_since_wall",
        "_start_cpu",
        "_synchronize",
        "wall",
    )

    def __init__(
        self,
        now: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.process_time,
        synchronize: Callable[[], None] | None = None,
        since: float | None = None,
    ) -> None:
        self._now, self._cpu, self._synchronize = now, cpu, synchronize
        self.wall = dict.fromkeys(OFF_THE_CLOCK + ON_THE_CLOCK, 0.0)
        self._line = "setup"
        self._since_wall, self._start_cpu = now() if since is None else since, cpu()
        self._paid: float | None = None  # CPU seconds on the clock, once somebody has asked
        self._since_cpu = self._start_cpu

    @property
    def open_line(self) -> str:
        """The line to which the present moment is charged."""
        return self._line

    def switch(self, line: str) -> str:
        """Charge the time since the last switch to the line that was open, open `line`, return the former.

        Where one of the two is off the clock, the device first does what it was told: training that is still under
        way must not be charged to the evaluation that follows it.

        Raises:
            UnknownName: the ledger has no such line.
        """
        former, paid = self._line, _IS_PAID.get(line)
        if paid is None:
            raise UnknownName("line of the ledger", line, self.wall)
        if paid is not _IS_PAID[former]:
            if self._synchronize is not None:
                self._synchronize()
            if self._paid is not None:
                self._charge_cpu()
        now = self._now()
        self.wall[former] += now - self._since_wall
        self._line, self._since_wall = line, now
        return former

    def _charge_cpu(self) -> float:
        paid, cpu = self._paid or 0.0, self._cpu()
        if self._paid is not None and _IS_PAID[self._line]:
            paid += cpu - self._since_cpu
        self._paid, self._since_cpu = paid, cpu
        return paid

    @contextmanager
    def line(self, line: str) -> Iterator[None]:
        """Charge what happens inside to `line`, then go back to the line that was open."""
        former = self.switch(line)
        try:
            yield
        finally:
            if self._synchronize is not None:
                self._synchronize()
            self.switch(former)

    def spent_wall(self) -> float:
        """Return the wall seconds that the budget paid for so far."""
        if self._synchronize is not None:
            self._synchronize()
        self.switch(self._line)
        return sum(self.wall[line] for line in ON_THE_CLOCK)

    def spent_cpu(self) -> float:
        """Return the CPU seconds that the budget paid for since this was first asked: 0 then."""
        return self._charge_cpu()

    def cpu_seconds(self) -> float:
        """Return the CPU seconds in all, on the clock and off it."""
        return self._cpu() - self._start_cpu

    def close(self) -> None:
        """Charge what is still open, so that the sums are complete."""
        self.switch(self._line)


class Clock(Protocol):
    """How much of a budget a run has spent, in the budget's unit; never less than it said before."""

    def spent(self, training: Training) -> float:
        """Return what `training` has spent so far.

        All ranks ask at the same time, but those whose `training.group.is_apart`.
        """


class WallClock:
    """Seconds on the wall, the device synchronised, evaluation left out."""

    def spent(self, training: Training) -> float:
        """Return seconds."""
        return training.ledger.spent_wall()


class CpuClock:
    """CPU seconds, added up over the processes of the trial, evaluation left out.

    Ranks that go by themselves may spend an equal part each.
    """

    def spent(self, training: Training) -> float:
        """Return CPU seconds."""
        own, group = training.ledger.spent_cpu(), training.group
        return own * group.size if group.is_apart else group.sum_float(own)


class StepClock:
    """Optimizer steps."""

    def spent(self, training: Training) -> float:
        """Return steps."""
        return training.step


class EpochClock:
    """Passes over the baseline's train examples, in examples drawn."""

    def spent(self, training: Training) -> float:
        """Return epochs, fractions included."""
        return training.examples / training.epoch_examples


class ExampleClock:
    """Examples drawn."""

    def spent(self, training: Training) -> float:
        """Return examples."""
        return training.examples


class TokenClock:
    """Tokens of the examples drawn, at the length at which they were trained on."""

    def spent(self, training: Training) -> float:
        """Return tokens.

        Raises:
            NotApplicable: the examples have none, so that the budget would never be spent.
        """
        if training.step and not training.tokens:
            raise NotApplicable("a budget of tokens needs a workload whose inputs are tokens, and these are none")
        return training.tokens


#: unit of a budget -> a function that makes a clock for one run. Priced units need a price: see PricedClock.
CLOCKS: dict[str, Callable[[], Clock]] = {
    "seconds": WallClock,
    "cpu": CpuClock,
    "steps": StepClock,
    "epochs": EpochClock,
    "examples": ExampleClock,
    "tokens": TokenClock,
}


class PricedClock:
    """Adds up what each step costs by a price list, so that the number of steps is known before training.

    price: progress -> price of a step, in the budget's unit.
    lumps: (progress, price) of work that is done once, such as growing the model or averaging weights at the end.
        A lump at progress p is paid when p is reached. One at 1.0 comes after the last step: every step pays its
        share of it in advance, so that progress still runs from 0 to 1.
    """

    __slots__ = ("_before_the_end", "_lumps", "_paid", "_price", "_steps", "amount")

    def __init__(
        self, amount: float, price: Callable[[float], float], lumps: tuple[tuple[float, float], ...] = ()
    ) -> None:
        self.amount, self._price = amount, price
        self._before_the_end = amount - sum(cost for progress, cost in lumps if progress >= 1.0)
        self._lumps = sorted((lump for lump in lumps if lump[0] < 1.0), reverse=True)
        self._paid, self._steps = 0.0, 0
        self._pay_lumps()

    def spent(self, training: Training) -> float:
        """Return the sum of the prices of all steps and lumps so far."""
        return self.at(training.step)

    def at(self, step: int) -> float:
        """Return what is spent before step `step` (from 0) is taken; steps are asked for in rising order.

        Raises:
            InvalidBudget: a step is not worth a positive price, so that the budget would never be spent.
        """
        while self._steps < step:
            price = self._price(min(1.0, self._share()))
            if not price > 0.0:
                raise InvalidBudget(
                    f"step {self._steps} has the price {price}; a budget can only buy what costs something"
                )
            self._paid += price
            self._steps += 1
            self._pay_lumps()
        return self.amount * self._share()

    def _share(self) -> float:
        """Return the share of the budget that is spent, so rounded that fifty steps of 0.1 are half of 10."""
        return 1.0 if self._before_the_end <= 0.0 else round(self._paid / self._before_the_end, _DIGITS)

    def _pay_lumps(self) -> None:
        while self._lumps and self._share() >= self._lumps[-1][0]:
            self._paid += self._lumps.pop()[1]
