"""effbench from Python: the same as on the command line, in two functions."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from effbench import machine
from effbench.errors import EffbenchError

if TYPE_CHECKING:
    import pandas as pd


def run(
    suite: str | os.PathLike[str],
    *,
    budget: str = "",
    total: str = "",
    seeds: Sequence[int] = (),
    techniques: Iterable[Mapping[str, Mapping[str, Any]] | str] = (),
    workloads: Sequence[str] = (),
    plugins: Iterable[str | os.PathLike[str]] = (),
    out: str | os.PathLike[str] = "",
    jobs: int = 0,
    threads: int = 1,
    device: str = "cpu",
    data: Mapping[str, str | os.PathLike[str]] | None = None,
    fail_fast: bool = False,
    fresh: bool = False,
    until_decided: bool = False,
    margin: str = "1%",
    track: Sequence[str] = (),
    progress: bool = True,
) -> pd.DataFrame:
    """Run what a suite still lacks, and return its results, one row a trial.

    suite: the name of a suite that comes with effbench, or the path of a TOML file.
    budget: of each trial, instead of the suite's: "60s", "2000 steps", "5M tokens", ...
    total: of the whole suite, in wall time; trials that cannot end within it are recorded as not started.
    techniques: sets on top of the suite's: "mixup(alpha=0.1)+ema", or {"mixup": {"alpha": 0.1}, "ema": {}}.
    workloads: train on these alone.
    plugins: files, folders or modules that offer more techniques or workloads.
    out: the results folder; default: results/<name of the suite>.
    jobs: processes side by side; 0 takes as many as there are cores for `threads` each.
    threads: of each process.
    data: data set -> folder of a local copy to take it from.
    fail_fast: start nothing after the first failure.
    fresh: run again what is finished.
    until_decided: stop a set when its seeds have told, by a group-sequential test.
    margin: differences up to this size are none: "1%" of the baseline's mean, or "0.002".
    track: write trials to these trackers too, below `out`: "mlflow", "tensorboard", "trackio", "wandb".
    progress: show on standard error how it goes.

    Raises:
        EffbenchError: something asked for does not exist or cannot be; nothing was trained.
        KeyboardInterrupt: Ctrl-C; what is finished is kept, what ran is recorded as interrupted.
    """
    from effbench import plugins as loading
    from effbench import suite as suites
    from effbench import trackers
    from effbench.analysis import stopping
    from effbench.planning import Settings
    from effbench.report.progress import observer
    from effbench.runner import run_suite
    from effbench.sets import parse_set
    from effbench.store import Store

    for what, given in {"seeds": seeds, "techniques": techniques, "workloads": workloads, "plugins": plugins}.items():
        if isinstance(given, str | os.PathLike):
            raise EffbenchError(f"{what} = {given!r}: give a list, be it of one: [{given!r}]")
    named = tuple(os.fspath(plugin) for plugin in plugins)
    loaded = loading.load(named)
    for problem in loaded.problems:
        warnings.warn(str(problem), stacklevel=2)
    sets = [parse_set(chosen) if isinstance(chosen, str) else chosen for chosen in techniques]
    asked = suites.load(os.fspath(suite), loaded).override(
        budget=budget, total=total, seeds=seeds, techniques=sets, workloads=workloads
    )
    asked.check(loaded)
    copies = {name: os.fspath(path) for name, path in (data or {}).items()}
    settings = Settings(jobs or default_jobs(threads), threads, device, named, copies)
    folder = Path(out) if out else Path("results") / asked.name
    trackers.register(loaded.manager, track, folder)
    with contextlib.ExitStack() as at_the_end:
        if progress:
            shown = at_the_end.enter_context(contextlib.closing(observer(settings.jobs)))
            loaded.manager.register(shown, "progress")
        enough = stopping.until_decided(asked.sets_of, asked.seeds, margin) if until_decided else None
        run_suite(asked, loaded, Store(folder), settings, fail_fast=fail_fast, fresh=fresh, enough=enough)
    return load_results(folder)


def table(
    *folders: str | os.PathLike[str],
    metric: str | None = None,
    workload: str | None = None,
    against: str | None = None,
) -> pd.DataFrame:
    """Compare what was run: one row a set of techniques, workload and budget, as `effbench table` shows them.

    Numbers are in full precision, with units in the names of their columns. `mean`, `difference` and their ends are
    in the unit of `metric`, of which the row says the name; what was spent, in the unit of `clock`.

    metric: what to compare; default: each workload's headline metric, on test.
    workload: of this one alone.
    against: the set to compare with, as `mixup(alpha=0.1)+ema`; default: the baseline.

    Raises:
        EffbenchError: a folder does not exist, or cannot be read.
        InvalidSuite: `against` is not written as a set is.
        UnknownName: there is no such workload, no record with such a metric, or none of the set `against`.
    """
    from effbench.analysis.noise import read_aa
    from effbench.report.frames import to_frame
    from effbench.report.tables import comparison_table
    from effbench.sets import parse_set
    from effbench.store import read_records

    other = parse_set(against) if against else None
    return to_frame(comparison_table(read_records(folders), metric, workload, aa=read_aa(folders), against=other))


def default_jobs(threads: int) -> int:
    """Return how many trials run side by side: as many as there are cores for `threads` each."""
    return max(1, machine.cores() // max(1, threads))


def load_results(*folders: str | os.PathLike[str]) -> pd.DataFrame:
    """Return the results of one or more folders, one row a trial, units in the names of the columns.

    Raises:
        EffbenchError: a folder does not exist, or cannot be read.
    """
    from effbench.analysis.frame import load_results as load

    return load(folders)
