"""What was compared, and the answer in three sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from effbench.analysis.comparison import Comparison, SetResult
from effbench.analysis.verdicts import Verdict
from effbench.report import numbers
from effbench.report.words import counted, listed

_BAD = (Verdict.WORSE, Verdict.BREAKS)


def answer(comparisons: Sequence[Comparison]) -> list[str]:
    """Return three sentences: what helps, what hurts, and what is not known."""
    judged = [
        (found, each)
        for found in comparisons
        for each in found.results
        if each.verdict is not None and each.verdict is not Verdict.SKIPPED
    ]
    if not judged:
        return ["There is nothing to compare with the baseline here."]
    return [_helps(judged, comparisons), _hurts(judged, len(comparisons)), _unknown(judged)]


Judged = Sequence[tuple[Comparison, SetResult]]
Found = Mapping[str, Sequence[tuple[Comparison, SetResult]]]  # label -> where


def _helps(judged: Judged, comparisons: Sequence[Comparison]) -> str:
    sets = {each.label for _, each in judged}
    better = _by_label(judged, {Verdict.BETTER})
    across = counted(len(comparisons), "workload")
    if not better:
        return f"None of {counted(len(sets), 'set')} of techniques beats the baseline on any of {across}."
    first = sorted(better, key=lambda label: (-len(better[label]), label))
    named = [_named(label, better[label], len(comparisons)) for label in first]
    each_of = "it" if len(sets) == 1 else f"{len(better)} of {counted(len(sets), 'set')} of techniques"
    verb = "beats" if len(better) == 1 else "beat"
    return f"On {across}, {each_of} {verb} the baseline: {listed(named)}."


def _named(label: str, found: Sequence[tuple[Comparison, SetResult]], workloads: int) -> str:
    """Write `muon (2 of 3; +0.0121 accuracy on mnist1d_cnn)`."""
    comparison, each = found[0]
    difference = numbers.difference(each.difference).partition(" ")[0] if each.difference else ""
    where = f"{difference} {comparison.measure.title} on {comparison.group.workload}"
    return f"{label} ({where})" if workloads == 1 else f"{label} ({len(found)} of {workloads}; {where})"


def _hurts(judged: Judged, workloads: int) -> str:
    worse, breaks = _by_label(judged, {Verdict.WORSE}), _by_label(judged, {Verdict.BREAKS})
    if not worse and not breaks:
        return "None makes it worse for sure, and none breaks."
    parts = []
    if worse:
        verb = "makes" if len(worse) == 1 else "make"
        parts.append(f"{listed(_often(worse, workloads))} {verb} it worse{_where(worse)}")
    if breaks:
        verb = "breaks" if len(breaks) == 1 else "break"
        parts.append(f"{listed(_often(breaks, workloads))} {verb}{_where(breaks)}")
    return f"{'; '.join(parts)}."


def _often(found: Found, workloads: int) -> list[str]:
    """Return labels, the most frequent first, each with the share of the workloads where it is more than one place."""
    first = sorted(found, key=lambda label: (-len(found[label]), label))
    if len(_places(found)) == 1:
        return first
    return [f"{label} ({len(found[label])} of {workloads})" for label in first]


def _where(found: Found) -> str:
    places = _places(found)
    return f" on {places[0]}" if len(places) == 1 else ""


def _places(found: Found) -> list[str]:
    return list(dict.fromkeys(comparison.group.workload for each in found.values() for comparison, _ in each))


def _unknown(judged: Judged) -> str:
    open_ones = [each for _, each in judged if each.verdict in {Verdict.NO_EVIDENCE, Verdict.INCOMPLETE}]
    seeds = sorted({each.planned for _, each in judged})
    runs = f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0])
    if not open_ones:
        which = f"All {len(judged)} comparisons are" if len(judged) > 1 else "The one comparison is"
        return f"{which} decided, with {runs} seeds{' each' if len(judged) > 1 else ''}."
    return (
        f"In {len(open_ones)} of {counted(len(judged), 'comparison')} the {runs} seeds cannot tell the technique from "
        "the baseline, which is not the same as no effect."
    )


def _by_label(judged: Judged, verdicts: set[Verdict]) -> dict[str, list[tuple[Comparison, SetResult]]]:
    """Return label -> where it has such a verdict, the clearest difference first."""
    found: dict[str, list[tuple[Comparison, SetResult]]] = {}
    for comparison, each in judged:
        if each.verdict in verdicts:
            found.setdefault(each.label, []).append((comparison, each))
    for several in found.values():
        several.sort(key=lambda pair: pair[1].p_value if pair[1].p_value is not None else 1.0)
    return found
