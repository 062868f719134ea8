"""effbench list: what there is to compare, and to compare it on."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable

from effbench.catalogue import CATALOGUE, Thing, packaged_suites
from effbench.commands.layout import columns
from effbench.commands.plugins_of import plugins_of
from effbench.records import plain
from effbench.report.console import Screen, emit
from effbench.taxonomy import about


def run(arguments: argparse.Namespace) -> int:
    """Write the list, for a person or for a program."""
    kind = arguments.what
    things = packaged_suites() if kind == "suites" else CATALOGUE[kind](plugins_of(arguments))
    if arguments.json:
        emit(json.dumps(plain(things), indent=2))  # ASCII, so that no console can spoil it
    else:
        emit("\n".join(_SHOWN[kind](things, Screen.of())))
    return 0


def techniques(things: list[Thing], screen: Screen) -> list[str]:
    """Return techniques below their leaves."""
    lines: list[str] = []
    wide = max((len(thing["name"]) for thing in things), default=0)
    for leaf in dict.fromkeys(thing["leaf"] for thing in things):
        lines += ["", f"{screen.paint(leaf, 'bold')}  {screen.paint(about(leaf), 'dim')}"]
        rows = [(thing["name"].ljust(wide), thing["summary"]) for thing in things if thing["leaf"] == leaf]
        lines += columns(rows, screen, indent=2)
    return lines[1:]


def workloads(things: list[Thing], screen: Screen) -> list[str]:
    """Return workloads with their targets."""
    rows = [(thing["name"], target(thing), thing["budget"], thing["summary"]) for thing in things]
    return columns(rows, screen, title=("workload", "target", "budget", "what it is"))


def target(thing: Thing) -> str:
    """Write a workload's target: `accuracy >= 0.96`."""
    return f"{thing['metric']} {'>=' if thing['higher_is_better'] else '<='} {thing['target']:g}"


def suites(things: list[Thing], screen: Screen) -> list[str]:
    """Return suites with their sizes."""
    rows = [
        (thing["name"], f"{thing['trials']} x {thing['budget'] or 'own budget'}", thing["summary"]) for thing in things
    ]
    return columns(rows, screen, title=("suite", "trials", "what it is for"))


def datasets(things: list[Thing], screen: Screen) -> list[str]:
    """Return data sets, and which of them are on this machine."""
    rows = [
        (thing["name"], "yes" if thing["here"] else "no", f"{thing['size_mib']:g}", thing["summary"])
        for thing in things
    ]
    return columns(rows, screen, title=("data set", "here", "MiB", "what it is"))


def plugins(things: list[Thing], screen: Screen) -> list[str]:
    """Return plugins, where they come from, and how much they offer."""
    rows = []
    for thing in things:
        offers = ", ".join(f"{len(names)} {kind.replace('_', ' ')}" for kind, names in thing["offers"].items())
        rows.append((thing["name"], thing["source"], thing["problem"] or offers or "hears what happens"))
    return columns(rows, screen, title=("plugin", "from", "offers"))


def taxonomy(things: list[Thing], screen: Screen) -> list[str]:
    """Return branches and leaves, and which techniques each has."""
    lines: list[str] = []
    wide = max(len(thing["name"].partition("/")[2]) for thing in things)
    for branch in dict.fromkeys(thing["name"].partition("/")[0] for thing in things):
        leaves = [thing for thing in things if thing["name"].startswith(f"{branch}/")]
        count = sum(len(thing["techniques"]) for thing in leaves)
        lines += ["", f"{screen.paint(branch, 'bold')}  {screen.paint(str(count), 'dim')}"]
        for thing in leaves:
            name = thing["name"].partition("/")[2].ljust(wide)
            names = ", ".join(thing["techniques"]) or "none yet"
            rows = [(name, f"{len(thing['techniques']):2}", thing["about"]), ("", "", names)]
            lines += columns(rows, screen, indent=2)
    return lines[1:]


_SHOWN: dict[str, Callable[[list[Thing], Screen], list[str]]] = {
    "techniques": techniques,
    "workloads": workloads,
    "suites": suites,
    "datasets": datasets,
    "plugins": plugins,
    "taxonomy": taxonomy,
}
