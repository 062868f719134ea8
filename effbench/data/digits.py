"""digits: 1,797 handwritten digits of 8x8 pixels, from the UCI set that scikit-learn carries."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from effbench.data.images import normalise
from effbench.data.installed import needs_file, packaged_file
from effbench.data.prepared import prepared_source
from effbench.data.source import Arrays
from effbench.data.splitting import Positions, pack, stratified, unpack

FILE = ("sklearn", "datasets/data/digits.csv.gz", "scikit-learn")
LICENCE = "CC BY 4.0: Alpaydin & Kaynak, Optical Recognition of Handwritten Digits, UCI"


def originals() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return all images (N, 8, 8), whose pixels are 0 to 255, and labels (N,)."""
    rows = np.loadtxt(packaged_file(*FILE), delimiter=",", dtype=np.uint8)
    images = rows[:, :-1].reshape(-1, 8, 8).astype(np.uint16)
    return (images * 255 // 16).astype(np.uint8), rows[:, -1]


def positions(labels: NDArray[np.uint8]) -> dict[str, Positions]:
    """Return which image is in which split; its writers are not known, so they cannot be kept apart."""
    return stratified(labels, validation=240, test=360, seed=0)


def build() -> Arrays:
    """Read the package's file."""
    images, labels = originals()
    return pack(images, labels, positions(labels))


SOURCE = prepared_source(
    name="digits",
    summary="1,797 handwritten digits of 8x8 pixels; solved in a second, so good for smoke tests",
    task="image classification",
    licence=LICENCE,
    origin="datasets/data/digits.csv.gz of scikit-learn: the test part of the UCI set",
    size_mib=0.1,
    sha256="fdb3718ff6d49640e2997b275794b044a438b084f50e4a2098b7097161b6d8a0",
    build=build,
    unpack=functools.partial(unpack, to_inputs=normalise(0.3, 0.37), classes=10),
    needs=needs_file(*FILE),
)
