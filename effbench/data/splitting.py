"""Which example is in which split: fixed once, by a seed, and the same on every machine.

Randomness is numpy's `RandomState`: its stream is frozen for good (NEP 19), which a `Generator`'s is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from effbench.data.source import Arrays, Splits
from effbench.recipe import Examples

Positions = NDArray[np.int64]
SPLITS = ("train", "validation", "test")


def evenly_spaced(count: int, total: int) -> Positions:
    """Return `count` different positions, spread evenly over range(total)."""
    return (2 * np.arange(count, dtype=np.int64) + 1) * total // (2 * count)


def stratified(labels: NDArray[Any], *, validation: int, test: int, seed: int) -> dict[str, Positions]:
    """Split the positions of (N,) labels at random, keeping each class's share within one example."""
    random = np.random.RandomState(seed)
    rest = random.permutation(len(labels))
    chosen: dict[str, Positions] = {}
    for split, count in (("test", test), ("validation", validation)):
        rest = rest[np.argsort(labels[rest], kind="stable")]
        taken = evenly_spaced(count, len(rest))
        chosen[split] = np.sort(rest[taken])
        rest = random.permutation(np.delete(rest, taken))
    return {"train": rest, **chosen}


def hold_out(pieces: Sequence[str], *, validation: int, test: int, chunks: int) -> dict[str, str]:
    """Split a text, given as pieces that belong together, and join each split.

    `chunks` passages for validation and as many for test, spread evenly over the text and taking turns, are
    held out: a tail would be one book or one play only. Passages end where pieces end, so that a joint in the
    training text falls between pieces. The joined splits have at least `validation` and `test` characters.
    """
    ends = np.cumsum([len(piece) for piece in pieces])
    split_of = ["train"] * len(pieces)
    for turn, start in enumerate(evenly_spaced(2 * chunks, int(ends[-1]))):
        split, size = ("validation", validation) if turn % 2 == 0 else ("test", test)
        first = int(np.searchsorted(ends, start, side="right"))
        before = int(ends[first]) - len(pieces[first])
        last = int(np.searchsorted(ends, before + -(-size // chunks)))
        split_of[first : last + 1] = [split] * (last + 1 - first)
    return {s: "".join(p for p, of in zip(pieces, split_of, strict=True) if of == s) for s in SPLITS}


def pack(inputs: NDArray[Any], targets: NDArray[Any], positions: Mapping[str, Positions]) -> dict[str, NDArray[Any]]:
    """Return the arrays `<split>_inputs` (N, ...) and `<split>_targets` (N, ...) of each split."""
    return {
        f"{split}_{part}": whole[chosen]
        for split, chosen in positions.items()
        for part, whole in (("inputs", inputs), ("targets", targets))
    }


def unpack(
    arrays: Arrays,
    sha256: str,
    to_inputs: Callable[[NDArray[Any]], Tensor],
    *,
    classes: int | None = None,
    notes: dict[str, Any] | None = None,
) -> Splits:
    """Return the splits of arrays made by `pack`: inputs by `to_inputs`, targets as int64."""
    train, validation, test = (
        Examples(to_inputs(arrays[f"{split}_inputs"]), torch.from_numpy(arrays[f"{split}_targets"]).long())
        for split in SPLITS
    )
    return Splits(train, validation, test, sha256, classes, notes or {})
