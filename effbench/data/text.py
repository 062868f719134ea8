"""From text to windows of tokens, one token for each character (or byte)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from effbench.data.source import Arrays, Splits
from effbench.data.splitting import SPLITS
from effbench.recipe import Examples


def alphabet_of(text: str) -> str:
    """Return the different characters of `text`, by code point; a character's position is its token."""
    return "".join(sorted(set(text)))


def encode(text: str, alphabet: str) -> NDArray[np.uint8]:
    """Return the tokens of `text`, (len(text),) uint8.

    Raises:
        ValueError: the alphabet has more than 256 characters, or lacks one of the text's.
    """
    if len(alphabet) > 256:
        raise ValueError(f"an alphabet of {len(alphabet)} characters does not fit into a byte; encode bytes instead")
    known = np.array([ord(c) for c in alphabet], np.uint32)
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    tokens = np.searchsorted(known, codes).clip(max=len(known) - 1)
    strange = codes[known[tokens] != codes]
    if len(strange):
        raise ValueError(f"the alphabet lacks {chr(strange[0])!r}")
    return tokens.astype(np.uint8)


def decode(tokens: Tensor, alphabet: str) -> str:
    """Return the text of (T,) tokens."""
    return "".join(alphabet[token] for token in tokens.tolist())


def pack_text(texts: Mapping[str, str]) -> Arrays:
    """Return the arrays of a text in splits: a stream of tokens for each, and the alphabet they share."""
    alphabet = alphabet_of("".join(texts.values()))
    streams: dict[str, NDArray[Any]] = {split: encode(text, alphabet) for split, text in texts.items()}
    return streams | {"alphabet": np.array([ord(c) for c in alphabet], np.uint32)}


def windows(stream: NDArray[Any], length: int) -> Examples:
    """Cut (L,) tokens into inputs (N, T) and their next tokens (N, T), views of one stream; T = `length`.

    Windows do not overlap: every token but the first is a target once, so one epoch sees the text once.
    """
    cut = torch.from_numpy(stream.astype(np.int64)).unfold(0, length + 1, length)
    return Examples(cut[:, :-1], cut[:, 1:])


def unpack_text(arrays: Arrays, sha256: str, *, length: int) -> Splits:
    """Return the splits of arrays made by `pack_text`, in windows of T = `length` tokens.

    Notes: `vocabulary` (size), `alphabet`, `context` (T), `bytes_per_token` (in UTF-8, over the test stream).
    """
    alphabet = "".join(chr(code) for code in arrays["alphabet"])
    width = np.array([len(c.encode()) for c in alphabet])
    notes = {
        "vocabulary": len(alphabet),
        "alphabet": alphabet,
        "context": length,
        "bytes_per_token": float(width[arrays["test"]].mean()),
    }
    train, validation, test = (windows(arrays[split], length) for split in SPLITS)
    return Splits(train, validation, test, sha256, notes=notes)


def unpack_bytes(arrays: Arrays, sha256: str, *, length: int) -> Splits:
    """Return the splits of a stream of bytes for each, in windows of T = `length` tokens; a byte is its token."""
    notes = {"vocabulary": 256, "context": length, "bytes_per_token": 1.0}
    train, validation, test = (windows(arrays[split], length) for split in SPLITS)
    return Splits(train, validation, test, sha256, notes=notes)
