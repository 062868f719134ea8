"""The parts of the page beyond one comparison: scores, ladder, Pareto fronts, profiles, interactions, two tracks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from effbench.analysis.comparison import Comparison
from effbench.analysis.interactions import interactions
from effbench.analysis.intervals import Estimate
from effbench.analysis.ladder import Ladder, ladders
from effbench.analysis.pareto import fronts
from effbench.analysis.profiles import profiles
from effbench.analysis.scores import Score, scores
from effbench.analysis.tracks import TwoTracks, tracks
from effbench.report import numbers
from effbench.report.figures import interactions as crossed
from effbench.report.figures import ladder as climbed
from effbench.report.figures import pareto
from effbench.report.figures import profiles as profiled
from effbench.report.figures import scores as scored
from effbench.report.html.panel import Panel, panel

_FEWEST_PROFILED = 3  # workloads; with fewer, a profile has two steps or none


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the page."""

    anchor: str
    short: str  # in the bar at the top
    title: str
    about: str
    panels: tuple[Panel, ...] = ()
    sentences: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def analyses(comparisons: Sequence[Comparison], main: Sequence[Comparison]) -> Iterator[Part]:
    """Yield the parts that these records have something for.

    main: one comparison a workload, at its largest budget.
    """
    if len(main) > 1 and (part := _scores(scores(main)[0])):
        yield part
    if found := ladders(comparisons):
        yield _ladders(found)
    if part := _pareto(main):
        yield part
    if len(main) >= _FEWEST_PROFILED and (part := _profiles(main)):
        yield part
    if part := _interactions(main):
        yield part
    if both := tracks(comparisons):
        yield _tracks(both)


def _scores(found: Sequence[Score]) -> Part | None:
    figure = scored.scores(found)
    if not figure.rows:
        return None
    rows = [
        (
            each.label,
            "—" if each.ratio.mean is None else numbers.significant(each.ratio.mean, 4),
            _interval(each.ratio.low, each.ratio.high),
            _share(each.p_better),
            _share(each.p_best),
            f"{each.workloads}/{each.of}",
        )
        for each in found
    ]
    return Part(
        "scores",
        "Scores",
        "Scores over all workloads",
        f"{figure.about} Chances are of the true order, from these seeds.",
        (panel(figure, told=True),),
        head=("set", "score", "95 % interval", "P(better)", "P(best)", "workloads"),
        rows=tuple(rows),
    )


def _interval(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return numbers.NOTHING
    return f"[{numbers.significant(low, 4)}, {numbers.significant(high, 4)}]"


def _share(value: float | None) -> str:
    return numbers.NOTHING if value is None else f"{100.0 * value:.0f} %"


def _ladders(found: Sequence[Ladder]) -> Part:
    by_workload: dict[tuple[str, str], list[Ladder]] = {}
    for each in found:
        by_workload.setdefault((each.workload, each.clock), []).append(each)
    slots = climbed.shared_slots(found)
    figures = [climbed.ladder(several, slots) for several in by_workload.values()]
    sentences = [f"{each.workload}: {each.sentence}." for each in found if each.crossings]
    return Part(
        "ladder",
        "Ladder",
        "Budget ladder",
        "The same comparison at several budgets, the baseline retrained at each; upwards is better. The sets that "
        "do best at the largest budget are drawn.",
        tuple(panel(figure) for figure in figures if figure.lines),
        tuple(sentences),
    )


def _pareto(main: Sequence[Comparison]) -> Part | None:
    found = [front for each in main for front in fronts(each) if len(front.points) > 2 and pareto.tells(front)]
    if not found:
        return None
    return Part(
        "pareto",
        "Pareto",
        "Quality against cost",
        "Up is better, left is cheaper. Named sets are on the front: no other complete set is better in one and no "
        "worse in the other; the stairs join them. Crosses are 95 % intervals; very wide ones are cut off.",
        tuple(panel(pareto.pareto(front)) for front in found),
    )


def _profiles(main: Sequence[Comparison]) -> Part | None:
    found = profiles(main)
    if not found:
        return None
    figure = profiled.profiles(found)
    rows = [(each.label, f"{each.score:.3f}", _interval(each.low, each.high)) for each in found]
    return Part(
        "profiles",
        "Profiles",
        "Performance profiles",
        f"{figure.about} Unlike the scores above, a profile changes when a rival joins.",
        (panel(figure),),
        head=("set", "AlgoPerf score", "95 % interval"),
        rows=tuple(rows),
    )


def _interactions(main: Sequence[Comparison]) -> Part | None:
    found = [crossed.interactions(each) for each in map(interactions, main) if each is not None and each.effects]
    if not found:
        return None
    return Part(
        "interactions",
        "Interactions",
        "Techniques together",
        "Main effects, and interactions of pairs: right of zero, the pair is worth more than its parts.",
        tuple(panel(figure) for figure in found),
    )


def _tracks(found: Sequence[TwoTracks]) -> Part:
    rows = [
        (each.workload, each.label, _difference(each.per_step), _difference(each.per_budget), str(each.finding))
        for each in found
    ]
    return Part(
        "tracks",
        "Two tracks",
        "Does it help, and does it pay?",
        "At equal steps the technique's own cost is waived; at an equal budget it is charged.",
        head=("workload", "set", "at equal steps", "at an equal budget", "together"),
        rows=tuple(rows),
    )


def _difference(found: Estimate | None) -> str:
    return numbers.NOTHING if found is None else numbers.difference(found)
