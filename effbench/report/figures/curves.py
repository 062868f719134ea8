"""Learning curves: the mean over seeds with its interval, over the share of the budget or over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from effbench.analysis.comparison import Comparison, SetResult
from effbench.analysis.costs import ON_THE_CLOCK
from effbench.analysis.intervals import LARGE, t_quantile
from effbench.records import Record
from effbench.report.figures.figure import SLOTS, Axis, Chart, Line
from effbench.rows import columns

MOST = 5  # lines besides the baseline that the eye can tell apart
_START = 0.2  # share of the budget before which curves may be cut off: the end is what compares

Over = Literal["share", "time"]


def curves(
    comparison: Comparison,
    over: Over = "share",
    labels: Sequence[str] | None = None,
    slots: Mapping[str, int] | None = None,
    known: dict[str, Line | None] | None = None,
) -> Chart:
    """Return the learning curves on validation of the baseline and of some sets.

    over: the share of the budget, or the seconds that a trial had trained by then, evaluation left out.
    labels: which sets; by default the best ones, as the table ranks them.
    slots: label -> its colour, where several drawings agree on them; see `shared_slots`.
    known: label -> its line as another drawing of this comparison over the same axis has it; what is made is added.
    """
    chosen = [((slots or {}).get(each.label, slot), each) for slot, each in _chosen(comparison, labels)]
    records = comparison.group.records
    metric = next((record.metric for record in records if record.metric), comparison.measure.name)
    target = next((record.target for record in records if record.target is not None), None)
    percent = f"{100 * comparison.confidence:g} %"
    known = {} if known is None else known
    for slot, each in chosen:
        if each.label not in known:
            known[each.label] = line(each, slot, metric, over, comparison.confidence)
    lines = [replace(found, slot=slot) for slot, each in chosen if (found := known[each.label]) is not None]
    title = "share of the budget, %" if over == "share" else "seconds of training on this machine"
    return Chart(
        title=f"{comparison.group.workload}, {comparison.group.budget}",
        about=f"Mean {metric} on validation over the seeds; the bands are {percent} intervals.",
        x=Axis(title),
        y=_ending(f"validation {metric}", lines, higher=_higher(records)),
        lines=tuple(lines),
        level=target,
        level_title="target" if target is not None else "",
    )


def shared_slots(comparisons: Sequence[Comparison]) -> dict[str, int]:
    """Return the colour of each set that some drawing shows by default; nothing where there are too many for that."""
    shown = [each.label for comparison in comparisons for _, each in _chosen(comparison, None) if not each.is_baseline]
    labels = list(dict.fromkeys(shown))
    return {label: slot for slot, label in enumerate(labels, start=1)} if len(labels) <= SLOTS else {}


def _ending(title: str, lines: Sequence[Line], *, higher: bool) -> Axis:
    """Return an axis that shows the last part of the curves well, and cuts off how badly they begin."""
    starts = [y for each in lines for x, y in zip(each.x, each.y, strict=True) if x >= _START * each.x[-1]]
    if not starts:
        return Axis(title)
    return Axis(title, low=min(starts)) if higher else Axis(title, high=max(starts))


def _higher(records: Sequence[Record]) -> bool:
    return next((record.higher_is_better for record in records if record.metric), True)


def _chosen(comparison: Comparison, labels: Sequence[str] | None) -> list[tuple[int, SetResult]]:
    baseline = [(0, each) for each in comparison.results if each.is_baseline]
    others = [each for each in comparison.results if not each.is_baseline]
    if labels is None:
        return baseline + list(enumerate([each for each in others if each.values][:MOST], start=1))
    return baseline + list(enumerate([each for each in others if each.label in labels], start=1))


def line(each: SetResult, slot: int, metric: str, over: Over, confidence: float) -> Line | None:
    """Return the mean curve of a set's finished runs; None where no run was evaluated on the way."""
    along = share if over == "share" else seconds
    runs = [found for record in each.records if record.status == "ok" and len(found := points(record, metric, along))]
    if not runs:
        return None
    grid = _grid(runs)
    largest = max(abs(value) for run in runs for _, value in run)
    scale = largest if largest > LARGE else 1.0
    values = np.array([np.interp(grid, [at for at, _ in run], [value / scale for _, value in run]) for run in runs])
    mean = values.mean(axis=0)
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    if len(runs) > 1:
        half = t_quantile(len(runs) - 1, confidence) * values.std(axis=0, ddof=1) / math.sqrt(len(runs))
        low, high = _floats(mean - half, scale), _floats(mean + half, scale)
    return Line(each.label, slot, _floats(grid), _floats(mean, scale), low, high)


def share(record: Record, progress: float) -> float:
    """Return a place on the axis of shares, in per cent."""
    del record
    return 100.0 * progress


def seconds(record: Record, progress: float) -> float:
    """Return a place on the axis of time: training took its share of the lines of the ledger that are on the clock."""
    return progress * math.fsum(record.ledger.get(part, 0.0) for part in ON_THE_CLOCK)


def points(record: Record, metric: str, along: Callable[[Record, float], float]) -> list[tuple[float, float]]:
    """Return the finite points (place, value) of a record's curve."""
    rows = zip(*columns(record.curve, "progress", metric), strict=True)
    return [(along(record, at), value) for at, value in rows if math.isfinite(at) and math.isfinite(value)]


def _grid(runs: Sequence[Sequence[tuple[float, float]]]) -> list[float]:
    """Return the places at which curves are averaged: those of the longest one, as far as all have been."""
    start, end = max(run[0][0] for run in runs), min(run[-1][0] for run in runs)
    longest = max(runs, key=len)
    inside = [at for at, _ in longest if start < at < end]
    return [start, *inside, end] if end > start else [start]


def _floats(values: Iterable[float], scale: float = 1.0) -> tuple[float, ...]:
    return tuple(float(value) * scale for value in values)
