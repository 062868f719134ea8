"""What a step costs, measured once, so that a budget buys a number of steps that is known before training.

A price list holds, per workload and set of techniques, the cost of a step in each *phase* of the budget (a stretch of
progress in which a step costs the same: new shapes, new parameters and the recipe's own `phases` end it) and the
*lumps*: work done once, such as growing the model. Costs are relative to the baseline's step on this machine, measured
in turns with it in one process; the workload's committed step price turns them into reference-seconds. Machine speed
enters through the ratio alone.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from effbench.errors import EffbenchError

PRICED_UNITS = ("reference", "flop")
_BLOCK = 10  # rounds that are summed before the median is taken
_TOLERANCE = 0.05  # by how much a bigger phase may seem cheaper than a smaller one, however sure that seems


class PriceError(EffbenchError):
    """Prices that cannot be right."""


@dataclass(frozen=True, slots=True)
class Phase:
    """The price of a step from progress `start` on, until the next phase."""

    start: float
    cost: float  # reference-seconds or FLOP of one step
    ratio: float  # cost relative to the baseline's step
    low: float  # 95 % interval of the ratio, by bootstrap
    high: float
    rounds: int  # how often it was timed in turns with the baseline; 1 where it is counted
    size: float  # input elements of a step x parameters: what the cost should grow with


@dataclass(frozen=True, slots=True)
class Price:
    """One entry of a price list: what a set of techniques costs on a workload."""

    unit: str  # "reference" or "flop"
    phases: tuple[Phase, ...]
    lumps: tuple[tuple[float, float], ...] = ()  # (progress, cost in `unit`)

    def at(self, progress: float) -> float:
        """Return the cost of a step that starts at `progress`."""
        found = bisect.bisect_right(self.phases, progress, key=lambda phase: phase.start)
        return self.phases[max(0, found - 1)].cost

    def check(self) -> Price:
        """Return self, or raise PriceError where a bigger step is surely cheaper than a smaller one."""
        by_size = sorted(self.phases, key=lambda phase: phase.size)
        for smaller, bigger in itertools.pairwise(by_size):
            is_cheaper = bigger.cost < smaller.cost * (1 - _TOLERANCE) and bigger.high < smaller.low
            if bigger.size > smaller.size and is_cheaper:
                raise PriceError(
                    f"the step at progress {bigger.start:.2f} is bigger than that at {smaller.start:.2f} "
                    f"and yet seems cheaper ({bigger.cost:.3g} < {smaller.cost:.3g} {self.unit}); the machine was "
                    "disturbed while prices were measured. Run `effbench calibrate SUITE` again when it is quieter"
                )
        return self

    def to_plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Price:
        """Undo `to_plain`."""
        phases = tuple(Phase(**phase) for phase in plain["phases"])
        return cls(plain["unit"], phases, tuple((p, cost) for p, cost in plain["lumps"]))


def baseline_price(step_seconds: float) -> Price:
    """Return the price of the baseline, which is what its workload says: reference-seconds a step."""
    return Price("reference", (Phase(0.0, step_seconds, 1.0, 1.0, 1.0, 0, 0.0),))


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a set of techniques has no price, and what becomes of its trials."""

    status: str  # of a record: "skipped" or "failed"
    stop_reason: str
    reason: str
    story: str = ""  # the traceback

    def to_plain(self) -> dict[str, str]:
        """Return plain values for JSON."""
        return dataclasses.asdict(self)


def number_of_steps(price: Price, amount: float) -> int:
    """Return how many steps `amount` of the price's unit buys."""
    from effbench.clock import PricedClock

    clock = PricedClock(amount, price.at, price.lumps)
    step = 0
    while clock.at(step) < amount:
        step += 1
    return step


def relative_cost(
    costs: Sequence[float], references: Sequence[float], resamples: int = 1000
) -> tuple[float, float, float]:
    """Return (ratio, low, high): the median, over blocks of ten rounds, of summed cost over summed reference cost.

    Blocks, because work that is done every tenth step has no share in a median of single steps; their median, because
    a sum lets one disturbance through. The interval, 95 %, is a bootstrap over the blocks.

    costs, references: (rounds,) what a step cost, and what the baseline's step cost in the same round.
    """
    import numpy as np

    block = min(_BLOCK, max(1, len(costs) // 5))
    kept = len(costs) // block * block
    tops, bottoms = (np.asarray(side[:kept]).reshape(-1, block).sum(1) for side in (costs, references))
    ratios = tops / bottoms
    drawn = np.random.default_rng(0).integers(0, len(ratios), (resamples, len(ratios)))
    low, high = np.quantile(np.median(ratios[drawn], axis=1), [0.025, 0.975])
    return float(np.median(ratios)), float(low), float(high)


def phase_starts(shape_at: Callable[[float], Any], known: tuple[float, ...], grid: int = 32) -> list[float]:
    """Return the progresses at which a new phase starts: 0, the `known` ones, and where `shape_at` changes.

    Changes are looked for on a grid and narrowed down to a thousandth of the budget.
    """
    starts = {0.0, *(p for p in known if 0.0 < p < 1.0)}
    points = [i / grid for i in range(grid)] + [1.0 - 1e-6]
    shapes = [shape_at(p) for p in points]
    for left, right, before, after in zip(points, points[1:], shapes, shapes[1:], strict=False):
        low, high = left, right
        while before != after and high - low > 1e-3:
            middle = (low + high) / 2
            low, high = (middle, high) if shape_at(middle) == before else (low, middle)
        if before != after:
            starts.add(high)
    return sorted(starts)
