"""The law of description: a stranger can read what a technique is, from whom, and where it belongs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from effbench.errors import nearest
from effbench.taxonomy import LEAVES
from effbench.techniques import Technique

BUILT_IN = "effbench_techniques"
_ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5}|[a-z-]+(\.[A-Z]{2})?/\d{7})")


def described(technique: Technique, known: Collection[str] = ()) -> str:
    """Say what is missing, and what has two spellings; "" where nothing."""
    return "; ".join([*_card(technique), *_names(technique, known), *_place(technique)])


def _card(technique: Technique) -> Iterator[str]:
    text = inspect.getdoc(technique.function) or ""
    first = text.partition("\n")[0]
    if not first.endswith("."):
        yield f"its docstring should begin with one line that is a sentence, found {first!r}"
    for option in technique.options:
        if not re.search(rf"^\s*{re.escape(option)}: \S", text, re.MULTILINE):
            yield f"its docstring has no line that explains the option, as in '{option}: ...'"
    if not (_ARXIV.search(technique.paper) or re.match(r"no paper: \S", technique.paper)):
        yield (
            "its paper should name an arXiv number, as in 'arXiv:1710.09412', or say why not, as in "
            f"'no paper: ...', found {technique.paper!r}"
        )
    if not technique.claim.strip():
        yield "its claim is empty; say what its authors report"
    if technique.leaf not in LEAVES:
        yield f"its leaf {technique.leaf!r} is not in the taxonomy"


def _names(technique: Technique, known: Collection[str]) -> Iterator[str]:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", technique.name):
        yield f"its name {technique.name!r} should be in lower case, words joined by _"
    if technique.name == "baseline":
        yield "the name 'baseline' belongs to the empty set of techniques"
    for list_name, others in (("after", technique.after), ("conflicts", technique.conflicts)):
        for other in others:
            if other not in known and (near := nearest(other, known)):
                yield f"{list_name} names {other!r}, which does not exist; did you mean {near!r}?"
    if technique.name in {*technique.after, *technique.conflicts}:
        yield "it names itself in after or conflicts"


def _place(technique: Technique) -> Iterator[str]:
    module = technique.function.__module__
    if module.partition(".")[0] != BUILT_IN:
        return  # a stranger's file may hold as many techniques as it likes
    expected = ".".join([BUILT_IN, *technique.leaf.split("/"), technique.name])
    if module != expected:
        yield f"it lies in {module}, and by leaf and name it should lie in {expected}"
    file = Path(inspect.getfile(technique.function))
    if file.stem != technique.name:
        yield f"its file is {file.name}, and should be {technique.name}.py"
