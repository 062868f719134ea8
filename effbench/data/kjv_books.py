"""kjv_books: tell from one verse of the King James Bible which of seven divisions it is from.

Inputs (N, 48) are words: 0 is padding, 1 a word not known, then the words of train by frequency.
"""

from __future__ import annotations

import bisect
import functools

import numpy as np
from numpy.typing import NDArray

from effbench.data import kjv
from effbench.data.installed import needs_file
from effbench.data.prepared import prepared_source
from effbench.data.source import Arrays
from effbench.data.splitting import pack, stratified
from effbench.data.words import encode_words, pack_vocabulary, unpack_words, vocabulary_of

#: Division -> its first book, as the package numbers them.
DIVISIONS = {
    "law": 1,
    "history": 6,
    "wisdom": 18,
    "prophets": 23,
    "gospels and acts": 40,
    "epistles": 45,
    "apocalypse": 66,
}
VOCABULARY = 8000
LENGTH = 48  # words; 95 % of the verses have at most 46


def originals() -> tuple[list[str], NDArray[np.uint8]]:
    """Return all verses, and the division of each, (N,)."""
    text, verses = kjv.original()
    first_books = list(DIVISIONS.values())
    division = [bisect.bisect(first_books, verse // 1_000_000) - 1 for verse in verses]
    return [text[start:end].strip() for start, end in verses.values()], np.array(division, np.uint8)


def build() -> Arrays:
    """Split the verses at random, so that neighbours may be apart, and number the words of train."""
    verses, division = originals()
    positions = stratified(division, validation=1000, test=2000, seed=0)
    vocabulary = vocabulary_of((verses[i] for i in positions["train"]), VOCABULARY)
    return pack(encode_words(verses, vocabulary, LENGTH), division, positions) | pack_vocabulary(vocabulary)


SOURCE = prepared_source(
    name="kjv_books",
    summary="31,102 verses of the King James Bible; tell the division (law, history, ... apocalypse)",
    task="sequence classification",
    licence=kjv.LICENCE,
    origin=kjv.ORIGIN,
    size_mib=2.9,
    sha256="cd38a102f9681a0f41a64e94cdc67c61e472efdf9fbbf6310fc1660d3ed158e5",
    build=build,
    unpack=functools.partial(unpack_words, classes=len(DIVISIONS), notes={"divisions": tuple(DIVISIONS)}),
    needs=needs_file(*kjv.FILE),
)
