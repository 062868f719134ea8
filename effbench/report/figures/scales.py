"""From numbers to places on an axis: its ends, its round ticks, and how the ticks are written."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from effbench.report.numbers import MINUS

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)  # round distances of ticks, times a power of ten
_MARGIN = 0.04  # of the span, on each side


@dataclass(frozen=True, slots=True)
class Scale:
    """A mapping of [low, high] to [start, end], in units of the drawing; `flipped` is end before start."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """Return where a value lies."""
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)

    def within(self, value: float) -> float:
        """Return where a value lies; what lies outside lies on the edge."""
        return self.at(min(self.high, max(self.low, value)))

    def ticks(self, most: int = 6) -> list[float]:
        """Return round values within the scale, about as many as there is room for."""
        return powers(self.low, self.high, most) if self.log else round_values(self.low, self.high, most)


def scale(values: Iterable[float], start: float, end: float, *, log: bool = False, zero: bool = False) -> Scale:
    """Return a scale that holds all finite values, with a margin.

    zero: begin at zero, without a margin there.
    """
    found = [value for value in values if math.isfinite(value) and (value > 0.0 or not log)]
    low, high = (min(found), max(found)) if found else (1.0, 2.0)
    if log:
        factor = (high / low) ** _MARGIN if high > low else 1.5
        return Scale(low / factor, high * factor, start, end, log=True)
    margin = _MARGIN * (high - low) or 0.05 * abs(high) or 1.0
    if zero:
        return Scale(0.0, max(high, 0.0) + margin, start, end)
    return Scale(low - margin, high + margin, start, end)


def round_values(low: float, high: float, most: int) -> list[float]:
    """Return multiples of a round number within [low, high], at most so many."""
    span = high - low
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(factor * power for factor in (*_STEPS, 20.0, 50.0, 100.0) if span / (factor * power) <= most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


def powers(low: float, high: float, most: int) -> list[float]:
    """Return powers of ten, or of ten with their doubles and fivefolds, within [low, high]."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1.0, 2.0, 5.0), (1.0,)):
        found = [factor * 10.0**exponent for exponent in exponents for factor in factors]
        inside = [value for value in found if low <= value <= high]
        if 2 <= len(inside) <= most + 2:
            return inside
    return round_values(low, high, most)


def written(ticks: Sequence[float], *, signed: bool = False) -> list[str]:
    """Write ticks with the decimals that tell them apart."""
    step = min((b - a for a, b in itertools.pairwise(ticks)), default=abs(ticks[0]) if ticks else 1.0)
    largest = max(map(abs, ticks), default=0.0)
    if largest >= 1e5 or 0.0 < largest < 1e-3:
        digits = next((n for n in range(3, 15) if len({f"{tick:.{n}g}" for tick in ticks}) == len(ticks)), 15)
        return [_tidy(f"{tick:.{digits}g}", tick, signed) for tick in ticks]
    decimals = 0
    while decimals < 6 and any(abs(round(tick, decimals) - tick) > 1e-6 * step for tick in ticks):
        decimals += 1
    return [_tidy(f"{tick:.{decimals}f}", tick, signed) for tick in ticks]


def _tidy(text: str, value: float, signed: bool) -> str:
    if value == 0.0:
        return "0"
    return ("+" if signed and value > 0 else "") + text.replace("-", MINUS)
