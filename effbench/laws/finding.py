"""What a law found."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path

from effbench.errors import words_of


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether a technique keeps a law, and if not, what differed and by how much."""

    law: str
    technique: str  # two of them with a + between, where the law is about pairs
    toy: str  # on which toy; "" where the law needs none
    ok: bool
    detail: str = ""  # what is wrong; where nothing is, what is worth knowing

    def __str__(self) -> str:
        where = f" on the toy {self.toy!r}" if self.toy else ""
        verb = "keeps" if self.ok else "breaks"
        return f"{self.technique} {verb} the law {self.law!r}{where}" + (f": {self.detail}" if self.detail else "")


class Remark(str):
    """What is worth knowing of a law that is kept, or that cannot be told of here; never silence."""

    __slots__ = ()


def explain(fault: BaseException) -> str:
    """Tell what was raised, in its first line, and where."""
    last = traceback.extract_tb(fault.__traceback__)[-1]
    said = words_of(fault).partition("\n")[0]
    return f"{said} (raised in {Path(last.filename).name}, line {last.lineno})"
