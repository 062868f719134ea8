"""From rows of the library `datasets` to arrays, once: images to bytes, text to bytes or word tokens.

A training loop that decoded in every epoch would measure the decoder: it costs about 30 times what indexing does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from effbench.data.source import Arrays
from effbench.data.splitting import SPLITS, pack, stratified
from effbench.data.words import encode_words, pack_vocabulary, vocabulary_of

#: `datasets.Dataset` by split of ours; at least "train" and "test".
Parts = Mapping[str, Any]
Decode = Callable[[Parts], Arrays]


def images(image: str, label: str, *, mode: str, validation: int) -> Decode:
    """Return a decoder of columns of images and labels.

    mode: Pillow's: "L" gives (N, H, W), "RGB" gives (N, 3, H, W), uint8.
    validation: so many are carved out of train, stratified.
    """

    def pixels(part: Any) -> NDArray[np.uint8]:
        stacked = np.stack([np.asarray(picture.convert(mode)) for picture in part[image]])
        return np.ascontiguousarray(stacked.transpose(0, 3, 1, 2)) if stacked.ndim == 4 else stacked

    return functools.partial(_labelled, pixels, label, validation)


def sentences(text: str, label: str, *, vocabulary: int, length: int, validation: int) -> Decode:
    """Return a decoder of columns of sentences and labels, into (N, length) word tokens.

    validation: so many are carved out of train, stratified.
    """

    def decode(parts: Parts) -> Arrays:
        words = vocabulary_of(_column(parts["train"], text), vocabulary)

        def tokens(part: Any) -> NDArray[np.uint16]:
            return encode_words(_column(part, text), words, length)

        return _labelled(tokens, label, validation, parts) | pack_vocabulary(words)

    return decode


def stream(text: str, *, between: str = "", most: Mapping[str, int] | None = None) -> Decode:
    """Return a decoder of a column of text, into one stream of bytes for each split.

    Where the hub has no third split, validation and test are every other row of the second.

    between: what to put between rows.
    most: split -> keep the first so many of its bytes; None keeps all.
    """

    def decode(parts: Parts) -> Arrays:
        rows = {split: _column(part, text) for split, part in parts.items()}
        if "validation" not in rows:
            rows["validation"], rows["test"] = rows["test"][::2], rows["test"][1::2]
        kept = most or {}
        joined = {split: between.join(rows[split]).encode()[: kept.get(split)] for split in SPLITS}
        return {split: np.frombuffer(text, np.uint8) for split, text in joined.items()}

    return decode


def _labelled(
    to_inputs: Callable[[Any], NDArray[Any]], label: str, validation: int, parts: Parts
) -> dict[str, NDArray[Any]]:
    inputs = {split: to_inputs(part) for split, part in parts.items()}
    labels = {split: np.asarray(_column(part, label), np.int16) for split, part in parts.items()}
    carved = stratified(labels["train"], validation=validation, test=0, seed=0)
    del carved["test"]
    whole = {"test": np.arange(len(labels["test"]))}
    return pack(inputs["train"], labels["train"], carved) | pack(inputs["test"], labels["test"], whole)


def _column(part: Any, name: str) -> list[Any]:
    """Return a column as a list, read from the Arrow table: row by row it costs ten times as much."""
    values: list[Any] = part.data.column(name).to_pylist()
    return values
