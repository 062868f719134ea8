"""How much a trial may spend: an amount and a unit, and the share of it that is spent."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from effbench.errors import InvalidBudget, nearest

#: unit -> how it is written. Plugins may add more.
UNITS: dict[str, str] = {
    "seconds": "wall seconds, as 60s or 1h20m",
    "cpu": "CPU seconds, as 60s cpu",
    "reference": "seconds at the prices of the reference machine, as 60s reference",
    "steps": "optimizer steps, as 2000 steps",
    "epochs": "passes over the train examples, as 3 epochs",
    "examples": "train examples, as 1e6 examples",
    "tokens": "tokens, as 5M tokens",
    "flop": "floating-point operations, as 3e12 flop",
}

_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_DURATION = re.compile(rf"((?:{_NUMBER}\s*(?:ms|min|[dhms])\s*)+)([a-z]*)")
_PART = re.compile(rf"({_NUMBER})\s*(ms|min|[dhms])")
_COUNT = re.compile(rf"({_NUMBER})\s*([kKMBGT]?)\s*([a-zA-Z_]+)")
_LONGEST = 100  # characters
_SECONDS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_SCALE = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}
_DURATION_UNITS = {"": "seconds", "wall": "seconds", "cpu": "cpu", "reference": "reference"}


@dataclass(frozen=True, slots=True)
class Budget:
    """A positive `amount` of a `unit`: one of UNITS, or one that a plugin's clock counts in."""

    amount: float
    unit: str

    def __post_init__(self) -> None:
        """Refuse what is no positive finite amount."""
        if not (math.isfinite(self.amount) and self.amount > 0):
            raise InvalidBudget(f"a budget is a positive amount, found {self.amount:g} {self.unit}")

    @classmethod
    def parse(cls, text: Any, key: str = "budget", more_units: Iterable[str] = ()) -> Budget:
        """Read `60s`, `1h20m`, `60s cpu`, `60s reference`, `2000 steps`, `3 epochs`, `5M tokens`, `3e12 flop`.

        key: what the value is called where it was written, for the error.
        more_units: units that plugins count in.

        Raises:
            InvalidBudget: no positive amount of a known unit; names the key, the value and the units.
        """
        if not isinstance(text, str):
            raise InvalidBudget(_explain(key, text, "write an amount with its unit, in quotes", more_units))
        written = text.strip()
        if len(written) > _LONGEST:
            raise InvalidBudget(_explain(key, text, "this is too long for an amount and its unit", more_units))
        if duration := _DURATION.fullmatch(written):
            seconds = sum(float(amount) * _SECONDS[unit] for amount, unit in _PART.findall(duration[1]))
            if duration[2] in _DURATION_UNITS:
                return cls._checked(seconds, _DURATION_UNITS[duration[2]], key, text, more_units)
        if count := _COUNT.fullmatch(written):
            units = {*UNITS, *more_units}
            unit = count[3] if count[3] in units else count[3] + "s"
            if unit in units:
                return cls._checked(float(count[1]) * _SCALE[count[2]], unit, key, text, more_units)
            if near := nearest(unit, units):
                raise InvalidBudget(_explain(key, text, f"did you mean {near!r}?", more_units))
        why = "there is no unit" if re.fullmatch(_NUMBER, written) else "this is no positive amount of a known unit"
        raise InvalidBudget(_explain(key, text, why, more_units))

    @classmethod
    def _checked(cls, amount: float, unit: str, key: str, text: str, more_units: Iterable[str]) -> Budget:
        if not (math.isfinite(amount) and amount > 0):
            raise InvalidBudget(_explain(key, text, "the amount should be positive and finite", more_units))
        return cls(amount, unit)

    @property
    def is_counted(self) -> bool:
        """Whether it is counted and not measured, so that like steps cost the same."""
        return self.unit in {"reference", "steps", "epochs", "examples", "tokens", "flop"}

    @property
    def is_wall(self) -> bool:
        """Whether it is counted in seconds on the wall."""
        return self.unit == "seconds"

    def progress(self, spent: float) -> float:
        """Return the share of the budget that is spent, in [0, 1].

        Raises:
            InvalidBudget: a clock said NaN; such a budget would never end.
        """
        if math.isnan(spent):
            raise InvalidBudget(f"the clock of the budget {self} says that {spent} {self.unit} are spent")
        return min(1.0, max(0.0, spent / self.amount))

    def __str__(self) -> str:
        """Write it so that `parse` reads the very same budget."""
        short = f"{self.amount:.12g}"
        amount = short if float(short) == self.amount else repr(self.amount)
        if self.unit in _DURATION_UNITS.values():
            return f"{amount}s" if self.unit == "seconds" else f"{amount}s {self.unit}"
        return f"{amount} {self.unit}"


def _explain(key: str, value: Any, why: str, more_units: Iterable[str]) -> str:
    units = "".join(f"\n  {unit}: {how}" for unit, how in UNITS.items())
    units += "".join(f"\n  {unit}: counted by a plugin, as 100 {unit}" for unit in sorted(more_units))
    shown = repr(value)
    shown = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."
    return f"{key} = {shown}: {why}{'' if why.endswith('?') else '.'} Units are:{units}"
