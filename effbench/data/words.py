"""From sentences to fixed-length rows of word tokens, for classification."""

from __future__ import annotations

import collections
import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

PADDING, UNKNOWN = 0, 1
FIRST_WORD = 2  # the token of the most frequent word

_WORD = re.compile(r"\w+(?:['\u2019]\w+)*")  # an apostrophe, straight or curled, does not end a word


def words_of(sentence: str) -> list[str]:
    """Return the words of a sentence, in lower case, without punctuation."""
    return _WORD.findall(sentence.lower())


def vocabulary_of(sentences: Iterable[str], size: int) -> list[str]:
    """Return the most frequent words of training sentences, ties by the alphabet.

    With padding and unknown there are `size` tokens.
    """
    counts = collections.Counter(word for sentence in sentences for word in words_of(sentence))
    return sorted(counts, key=lambda word: (-counts[word], word))[: size - FIRST_WORD]


def encode_words(sentences: Sequence[str], vocabulary: Sequence[str], length: int) -> NDArray[np.uint16]:
    """Return (N, length) tokens: a sentence's first words, those not known as UNKNOWN, then PADDING."""
    token_of = {word: token for token, word in enumerate(vocabulary, start=FIRST_WORD)}
    rows = np.full((len(sentences), length), PADDING, np.uint16)
    for row, sentence in zip(rows, sentences, strict=True):
        tokens = [token_of.get(word, UNKNOWN) for word in words_of(sentence)[:length]]
        row[: len(tokens)] = tokens
    return rows
