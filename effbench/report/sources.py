"""What techniques say of themselves: in their source, which is read and not run, or beside the records of a run."""

from __future__ import annotations

import ast
import dataclasses
import importlib.metadata
import importlib.util
import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from effbench.discovery import GROUP
from effbench.store import Store


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


def said_in(folders: Iterable[str | Path]) -> dict[str, dict[str, str]]:
    """Return what results folders keep of their techniques: name -> {"paper": ..., "claim": ..., "leaf": ...}."""
    found: dict[str, dict[str, str]] = {}
    for folder in folders:
        kept = Store(folder).read_json("claims") if Path(folder).is_dir() else None
        for name, facts in (kept or {}).items():
            if isinstance(facts, dict):
                found[name] = {key: value for key, value in facts.items() if isinstance(value, str)}
    return found


def with_said(sources: Mapping[str, Source], said: Mapping[str, Mapping[str, str]]) -> dict[str, Source]:
    """Return all cards: those of sources, where what was kept of a run goes before what a source says by now.

    said: what `said_in` returns; it has techniques too whose source is not on this machine.
    """
    found = dict(sources)
    for name, facts in said.items():
        known = found.get(name, Source(name, ""))
        found[name] = dataclasses.replace(
            known,
            paper=facts.get("paper") or known.paper,
            claim=facts.get("claim") or known.claim,
            leaf=facts.get("leaf") or known.leaf,
        )
    return found


def published(names: Iterable[str], folders: Iterable[str | Path]) -> dict[str, dict[str, str]]:
    """Return what `said_in` does, and what installed packages say of those of the named techniques that it lacks."""
    said = said_in(folders)
    lacking = set(names) - set(said)
    here = technique_sources() if lacking else {}
    for name in lacking & set(here):
        said[name] = {"paper": here[name].paper, "claim": here[name].claim, "leaf": here[name].leaf}
    return said


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
