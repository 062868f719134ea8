"""How large an effect is, as a person writes it: `0.002` in units of the metric, or `0.5%` of the baseline's mean."""

from __future__ import annotations

import math
from dataclasses import dataclass

from effbench.errors import EffbenchError


@dataclass(frozen=True, slots=True)
class Size:
    """A positive size; a share is of the baseline's mean."""

    amount: float
    is_share: bool

    @classmethod
    def parse(cls, text: str) -> Size:
        """Read `0.5%` or `0.002`.

        Raises:
            EffbenchError: it is no positive number, with a per cent sign or without.
        """
        written = text.strip()
        is_share = written.endswith("%")
        try:
            amount = float(written.removesuffix("%"))
        except ValueError:
            amount = math.nan
        if not 0.0 < amount < math.inf:
            raise EffbenchError(
                f"{text!r} is no size of an effect; write 0.5%, of the baseline's mean, or 0.002, in the metric's unit"
            )
        return cls(amount / 100.0 if is_share else amount, is_share)

    def of(self, mean: float) -> float:
        """Return the size in the metric's unit, given the baseline's mean."""
        return self.amount * abs(mean) if self.is_share else self.amount

    def __str__(self) -> str:
        """Write it as it was read."""
        return f"{100.0 * self.amount:g}%" if self.is_share else f"{self.amount:g}"
