"""What keeps results apart: which folders may be merged, and why others may not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from effbench.analysis.groups import major_minor
from effbench.records import Record, canonical, plain


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Why two folders do not compare."""

    what: str  # "suite", "version of effbench", "clock of kjv_gpt", ...
    first: str
    second: str
    why: str

    def __str__(self) -> str:
        """Say it in a line."""
        return f"{self.what}: {self.first} against {self.second}; {self.why}"


def mismatches(
    first: Sequence[Record],
    second: Sequence[Record],
    suites: tuple[Mapping[str, Any] | None, Mapping[str, Any] | None] = (None, None),
) -> list[Mismatch]:
    """Return all that speaks against putting the records of two folders into one table; empty where nothing does.

    suites: what `suite.json` of each folder holds, where it is there.
    """
    found = [_differ(what, first, second, read, why) for what, read, why in _MUST_AGREE]
    return [
        *(each for each in found if each is not None),
        *_suites(*suites),
        *_clocks(first, second),
        *_prices(first, second),
    ]


def hardware_class(record: Record) -> str:
    """Return what makes speeds comparable: the accelerator, or else the processor and its system."""
    device = str(record.environment.get("device", ""))
    if device and device != "cpu":
        return device
    return ", ".join(str(part) for key in ("processor", "system") if (part := record.environment.get(key)))


_MUST_AGREE: list[tuple[str, Callable[[Record], str], str]] = [
    ("suite", lambda record: record.suite, "a suite is one question; merge the answers to one"),
    ("version of effbench", major_minor, "results compare within one Major.Minor version"),
    ("hardware", hardware_class, "speeds, and budgets in seconds, mean something else on another machine"),
    ("threads of a trial", lambda record: str(record.threads), "speed and rounding change with the threads"),
]


def _differ(
    what: str, first: Sequence[Record], second: Sequence[Record], read: Callable[[Record], str], why: str
) -> Mismatch | None:
    ours, theirs = ({value for r in records if (value := read(r))} for records in (first, second))
    if not ours or not theirs or ours == theirs:
        return None
    return Mismatch(what, " and ".join(sorted(ours)), " and ".join(sorted(theirs)), why)


def _suites(first: Mapping[str, Any] | None, second: Mapping[str, Any] | None) -> Iterable[Mismatch]:
    """Hold what the suites ask against each other; seeds and techniques may be shared out between folders."""
    if first is None or second is None:
        return
    for key in ("ladder", "per_step"):
        ours, theirs = first.get(key) or [], second.get(key) or []
        if ours != theirs:
            why = "the folders were to answer different questions"
            yield Mismatch(f"{key} of the suite", str(ours or "none"), str(theirs or "none"), why)


def _clocks(first: Iterable[Record], second: Iterable[Record]) -> Iterable[Mismatch]:
    """Yield each workload whose budgets are counted by other clocks; unequal amounts of one are rungs of a ladder."""
    ours, theirs = _clocks_of(first), _clocks_of(second)
    for workload in ours:
        if workload in theirs and ours[workload] != theirs[workload]:
            units = [", ".join(sorted(found[workload])) for found in (ours, theirs)]
            yield Mismatch(f"clock of {workload}", units[0], units[1], "an amount of one is no amount of the other")


def _clocks_of(records: Iterable[Record]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for record in records:
        if record.clock:
            found.setdefault(record.workload, set()).add(record.clock)
    return found


def _prices(first: Iterable[Record], second: Iterable[Record]) -> Iterable[Mismatch]:
    """Yield one mismatch where the same step has another price: equal budgets then buy unequal numbers of steps."""
    ours, theirs = _priced(first), _priced(second)
    apart = [cell for cell in ours if cell in theirs and ours[cell][1] != theirs[cell][1]]
    if apart:
        cell = apart[0]
        more = f" (and {len(apart) - 1} more)" if len(apart) > 1 else ""
        why = "share one prices.json between the machines, so that a budget buys the same steps on both"
        names = f"{ours[cell][0]} on {cell[0]}{more}"
        yield Mismatch(f"price of {names}", _cost(ours[cell][1]), _cost(theirs[cell][1]), why)


def _priced(records: Iterable[Record]) -> dict[tuple[str, str], tuple[str, Any]]:
    return {(r.workload, canonical(r.techniques)): (r.label, plain(r.price)) for r in records if r.price}


def _cost(price: Mapping[str, Any]) -> str:
    if not price.get("phases"):  # as another version may write it
        return canonical(price)
    steps = " then ".join(f"{phase['cost']:.4g}" for phase in price["phases"])
    return f"{steps} {price['unit']} a step"
