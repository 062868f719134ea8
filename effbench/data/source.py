"""What a data set is: where it comes from, under which licence, and how it becomes tensors."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from effbench.errors import DataUnavailable
from effbench.recipe import Examples

#: The compact form in which a data set is built, stored and hashed: uint8 images, a byte for each character.
Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Splits:
    """A data set, ready for training. Choices are made on validation, never on test.

    Inputs are images (N, C, H, W) or series (N, C, L), float32 and normalised, or tokens (N, T), int64.
    """

    train: Examples
    validation: Examples  # carved out of what was published for training
    test: Examples
    sha256: str  # of the stored arrays, which fix every tensor and which example is in which split
    classes: int | None = None  # number of classes where targets are classes
    notes: dict[str, Any] = field(default_factory=dict)  # facts of this data set, such as "vocabulary" (size)


def always_there() -> str:
    """Miss nothing."""
    return ""


@dataclass(frozen=True, slots=True)
class DataSource:
    """Where a data set comes from, and how to get at it. Nothing happens until a function of it is called."""

    name: str
    summary: str  # one sentence that a stranger understands
    task: str  # "image classification", "language modelling", ...
    licence: str
    origin: str  # where it comes from, with versions
    size_mib: float  # of the stored arrays
    load: Callable[[], Splits]  # raises DataUnavailable
    missing: Callable[[], str] = always_there  # "" where it can be loaded now, else the reason
    fetch: Callable[[], None] | None = None  # get it over the network, once
    from_folder: Callable[[Path], None] | None = None  # get it from a local copy instead, once
    sha256: str = ""  # what `Splits.sha256` must be; "" where only the origin's own revision pins it


def sha256_of(arrays: Arrays) -> str:
    """Return the hash of names, types, shapes and bytes of `arrays`, whatever their order."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.data)
    return digest.hexdigest()


def check_sha256(name: str, found: str, expected: str, origin: str) -> None:
    """Do nothing where the hashes agree.

    Raises:
        DataUnavailable: they differ, so that results would not be comparable with anybody else's.
    """
    if found != expected:
        raise DataUnavailable(
            f"data set {name!r} is not the one that effbench compares on: its SHA-256 is {found}, "
            f"and {expected} is expected. It is made from: {origin}"
        )
