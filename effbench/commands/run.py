"""effbench run: train all that a suite compares, and show the table."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

from effbench import messages, trackers
from effbench import suite as suites
from effbench.analysis.stopping import until_decided
from effbench.api import default_jobs
from effbench.budget import Budget
from effbench.commands.dry_run import dry_run
from effbench.commands.plugins_of import plugins_of
from effbench.errors import InvalidSuite, UnknownName
from effbench.planning import Settings
from effbench.plugins import Plugins
from effbench.report import progress
from effbench.report.console import Screen, emit
from effbench.report.formats import formats
from effbench.report.tables import comparison_table
from effbench.runner import run_suite
from effbench.sets import Set, parse_set
from effbench.store import Store
from effbench.suite import Suite


def run(arguments: argparse.Namespace) -> int:
    """Run what the suite still lacks, and show its table; 1 where a trial failed."""
    plugins = plugins_of(arguments)
    settings = asked_settings(arguments, plugins)
    suite = asked_suite(arguments, plugins)
    store = Store(arguments.out or Path("results") / suite.name)
    enough = until_decided(suite.sets_of, suite.seeds, arguments.margin) if arguments.until_decided else None
    if arguments.dry_run:
        emit("\n".join(dry_run(suite, plugins, store, settings, fresh=arguments.fresh, screen=Screen.of())))
        return 0
    trackers.register(plugins.manager, arguments.track, store.path)
    with showing_progress(plugins, settings):
        try:
            done = run_suite(
                suite,
                plugins,
                store,
                settings,
                fail_fast=arguments.fail_fast,
                fresh=arguments.fresh,
                enough=enough,
                warn=messages.warn,
            )
        except KeyboardInterrupt:
            words = f"what is finished is in {store.path}, and the same command goes on from there"
            raise KeyboardInterrupt(words) from None
    emit(formats()["console"](comparison_table(done.records)))
    emit(f"\nThe records are in {store.path}; `effbench table {quote(str(store.path))}` shows this again.")
    return done.exit_code


@contextlib.contextmanager
def showing_progress(plugins: Plugins, settings: Settings) -> Iterator[None]:
    """Show on standard error how it goes; give the terminal back at the end, whatever happens."""
    shown = progress.observer(settings.jobs)
    plugins.manager.register(shown, "progress")
    try:
        yield
    finally:
        if isinstance(shown, progress.Screen):
            shown.close()


def asked_settings(arguments: argparse.Namespace, plugins: Plugins) -> Settings:
    """Return how to run a suite here."""
    for name, _ in arguments.data:
        if name not in plugins.offers["effbench_datasets"]:
            raise UnknownName("data set", name, plugins.offers["effbench_datasets"], where="--data: ")
    return Settings(
        jobs=arguments.jobs or default_jobs(arguments.threads),
        threads=arguments.threads,
        device=arguments.device,
        named=tuple(arguments.plugin),
        data={name: str(Path(path).expanduser()) for name, path in arguments.data},
    )


def asked_suite(arguments: argparse.Namespace, plugins: Plugins) -> Suite:
    """Return the suite with what the command line says differently, all of it checked.

    Raises:
        EffbenchError: the suite's file or an option is wrong; names it, with the near right name.
    """
    for name in arguments.workload:
        if name not in plugins.workloads:
            raise UnknownName("workload", name, plugins.workloads, where="--workload: ")
    budget, total = getattr(arguments, "budget", None), getattr(arguments, "total", None)
    if budget is not None:
        Budget.parse(budget, "--budget", more_units=plugins.offers["effbench_clocks"])
    if total is not None:
        suites.wall_seconds(total, "--total")
    sets = [_set(text, plugins) for text in getattr(arguments, "technique", ())]
    suite = suites.load(arguments.suite, plugins).override(
        budget=budget or "",
        total=total or "",
        seeds=getattr(arguments, "seeds", None) or (),
        techniques=sets,
        workloads=tuple(dict.fromkeys(arguments.workload)),
    )
    suite.check(plugins)
    return suite


def _set(text: str, plugins: Plugins) -> Set:
    chosen = parse_set(text)
    for _, why in suites.set_faults(chosen, plugins):
        raise InvalidSuite(f"--technique {text!r}: {why}")
    return chosen
