"""What techniques say of themselves, read from their source: nothing is run, and torch is not imported."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from effbench.discovery import GROUP


@dataclass(frozen=True, slots=True)
class Source:
    """The card of a technique, as far as its source shows it without being run."""

    name: str
    leaf: str  # "branch/leaf" of the taxonomy
    summary: str = ""
    prose: tuple[str, ...] = ()  # paragraphs
    paper: str = ""
    claim: str = ""
    options: dict[str, str] = field(default_factory=dict)  # name -> its default, as it is written


def technique_sources(named: Iterable[str] = ()) -> dict[str, Source]:
    """Return the techniques that lie in installed packages, and in the named files and folders, by name.

    What cannot be read is left out: a report is made from records, and cards only add to it.
    """
    found: dict[str, Source] = {}
    for file in [*_installed(), *_named(named)]:
        for source in read(file):
            found.setdefault(source.name, source)
    return found


def _installed() -> Iterator[Path]:
    for entry in importlib.metadata.entry_points(group=GROUP):
        top, *inside = entry.value.partition(":")[0].split(".")
        try:
            spec = importlib.util.find_spec(top)
        except (ImportError, ValueError):
            continue
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            yield from _python_files(Path(folder, *inside))
        if spec and spec.origin and not spec.submodule_search_locations:
            yield Path(spec.origin)


def _named(named: Iterable[str]) -> Iterator[Path]:
    for name in named:
        path = Path(name)
        yield from _python_files(path) if path.is_dir() else [path] if path.suffix == ".py" else []


def _python_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def read(file: Path) -> Iterator[Source]:
    """Yield the techniques of a file: functions under `@technique("branch/leaf", ...)`."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and _name(mark.func) == "technique" and mark.args:
                    yield _source(node, mark)


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _source(function: ast.FunctionDef, mark: ast.Call) -> Source:
    said = {word.arg: _text(word.value) for word in mark.keywords if word.arg}
    summary, *blocks = inspect.cleandoc(ast.get_docstring(function) or "").split("\n\n")
    defaults = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    return Source(
        name=function.name,
        leaf=_text(mark.args[0]),
        summary=" ".join(summary.split()),
        prose=tuple(" ".join(block.split()) for block in blocks),
        paper=said.get("paper", ""),
        claim=said.get("claim", ""),
        options={argument.arg: ast.unparse(default) for argument, default in defaults if default is not None},
    )


def _text(node: ast.expr) -> str:
    """Return a constant text; "" where it is made in another way."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""
