"""effbench new: write the beginnings of a technique, which runs and keeps the laws from the first minute."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from shlex import quote

from effbench import plugins, scaffold
from effbench.report.console import emit


def run(arguments: argparse.Namespace) -> int:
    """Write the files, and say what to do next."""
    known = plugins.load().techniques
    into = Path(arguments.into).expanduser()
    written = scaffold.new_technique(arguments.place, into, package=arguments.package, known=known)
    name = arguments.place.rpartition("/")[2]
    lines = [*(f"wrote {_short(path)}" for path in written), "", *next_steps(name, written, package=arguments.package)]
    emit("\n".join(lines))
    return 0


def next_steps(name: str, written: list[Path], *, package: bool) -> list[str]:
    """Return what to do with the files."""
    found = f"It adds noise to the inputs: put a method of your own in its place, in {_short(_source(name, written))}."
    test = quote(_short(next(path for path in written if path.name == f"test_{name}.py")))
    if package:
        folder = quote(f"{_short(written[0].parent)}[tests]")
        commands = [f"pip install -e {folder}", f"effbench check {name}", f"pytest {test}"]
        return [found, *_indented([*commands, f"effbench run smoke --technique {name}"])]
    file = quote(_short(_source(name, written)))
    plugin = "" if scaffold.BUILT_IN in written[0].parts else f"--plugin {file} "
    commands = [f"effbench check {file}", f"pytest {test}", f"effbench run smoke {plugin}--technique {name}"]
    return [found, *_indented(commands), "Its test needs pytest, which effbench does not bring: pip install pytest"]


def _source(name: str, written: list[Path]) -> Path:
    return next(path for path in written if path.name == f"{name}.py")


def _indented(commands: list[str]) -> list[str]:
    return [f"  {command}" for command in commands]


def _short(path: Path) -> str:
    """Write a path as it is seen from here, where that is shorter."""
    return min(str(path), os.path.relpath(path), key=len)
