"""effbench scores: each set over all workloads, as a ratio to the frozen baseline. Never imports torch."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence

from effbench.analysis.comparison import Comparison, compare
from effbench.analysis.profiles import Profile, profiles
from effbench.analysis.scores import Score, rungs, scores
from effbench.analysis.strata import BOOTSTRAP_FROM
from effbench.commands.layout import columns, paragraph
from effbench.commands.table import RESULTS, newest, records_in
from effbench.records import canonical, plain
from effbench.report.console import Screen, emit
from effbench.report.numbers import NOTHING, ends, significant

_NOTES = (
    "score: geometric mean, over workloads and paired seeds, of quality over the baseline's; no rival changes it",
    "P(better), P(best): chances of the true order, as far as these seeds tell",
    f"{NOTHING}: no spread to judge by, on some workload",
    "AlgoPerf: the area below the performance profile (arXiv:2306.07179), which depends on who else is there",
    f"AlgoPerf's interval: from {BOOTSTRAP_FROM} seeds on",
)


def run(arguments: argparse.Namespace) -> int:
    """Show the scores of each rung of budgets."""
    comparisons = compare(records_in(arguments.results or [newest(RESULTS)]), arguments.metric)
    found = [
        (each, scored, {canonical(profile.techniques): profile for profile in profiles(each)})
        for each, scored in zip(rungs(comparisons), scores(comparisons), strict=True)
    ]
    if arguments.json:
        rows = [
            {**dataclasses.asdict(score), "algoperf": profile[name].score if name in profile else None}
            for _, scored, profile in found
            for score in scored
            for name in [canonical(score.techniques)]
        ]
        emit(json.dumps(plain(rows), allow_nan=False, ensure_ascii=False, indent=2))
    else:
        emit("\n".join(lines(found, Screen.of())))
    return 0


def lines(
    found: Sequence[tuple[Sequence[Comparison], Sequence[Score], Mapping[str, Profile]]], screen: Screen
) -> Iterator[str]:
    """Yield a table for each rung, then how to read it."""
    title = ("techniques", "workloads", "score", "95 % interval", "P(better)", "P(best)", "AlgoPerf", "95 % interval")
    for rung, scored, profile in found:
        yield screen.paint(", ".join(f"{each.group.workload} in {each.group.budget}" for each in rung), "bold")
        rows = [_row(score, profile.get(canonical(score.techniques))) for score in scored]
        yield from [*columns(rows, screen, title=title, indent=2), ""]
    for note in _NOTES:
        yield from paragraph(note, screen)


def _row(score: Score, profile: Profile | None) -> tuple[str, ...]:
    return (
        score.label,
        f"{score.workloads}/{score.of}",
        NOTHING if score.ratio.mean is None else significant(score.ratio.mean, 4),
        ends(score.ratio.low, score.ratio.high, 4),
        _share(score.p_better),
        _share(score.p_best),
        NOTHING if profile is None else f"{profile.score:.3f}",
        NOTHING if profile is None else ends(profile.low, profile.high, 4),
    )


def _share(value: float | None) -> str:
    return NOTHING if value is None else f"{100.0 * value:.0f} %"
