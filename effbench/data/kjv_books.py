"""kjv_books: tell from one verse of the King James Bible which of seven divisions it is from."""

from __future__ import annotations

import bisect

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from effbench.data import kjv
from effbench.data.installed import needs_file
from effbench.data.prepared import prepared_source
from effbench.data.source import Arrays, Splits
from effbench.data.splitting import pack, stratified, unpack
from effbench.data.words import encode_words, vocabulary_of

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
    words = np.frombuffer("\n".join(vocabulary).encode(), np.uint8)
    return pack(encode_words(verses, vocabulary, LENGTH), division, positions) | {"words": words}


def unpack_verses(arrays: Arrays, sha256: str) -> Splits:
    """Return verses (N, 48) as tokens: 0 padding, 1 unknown, then words by frequency; and divisions (N,)."""
    notes = {
        "vocabulary": VOCABULARY,
        "words": bytes(arrays["words"]).decode().split("\n"),
        "divisions": tuple(DIVISIONS),
    }
    return unpack(arrays, sha256, _tokens, classes=len(DIVISIONS), notes=notes)


def _tokens(rows: NDArray[np.uint16]) -> Tensor:
    return torch.from_numpy(rows.astype(np.int64))


SOURCE = prepared_source(
    name="kjv_books",
    summary="31,102 verses of the King James Bible; tell the division (law, history, ... apocalypse)",
    task="sequence classification",
    licence=kjv.LICENCE,
    origin=kjv.ORIGIN,
    size_mib=2.9,
    sha256="cd38a102f9681a0f41a64e94cdc67c61e472efdf9fbbf6310fc1660d3ed158e5",
    build=build,
    unpack=unpack_verses,
    needs=needs_file(*kjv.FILE),
)
