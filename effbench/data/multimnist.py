"""multimnist: two MNIST digits on one image, and three things to tell (Sener & Koltun, arXiv:1810.04650)."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from effbench.data import mnist5k
from effbench.data.images import normalise
from effbench.data.installed import needs_file
from effbench.data.prepared import prepared_source
from effbench.data.source import Arrays
from effbench.data.splitting import SPLITS, unpack

SIZE = 36
COUNTS = {"train": 8000, "validation": 1000, "test": 1000}
TASKS = (("left digit", 10), ("right digit", 10), ("parity of the sum", 2))


def compose(images: NDArray[Any], labels: NDArray[Any], count: int, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return images (N, 36, 36), two digits in opposite corners, brighter pixels on top; labels (N, 3)."""
    random = np.random.RandomState(seed)
    left, right = random.randint(0, len(images), (2, count))
    canvas = np.zeros((count, SIZE, SIZE), np.uint8)
    canvas[:, :28, :28] = images[left]
    canvas[:, -28:, -28:] = np.maximum(canvas[:, -28:, -28:], images[right])
    parity = (labels[left] + labels[right]) % 2
    return canvas, np.stack([labels[left], labels[right], parity], 1)


def build() -> Arrays:
    """Compose each split from digits of the same split of mnist5k."""
    images, labels = mnist5k.originals()
    positions = mnist5k.positions(labels)
    arrays: dict[str, NDArray[Any]] = {}
    for seed, split in enumerate(SPLITS):
        chosen = positions[split]
        made = compose(images[chosen], labels[chosen], COUNTS[split], seed)
        arrays[f"{split}_inputs"], arrays[f"{split}_targets"] = made
    return arrays


SOURCE = prepared_source(
    name="multimnist",
    summary="two overlapping MNIST digits; tell the left, the right, and the parity of their sum",
    task="multi-task image classification",
    licence=mnist5k.LICENCE,
    origin=f"composed from {mnist5k.ORIGIN}",
    size_mib=12.4,
    sha256="7bbe2a2a37e9d53bdb4d0f2c1b09e67c160230e678c29c74cf280a8b878a2207",
    build=build,
    unpack=functools.partial(unpack, to_inputs=normalise(0.15, 0.33), notes={"tasks": TASKS}),
    needs=needs_file(*mnist5k.FILE),
)
