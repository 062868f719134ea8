"""Numbers as people read them: as many digits as the interval vouches for, and no more."""

from __future__ import annotations

import math

from effbench.analysis.intervals import Estimate
from effbench.analysis.ratios import Ratio

NOTHING = "\N{EM DASH}"
MINUS = "\N{MINUS SIGN}"
TIMES = "\N{MULTIPLICATION SIGN}"
_MOST_DECIMALS = 6
_LOPSIDED = 10.0  # high over low, from which the two ends of an interval need decimals of their own


def mean(found: Estimate) -> str:
    """Write `0.831 ± 0.012`; a mean of one value stands alone."""
    if found.mean is None:
        return NOTHING
    if (half := found.half_width) is None:
        return significant(found.mean, 4)
    if _is_extreme(found.mean, half):
        return f"{significant(found.mean, 4)} ± {significant(half, 2)}"
    decimals = _decimals(found.mean, half)
    shown = significant(half, 2) if 0.0 < half < 10.0**-_MOST_DECIMALS else f"{half:.{decimals}f}"
    return f"{_minus(f'{found.mean:.{decimals}f}')} ± {shown}"


def difference(found: Estimate) -> str:
    """Write `+0.011 [+0.005, +0.017]`; without an interval the difference stands alone."""
    if found.mean is None:
        return NOTHING
    if found.low is None or found.high is None or found.half_width is None:
        return _signed(found.mean, None)
    if _is_extreme(found.mean, found.half_width):
        return f"{_signed(found.mean, None)} [{_signed(found.low, None)}, {_signed(found.high, None)}]"
    decimals = _decimals(found.mean, found.half_width)
    return f"{_signed(found.mean, decimals)} [{_signed(found.low, decimals)}, {_signed(found.high, decimals)}]"


def geometric(found: Ratio) -> str:
    """Write `4.63 [4.49, 4.77]`: the interval of a geometric mean is not as wide on both sides."""
    if found.mean is None:
        return NOTHING
    if found.low is None or found.high is None:
        return significant(found.mean, 4)
    if found.high > _LOPSIDED * found.low or _is_extreme(found.mean, found.high):
        ends = (significant(found.low, 2), significant(found.high, 2))
        return f"{significant(found.mean)} [{', '.join(ends)}]"
    decimals = _decimals(found.mean, found.mean - found.low)
    return f"{found.mean:.{decimals}f} [{found.low:.{decimals}f}, {found.high:.{decimals}f}]"


def ends(low: float | None, high: float | None, digits: int = 3) -> str:
    """Write `4.49 to 4.77`, the two ends of an interval."""
    return NOTHING if low is None or high is None else f"{significant(low, digits)} to {significant(high, digits)}"


def significant(value: float, digits: int = 3) -> str:
    """Write a number with so many significant digits; whole digits are never cut off."""
    if not math.isfinite(value):
        return nonfinite(value)
    if value == 0.0:
        return "0"
    if not 1e-4 <= abs(value) < 1e9:
        return _minus(f"{value:.{digits - 1}e}")
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])
    return _minus(f"{value:.{max(0, digits - 1 - exponent)}f}")


def exact(value: float) -> str:
    """Write a number as somebody typed it: 0.9, 2000."""
    return _minus(f"{value:.12g}")


def nonfinite(value: float) -> str:
    """Write the marker of a value that is no finite number."""
    return "NaN" if math.isnan(value) else "+inf" if value > 0 else f"{MINUS}inf"


def _decimals(value: float, half: float) -> int:
    """Return the decimals that give the half-width two significant digits."""
    if half == 0.0:
        text = f"{value:.4g}"
        return len(text.partition(".")[2]) if "e" not in text else 0
    exponent = int(f"{half:.1e}".partition("e")[2])
    return min(_MOST_DECIMALS, max(0, 1 - exponent))


def _is_extreme(value: float, half: float) -> bool:
    """Return whether a number reads better with a power of ten."""
    largest = max(abs(value), half)
    return largest >= 1e9 or 0.0 < largest < 1e-4


def _signed(value: float, decimals: int | None) -> str:
    text = significant(abs(value), 3) if decimals is None else f"{abs(value):.{decimals}f}"
    if not any(digit in text for digit in "123456789"):
        return text  # a zero has no sign
    return ("+" if value > 0 else MINUS) + text


def _minus(text: str) -> str:
    return text.replace("-", MINUS)
