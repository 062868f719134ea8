"""From sentences to fixed-length rows of word tokens, for classification."""

from __future__ import annotations

import collections
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from effbench.data.source import Arrays, Splits
from effbench.data.splitting import unpack

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


def pack_vocabulary(vocabulary: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return the vocabulary as an array `words`: UTF-8, a line for each."""
    return {"words": np.frombuffer("\n".join(vocabulary).encode(), np.uint8)}


def unpack_words(arrays: Arrays, sha256: str, *, classes: int, notes: dict[str, Any] | None = None) -> Splits:
    """Return the splits of packed word tokens and their vocabulary; targets (N,) are classes.

    Notes: `vocabulary` (size), `words` (of token FIRST_WORD and on), and those given.
    """
    words = bytes(arrays["words"]).decode().split("\n")
    known = {"vocabulary": FIRST_WORD + len(words), "words": words}
    return unpack(arrays, sha256, _tokens, classes=classes, notes=known | (notes or {}))


def _tokens(rows: NDArray[np.uint16]) -> Tensor:
    return torch.from_numpy(rows.astype(np.int64))
