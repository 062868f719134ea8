"""A drawing with its words, as the template takes it."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class Panel:
    """A drawing with its words."""

    title: str
    about: str
    drawing: Markup
    keys: tuple[tuple[int, str], ...] = ()  # slot -> what it stands for
    kind: str = "s"  # "s" for sets, "p" for parts
    note: str = ""
