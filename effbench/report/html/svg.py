"""SVG as text: elements whose attributes and texts are escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from markupsafe import Markup

from effbench.report.console import visible


def element(name: str, inside: str = "", **attributes: float | str | None) -> str:
    """Return an element. A `_` in an attribute's name stands for `-`, one at its end for nothing; None leaves it out.

    inside: markup that is safe already; use `text` for words.
    """
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(visible(value)) if isinstance(value, str) else f"{value:g}"}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{words}>{inside}</{name}>" if inside else f"<{name}{words}/>"


def text(words: str, x: float, y: float, **attributes: float | str | None) -> str:
    """Return a text at (x, y)."""
    return element("text", escape(visible(words)), x=x, y=y, **attributes)


def tip(words: str) -> str:
    """Return what is said where the pointer rests on the element around it."""
    return f"<title>{escape(visible(words))}</title>"


def path(points: Iterable[tuple[float, float]], *, close: bool = False) -> str:
    """Return the `d` of a path through points."""
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points) + ("Z" if close else "")


def drawing(inside: Iterable[str], width: float, height: float, title: str, about: str) -> Markup:
    """Return a whole drawing that says what it shows to those who cannot see it."""
    words = f"{title}. {about}" if about else title
    body = "".join(inside)
    opening = f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(visible(words))}">'
    return Markup(f"{opening}{body}</svg>")  # noqa: S704 - all words went through `escape`


def shortened(words: str, most: int) -> str:
    """Return words of at most so many characters, cut in the middle, since names often differ at the end."""
    if len(words) <= most:
        return words
    tail = most * 4 // 7
    return f"{words[: most - 1 - tail]}\N{HORIZONTAL ELLIPSIS}{words[-tail:]}"
