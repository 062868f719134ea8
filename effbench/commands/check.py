"""effbench check: does a technique keep the laws that make results comparable? One line a law."""

from __future__ import annotations

import argparse
import inspect
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import torch

from effbench import laws
from effbench.commands.layout import columns
from effbench.commands.plugins_of import plugins_of
from effbench.discovery import module_from_file
from effbench.errors import PluginError, UnknownName, words_of
from effbench.laws import Finding
from effbench.report.console import Screen, emit
from effbench.techniques import Technique


def run(arguments: argparse.Namespace) -> int:
    """Check every technique that is meant; 1 where one breaks a law."""
    torch.set_num_threads(1)  # toys are too small for two
    screen = Screen.of()
    chosen, known = meant(arguments)
    broken = 0
    for technique in chosen:
        emit(screen.paint(technique.name, "bold"))
        sys.stdout.flush()  # for what follows takes a minute
        findings = [*laws.check(technique, known), *in_company(technique, known)]
        broken += any(not finding.ok for finding in findings)
        emit("\n".join(lines(findings, screen)))
    return int(broken > 0)


def meant(arguments: argparse.Namespace) -> tuple[list[Technique], dict[str, Technique]]:
    """Return the techniques that are meant, by name or by file, and all that there are.

    A file needs no hook to be checked: its techniques are those that are defined in it.

    Raises:
        UnknownName: there is no such technique.
        PluginError: there is no such file, it cannot be loaded, it has no technique, or one whose name is taken.
    """
    name, known = arguments.name, plugins_of(arguments).techniques
    path = Path(os.path.realpath(name))  # which, unlike resolve(), goes no rounds in a loop of links
    if name in known:
        return [known[name]], known
    if path.suffix != ".py" and not path.is_dir():
        raise UnknownName("technique", name, known)
    if own := [technique for technique in known.values() if path in {file_of(technique), *file_of(technique).parents}]:
        return own, known
    own = [technique for file in _files(path) for technique in _defined_in(file)]
    if not own:
        raise PluginError(f"{name} defines no technique; mark a function with @effbench.technique(...)")
    for technique in own:
        if technique.name in known:
            where = file_of(known[technique.name])
            raise PluginError(f"{name}: there is a technique {technique.name!r} already, in {where}")
    return own, known | {technique.name: technique for technique in own}


def file_of(technique: Technique) -> Path:
    """Return the file in which a technique is defined."""
    return Path(inspect.getfile(technique.function)).resolve()


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return [file for file in sorted(path.glob("*.py")) if not file.name.startswith(("_", "test_"))]


def _defined_in(file: Path) -> list[Technique]:
    if not file.is_file():
        raise PluginError(f"there is no file {file}")
    try:
        module = module_from_file(file)
    except KeyboardInterrupt:
        raise
    except BaseException as fault:  # a stranger's module may raise anything, SystemExit too
        raise PluginError(f"{file} cannot be imported: {words_of(fault)}") from fault
    found = [thing for thing in vars(module).values() if isinstance(thing, Technique)]
    return [technique for technique in found if technique.function.__module__ == module.__name__]


def in_company(technique: Technique, known: dict[str, Technique]) -> Iterator[Finding]:
    """Yield what the laws find of a technique together with each other one."""
    for other in known.values():
        if other.name != technique.name:
            yield from laws.check_pairs({each.name: each for each in (technique, other)})


def lines(findings: Iterable[Finding], screen: Screen) -> list[str]:
    """Return one line for each law: where it was checked, or each way in which it is broken."""
    by_law: dict[str, list[Finding]] = {}
    for finding in findings:
        by_law.setdefault(finding.law, []).append(finding)
    rows = []
    for law, found in by_law.items():
        broken = [finding for finding in found if not finding.ok]
        rows += [("broken", law, _what(finding)) for finding in broken]
        if not broken:
            rows.append(("kept", law, _where(found)))
    return [_painted(line, screen) for line in columns(rows, screen, indent=2)]


def _what(finding: Finding) -> str:
    place = f"with {finding.technique}" if "+" in finding.technique else f"on {finding.toy}" if finding.toy else ""
    first, _, rest = finding.detail.partition("\n")
    return (f"{place}: {first}" if place else first) + (" ..." if rest else "")


def _where(found: list[Finding]) -> str:
    if any("+" in finding.technique for finding in found):
        return f"in {len(found)} pair{'s' * (len(found) > 1)}"
    toys = [finding.toy for finding in found if finding.toy]
    remarks = "; ".join(f"{toys}: {remark}" for remark, toys in _remarks(found).items())
    return f"on {', '.join(toys)}" + (f" ({remarks})" if remarks else "") if toys else ""


def _remarks(found: list[Finding]) -> dict[str, str]:
    """Return remark -> the toys on which it was made."""
    toys = dict[str, list[str]]()
    for finding in found:
        if finding.detail:
            toys.setdefault(finding.detail, []).append(finding.toy)
    return {remark: ", ".join(names) for remark, names in toys.items()}


def _painted(line: str, screen: Screen) -> str:
    for word, colour in (("kept", "green"), ("broken", "red")):
        if line.startswith(f"  {word} "):
            return f"  {screen.paint(word, colour)}{line[2 + len(word) :]}"
    return line
