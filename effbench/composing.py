"""Compose every set of a suite, in a process of its own: a stranger's function may end its process, or never return."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from effbench.calibrate import trouble
from effbench.errors import DataUnavailable, Refusal
from effbench.execution import Hear, Job, Outcome
from effbench.outcomes import how_it_ended
from effbench.planning import Cell, Composed, Settings, budgets_of
from effbench.pricing import Trouble
from effbench.switches import Switches
from effbench.techniques import Set, Technique, compose
from effbench.trial import Stop

if TYPE_CHECKING:
    from effbench.plugins import Plugins
    from effbench.recipe import Recipe
    from effbench.suite import Suite

SECONDS = 60.0  # in which a set must be composed

Execute = Callable[[Iterable[Job], Hear], Iterator[tuple[Job, Outcome]]]
Sets = Sequence[Set]


def cells_of(suite: Suite, plugins: Plugins, settings: Settings, execute: Execute) -> list[Cell]:
    """Compose every set with every workload's baseline, so that refusals are known before anything trains.

    execute: yields every job with its outcome, as they end.

    Raises:
        DataUnavailable: a workload's data is not here.
        KeyboardInterrupt: Ctrl-C.
    """
    sets = {name: suite.sets_of(name) for name in suite.workloads}
    composed = compose_all(sets, settings.device, execute)
    units = plugins.offers["effbench_clocks"]
    return [
        Cell(name, techniques, budget, found)
        for name in suite.workloads
        for techniques, found in zip(sets[name], composed[name], strict=True)
        for budget in budgets_of(suite, plugins.workloads[name], units)
    ]


def compose_all(sets: Mapping[str, Sets], device: str, execute: Execute) -> dict[str, list[Composed]]:
    """Return, by workload, what comes of each of its sets, in their order.

    One job composes all sets of a workload, one after another. Where it ends before its time, the set that it was at
    has ended it, and those behind that one are composed by another job; or the workload has, before the first set.
    """
    found: dict[str, list[Composed]] = {name: [] for name in sets}
    begun = set()  # workloads with a baseline

    def hear(job: Job, event: dict[str, Any]) -> None:
        if event["event"] == "baseline":
            begun.add(job.payload["workload"])
        elif event["event"] == "composed":
            found[job.payload["workload"]].append(Composed.from_plain(event["composed"]))

    waiting = [name for name in sets if sets[name]]
    while waiting:
        again = []
        with tempfile.TemporaryDirectory(prefix="effbench-") as folder:
            jobs = [_job_of(name, sets[name][len(found[name]) :], device, Path(folder) / name) for name in waiting]
            for job, outcome in execute(jobs, hear):
                name = job.payload["workload"]
                if outcome.result is None:
                    guilty = 1 if name in begun else len(sets[name])
                    found[name] += [Composed(trouble=_trouble(outcome, Path(job.log)))] * guilty
                elif outcome.result["unavailable"]:
                    raise DataUnavailable(outcome.result["unavailable"])
                if len(found[name]) < len(sets[name]):
                    again.append(name)
        waiting = again
    return found


def composed(baseline: Recipe, techniques: Set, known: Mapping[str, Technique]) -> Composed:
    """Return what comes of composing a set with a workload's baseline; torch's switches stay as they are."""
    plain = Switches.now()
    try:
        return Composed(compose(baseline, techniques, known)[0].processes)
    except Refusal as why:
        return Composed(refusal=str(why))
    except (KeyboardInterrupt, Stop):
        raise
    except BaseException as fault:  # noqa: BLE001 - a stranger's code may raise anything
        return Composed(trouble=trouble(fault))
    finally:
        plain.throw()


def _job_of(workload: str, sets: Sets, device: str, log: Path) -> Job:
    payload = {"workload": workload, "sets": [*sets], "device": device, "seconds": SECONDS}
    return Job("compose", payload, log=str(log))


def _trouble(outcome: Outcome, log: Path) -> Trouble:
    """Return what it means for the trials of a set that its composing ended its process, or had to be ended."""
    status, stop, reason = how_it_ended(outcome.ended)
    if outcome.ended == "deadline":
        reason = f"not done after {SECONDS:g} s, and ended"
    words = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    return Trouble(status, stop, f"while the set was composed: {reason}", words)
