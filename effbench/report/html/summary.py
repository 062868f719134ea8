"""What was compared, and what was shown, in three sentences and what to mind where there are several tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from effbench.analysis.comparison import Comparison, SetResult
from effbench.analysis.ladder import amount_of
from effbench.analysis.verdicts import Verdict
from effbench.report import numbers
from effbench.report.words import counted, listed


def answer(comparisons: Sequence[Comparison], ladder: Sequence[Comparison] = ()) -> list[str]:
    """Return three sentences: what is shown to be better, what worse, and what is not known.

    Where there are smaller budgets, one more says what is better there. Over several tables a last
    one says that each verdict is corrected within its own.

    comparisons: one a workload, at its largest budget.
    ladder: those at all budgets.
    """
    judged = [
        (found, each)
        for found in comparisons
        for each in found.results
        if each.verdict is not None and each.verdict is not Verdict.SKIPPED
    ]
    if not judged:
        return ["There is nothing to compare with the baseline here."]
    return [
        _helps(judged, len(comparisons)),
        *_smaller(comparisons, ladder),
        _hurts(judged, len(comparisons)),
        _unknown(judged),
        *_luck(judged, comparisons),
    ]


Judged = Sequence[tuple[Comparison, SetResult]]
Found = Mapping[str, Sequence[tuple[Comparison, SetResult]]]  # label -> where


def _helps(judged: Judged, tables: int) -> str:
    sets = counted(len({each.label for _, each in judged}), "set")
    better = _by_label(judged, {Verdict.BETTER})
    if not better:
        where = "the one table" if tables == 1 else f"any of {counted(tables, 'table')}"
        return f"None of {sets} of techniques is shown to be better than the baseline in {where}."
    first = sorted(better, key=lambda label: (-len(better[label]), label))
    named = [_named(label, better[label], tables) for label in first]
    verb = "is" if len(better) == 1 else "are"
    where = "" if tables == 1 else f" in one table or more of {tables}"
    return f"{len(better)} of {sets} of techniques {verb} shown to be better than the baseline{where}: {listed(named)}."


def _smaller(largest: Sequence[Comparison], ladder: Sequence[Comparison]) -> Iterator[str]:
    """Say which sets are better at smaller budgets of the same workload and clock, and not at the largest."""
    top = {(each.group.workload, each.group.clock): each for each in largest}
    rungs = [(each, most) for each in ladder if (most := top.get((each.group.workload, each.group.clock)))]
    smaller = [(each, most) for each, most in rungs if (amount_of(each) or 0.0) < (amount_of(most) or 0.0)]
    if smaller:
        budgets = dict.fromkeys(
            each.group.budget for each, _ in sorted(smaller, key=lambda pair: amount_of(pair[0]) or 0)
        )
        others = dict.fromkeys(
            f"{label} on {each.group.workload}" for each, most in smaller for label in _better(each) - _better(most)
        )
        where = f"At the smaller budget{'s' if len(budgets) > 1 else ''} ({listed(budgets)})"
        if others:
            verb = "is" if len(others) == 1 else "are"
            yield f"{where} {counted(len(others), 'other')} {verb} ahead: {listed(sorted(others))}."
        else:
            yield f"{where} no other set is shown to be better."


def _better(comparison: Comparison) -> set[str]:
    return {each.label for each in comparison.results if each.verdict is Verdict.BETTER}


def _named(label: str, found: Sequence[tuple[Comparison, SetResult]], tables: int) -> str:
    """Write `muon (2 of 3; +0.0121 accuracy on mnist1d_cnn)`."""
    comparison, each = found[0]
    difference = numbers.difference(each.difference).partition(" ")[0] if each.difference else ""
    where = f"{difference} {comparison.measure.title} on {comparison.group.workload}"
    return f"{label} ({where})" if tables == 1 else f"{label} ({len(found)} of {tables}; {where})"


def _hurts(judged: Judged, tables: int) -> str:
    worse, breaks = _by_label(judged, {Verdict.WORSE}), _by_label(judged, {Verdict.BREAKS})
    if not worse and not breaks:
        return "None is shown to be worse, and none breaks."
    parts = []
    if worse:
        verb = "is" if len(worse) == 1 else "are"
        parts.append(f"{listed(_often(worse, tables))} {verb} shown to be worse{_where(worse)}")
    if breaks:
        verb = "breaks" if len(breaks) == 1 else "break"
        parts.append(f"{listed(_often(breaks, tables))} {verb}{_where(breaks)}")
    return f"{'; '.join(parts)}."


def _luck(judged: Judged, comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Say of several tables that a verdict is corrected for the sets of its own, where there is any to mistrust."""
    if len(comparisons) > 1 and any(each.verdict in {Verdict.BETTER, Verdict.WORSE} for _, each in judged):
        often = f"{100.0 * (1.0 - comparisons[0].confidence):g} %"
        yield (
            "Verdicts are corrected for the sets of a table, not for the number of tables: where nothing has an "
            f"effect, up to {often} of tables say better or worse by luck, and there are {len(comparisons)}, so some "
            "of this may be luck."
        )


def _often(found: Found, tables: int) -> list[str]:
    """Return labels, the most frequent first, each with its share of the tables where they are of more than one."""
    first = sorted(found, key=lambda label: (-len(found[label]), label))
    if len(_places(found)) == 1:
        return first
    return [f"{label} ({len(found[label])} of {tables})" for label in first]


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
