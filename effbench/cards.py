"""Method cards: what a technique says of itself, read from its docstring and its decorator."""

from __future__ import annotations

import inspect
import re
import shlex
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from effbench.taxonomy import LEAVES, about
from effbench.toml import literal

if TYPE_CHECKING:
    from effbench.techniques import Technique

_LABEL = re.compile(r"(\w[\w ]*): (.*)")
_ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")


@dataclass(frozen=True, slots=True)
class Card:
    """A technique's docstring, taken apart."""

    summary: str  # its first sentence
    prose: tuple[str, ...]  # paragraphs, "When it helps: ..." among them; those that are indented are kept as they are
    options: Mapping[str, str]  # option -> what it means


def card(technique: Technique) -> Card:
    """Read the docstring of a technique: a sentence, paragraphs, and a line `option: what it means` for each option."""
    summary, *blocks = (inspect.getdoc(technique.function) or "").split("\n\n")
    prose: list[str] = []
    options: dict[str, str] = {}
    for block in blocks:
        for label, text in _items(block):
            if label in technique.options:
                options[label] = text
            else:
                prose.append(text)
    return Card(_joined(summary), tuple(prose), options)


def _items(block: str) -> Iterator[tuple[str, str]]:
    """Yield (label, text) of each labelled item of a block; text without a label is one item, and has its label in it.

    An item goes on until the next line that is not indented and has a label.
    """
    if block.startswith("    "):
        yield "", block
        return
    items: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        found = _LABEL.fullmatch(line)
        if found and (_is_option(found[1]) or found[1].startswith("When ")):
            items.append((found[1], [found[2] if _is_option(found[1]) else line]))
        elif items:
            items[-1][1].append(line)
        else:
            items.append(("", [line]))
    for label, lines in items:
        yield label, _joined("\n".join(lines))


def _is_option(label: str) -> bool:
    return label.isidentifier() and not label[0].isupper()


def _joined(text: str) -> str:
    return " ".join(text.split())


def render(technique: Technique, width: int = 80, named: Sequence[str] = ()) -> str:
    """Return a technique's card as text of `width` columns.

    named: plugins without which a command does not find it.
    """
    found = card(technique)
    facts = {
        "leaf": f"{technique.leaf}: {about(technique.leaf)}",
        "paper": technique.paper,
        "claim": technique.claim,
        "after": ", ".join(technique.after),
        "excludes": "; ".join(f"{name}: {why}" for name, why in technique.conflicts.items()),
        "unequal": technique.unequal and f"to one process: {technique.unequal}",
    }
    facts = {name: text for name, text in facts.items() if text}
    blocks = [f"{technique.name}{_title(technique)}", _wrapped(found.summary, width), _aligned(facts, width)]
    blocks += [text if text.startswith("    ") else _wrapped(text, width) for text in found.prose]
    if technique.options:
        options = {
            f"{name} = {_shown(value)}": found.options.get(name, "") for name, value in technique.options.items()
        }
        blocks.append("Options and their defaults\n" + _aligned(options, width))
    if technique.neutral:
        options_off = ", ".join(f"{name} = {_shown(value)}" for name, value in technique.neutral.items())
        blocks.append(_wrapped(f"It does nothing at {options_off}.", width))
    blocks.append(_how_to_use(technique, named))
    return "\n\n".join(blocks) + "\n"


def _title(technique: Technique) -> str:
    same = technique.title.lower().replace(" ", "_") in {"", technique.name}
    return "" if same else f": {technique.title}"


def _how_to_use(technique: Technique, named: Sequence[str]) -> str:
    """Show how a suite and the command line name the technique, with its first option as an example."""
    first = dict(list(technique.options.items())[:1])
    try:
        in_suite, on_line = literal(first), ", ".join(f"{name}={literal(value)}" for name, value in first.items())
    except TypeError:  # None, which TOML does not have
        in_suite, on_line = "{}", ""
    called = f"{technique.name}({on_line})" if on_line else technique.name
    quote = "'" if '"' in called else '"'
    plugins = "".join(f"--plugin {shlex.quote(plugin)} " for plugin in named)
    lines = [
        "Use it in a suite",
        "  [[techniques]]",
        f"  {technique.name} = {in_suite}",
        "or on the command line",
        f"  effbench run quick {plugins}--technique {quote}{called}{quote}",
    ]
    return "\n".join(lines)


def _shown(value: Any) -> str:
    try:
        return literal(value)
    except TypeError:
        return "not set" if value is None else repr(value)


def _wrapped(text: str, width: int) -> str:
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)


def _aligned(facts: Mapping[str, str], width: int) -> str:
    """Put names in one column and texts beside them."""
    column = max(map(len, facts)) + 4
    rows = []
    for name, text in facts.items():
        filled = textwrap.wrap(text, max(24, width - column), break_long_words=False, break_on_hyphens=False) or [""]
        rows += [f"  {name}".ljust(column) + filled[0], *(" " * column + line for line in filled[1:])]
    return "\n".join(row.rstrip() for row in rows)


def by_leaf(techniques: Iterable[Technique]) -> dict[str, list[Technique]]:
    """Return the techniques of each leaf, in the order of the survey; leaves without one are there, and empty."""
    found: dict[str, list[Technique]] = {leaf: [] for leaf in LEAVES}
    for technique in sorted(techniques, key=lambda technique: technique.name):
        found[technique.leaf].append(technique)
    return found


def readme_table(techniques: Iterable[Technique]) -> str:
    """Return the README's table of techniques, in Markdown."""
    rows = ["| Leaf of the survey | Technique | What it does | Paper |", "| --- | --- | --- | --- |"]
    for leaf, members in by_leaf(techniques).items():
        for position, technique in enumerate(members):
            paper = _ARXIV.sub(r"[arXiv:\1](https://arxiv.org/abs/\1)", technique.paper)
            cells = ("" if position else f" {leaf}", f" `{technique.name}`", f" {card(technique).summary}", f" {paper}")
            rows.append("|" + "".join(cell.replace("|", r"\|") + " |" for cell in cells))
    return "\n".join(rows) + "\n"
