"""The kinds of figures that can be asked for by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from effbench.analysis.comparison import Comparison
from effbench.analysis.interactions import interactions as crossed
from effbench.analysis.ladder import ladders
from effbench.analysis.pareto import fronts
from effbench.analysis.profiles import profiles as profiled
from effbench.analysis.scores import scores as scored
from effbench.report.figures.curves import curves, shared_slots
from effbench.report.figures.figure import Figure
from effbench.report.figures.forest import forest
from effbench.report.figures.interactions import interactions
from effbench.report.figures.ladder import ladder
from effbench.report.figures.ladder import shared_slots as ladder_slots
from effbench.report.figures.ledger import ledger
from effbench.report.figures.pareto import pareto, tells
from effbench.report.figures.profiles import profiles
from effbench.report.figures.scores import scores


def _forest(found: Sequence[Comparison]) -> list[Figure]:
    return [figure for each in found if (figure := forest(each)).rows]


def _curves(found: Sequence[Comparison]) -> list[Figure]:
    slots = shared_slots(found)
    return [figure for each in found if (figure := curves(each, slots=slots)).lines]


def _ledger(found: Sequence[Comparison]) -> list[Figure]:
    return [figure for each in found if (figure := ledger(each)).rows]


def _ladder(found: Sequence[Comparison]) -> list[Figure]:
    by_workload: dict[tuple[str, str], list[int]] = {}
    every = ladders(found)
    for number, each in enumerate(every):
        by_workload.setdefault((each.workload, each.clock), []).append(number)
    slots = ladder_slots(every)
    return [figure for several in by_workload.values() if (figure := ladder([every[i] for i in several], slots)).lines]


def _pareto(found: Sequence[Comparison]) -> list[Figure]:
    return [pareto(front) for each in found for front in fronts(each) if tells(front)]


def _profiles(found: Sequence[Comparison]) -> list[Figure]:
    every = profiled(found)
    return [profiles(every)] if every else []


def _interactions(found: Sequence[Comparison]) -> list[Figure]:
    return [interactions(each) for each in map(crossed, found) if each is not None and each.effects]


def _scores(found: Sequence[Comparison]) -> list[Figure]:
    return [figure for rung in scored(found) if (figure := scores(rung)).rows]


#: kind -> all its figures, one a workload where there are several.
KINDS: dict[str, Callable[[Sequence[Comparison]], list[Figure]]] = {
    "curves": _curves,
    "forest": _forest,
    "interactions": _interactions,
    "ladder": _ladder,
    "ledger": _ledger,
    "pareto": _pareto,
    "profiles": _profiles,
    "scores": _scores,
}
