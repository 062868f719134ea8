"""What a console can show: its width, its colours, and the characters that it can write."""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TextIO

from wcwidth import wcswidth

_CODES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "magenta": 35, "cyan": 36}

#: What stands in where the encoding has no such character.
_PLAINER = {
    "\N{EM DASH}": "-",
    "\N{MINUS SIGN}": "-",
    "\N{PLUS-MINUS SIGN}": "+-",
    "\N{MULTIPLICATION SIGN}": "x",
    "\N{GREEK CAPITAL LETTER DELTA}": "diff",
    "\N{BLACK STAR}": "*",
    "\N{BOX DRAWINGS LIGHT HORIZONTAL}": "-",
    "\N{HORIZONTAL ELLIPSIS}": "...",
    "\N{MIDDLE DOT}": "-",
}


@dataclass(frozen=True, slots=True)
class Screen:
    """Where text goes: plain, endlessly wide and able to write anything unless a terminal says otherwise."""

    colour: bool = False
    width: int | None = None  # columns; None where lines may be of any length
    encoding: str = "utf-8"

    @classmethod
    def of(cls, stream: TextIO | None = None, environ: Mapping[str, str] = os.environ) -> Screen:
        """Return what a stream, by default standard output, can show.

        Colours are for terminals alone, and not where NO_COLOR is set (no-color.org) or TERM is `dumb`.
        """
        stream = sys.stdout if stream is None else stream
        terminal = stream.isatty()
        return cls(
            colour=terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb",
            width=shutil.get_terminal_size().columns if terminal else None,
            encoding=stream.encoding or "utf-8",
        )

    def paint(self, text: str, *styles: str) -> str:
        """Return text in these styles ("bold", "green", ...), where there are colours; spaces around it stay."""
        core = text.strip()
        if not (self.colour and styles and core):
            return text
        before, _, after = text.partition(core)
        return f"{before}\033[{';'.join(str(_CODES[style]) for style in styles)}m{core}\033[0m{after}"

    def show(self, text: str) -> str:
        """Return text that the console can write, on one line: no control characters, no foreign characters."""
        return encodable(visible(text), self.encoding)


def visible(text: str) -> str:
    """Return text on one line in which control characters are seen instead of obeyed."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or unicodedata.category(c) == "Zs" else repr(c)[1:-1] for c in text)


def encodable(text: str, encoding: str) -> str:
    """Return text with a plain stand-in for each character that the encoding lacks."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return "".join(_stand_in(character, encoding) for character in text)
    return text


def _stand_in(character: str, encoding: str) -> str:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return _PLAINER.get(character) or character.encode("ascii", "backslashreplace").decode("ascii")
    return character


def emit(text: str, stream: TextIO | None = None) -> None:
    """Write text and a line break to a stream, by default standard output, whatever its encoding."""
    stream = sys.stdout if stream is None else stream
    stream.write(encodable(text, stream.encoding or "utf-8") + "\n")


def display_width(text: str) -> int:
    """Return how many columns a console needs for text: two for each wide character."""
    return len(text) if text.isascii() else max(0, wcswidth(text))


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Fill text with spaces up to a display width; the text stands right if asked."""
    space = " " * (width - display_width(text))
    return space + text if right else text + space
