"""effbench show: all about a technique, a workload, a suite or a data set."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import effbench
from effbench import cards, catalogue
from effbench import suite as suites
from effbench.commands.layout import columns, paragraph
from effbench.commands.list import target
from effbench.commands.plugins_of import plugins_of
from effbench.errors import UnknownName
from effbench.plugins import Plugins
from effbench.records import label
from effbench.report.console import Screen, emit

_WIDEST = 100  # columns of prose


def run(arguments: argparse.Namespace) -> int:
    """Write everything of that name."""
    plugins, screen = plugins_of(arguments), Screen.of()
    found = ["\n".join(lines).rstrip() for lines in everything(arguments.name, plugins, screen, arguments.plugin)]
    if not found:
        raise UnknownName("technique, workload, suite or data set", arguments.name, names(plugins))
    emit("\n\n".join(found))
    return 0


def names(plugins: Plugins) -> list[str]:
    """Return all names that can be shown."""
    return sorted({*plugins.techniques, *plugins.workloads, *suites.packaged(), *plugins.offers["effbench_datasets"]})


def everything(name: str, plugins: Plugins, screen: Screen, named: Sequence[str] = ()) -> Iterator[list[str]]:
    """Yield the lines about each thing of that name.

    named: plugins as the command line names them.
    """
    if name in plugins.techniques:
        is_ours = plugins.origin("effbench_techniques", name) == "builtin"
        card = cards.render(plugins.techniques[name], min(_WIDEST, screen.width or 80), () if is_ours else named)
        first, *rest = map(screen.show, card.splitlines())
        yield [screen.paint(first, "bold"), *rest]
    if name in plugins.workloads:
        yield workload(next(thing for thing in catalogue.workloads(plugins) if thing["name"] == name), screen)
    if name in suites.packaged() or name.endswith(".toml"):
        yield suite(suites.load(name, plugins), plugins, screen)
    if name in plugins.offers["effbench_datasets"]:
        yield dataset(next(thing for thing in catalogue.datasets(plugins) if thing["name"] == name), screen)


def workload(thing: catalogue.Thing, screen: Screen) -> list[str]:
    """Return what a workload is."""
    facts = {
        "data set": thing["dataset"],
        "model": thing["model"],
        "baseline": thing["baseline"],
        "judged by": f"{thing['metric']}, {'higher' if thing['higher_is_better'] else 'lower'} is better",
        "target": f"{target(thing)} on validation",
        "budget": f"{thing['budget']} a trial, where a suite says nothing else",
        "one step": f"{1000 * thing['step_seconds']:.3g} ms of the reference machine",
    }
    return _sheet(thing["name"], thing["summary"], facts, screen)


def suite(asked: suites.Suite, plugins: Plugins, screen: Screen) -> list[str]:
    """Return what a suite compares, and on what."""
    budgets = {name: asked.budget_of(plugins.workloads[name]) for name in asked.workloads}
    facts = {
        "trials": f"{asked.trials}, of {_count(asked.seeds, 'seed')} ({', '.join(map(str, asked.seeds))})",
        "total": asked.total,
        "file": asked.path,
        "schema": f"{Path(effbench.__file__).parent / 'suite.schema.json'}, for editors",
    }
    lines = _sheet(asked.name, asked.summary, facts, screen)
    lines += ["", "Workloads", *columns([*budgets.items()], screen, indent=2)]
    for title, sets in {"": asked.sets, **asked.only}.items():
        lines += ["", f"Techniques, {title} alone" if title else "Techniques"]
        lines += [f"  {screen.show(label(chosen))}" for chosen in sets]
    return lines


def _count(things: Sequence[object], word: str) -> str:
    return f"{len(things)} {word}{'s' * (len(things) != 1)}"


def dataset(thing: catalogue.Thing, screen: Screen) -> list[str]:
    """Return where a data set comes from, and under which licence."""
    facts = {
        "task": thing["task"],
        "size": f"{thing['size_mib']:g} MiB",
        "licence": thing["licence"],
        "origin": thing["origin"],
        "sha256": thing["sha256"],
        "here": "yes" if thing["here"] else f"no: {thing['missing']}",
    }
    return _sheet(thing["name"], thing["summary"], facts, screen)


def _sheet(name: str, summary: str, facts: Mapping[str, Any], screen: Screen) -> list[str]:
    rows = [(fact, value) for fact, value in facts.items() if value]
    about = ["", *paragraph(summary, screen)] if summary else []
    return [screen.paint(screen.show(name), "bold"), *about, "", *columns(rows, screen, indent=2)]
