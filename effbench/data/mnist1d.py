"""mnist1d: series of 40 numbers, made from ten hand-drawn templates (Greydanus & Kobak, arXiv:2011.14439).

Procedural, not recorded. The templates and the strengths of the distortions are those of the authors'
package; the generator is our own, so the examples are others, but as hard. Published, for 4,000 training
examples, are logistic regression 32 %, MLP 68 %, GRU 91 %, CNN 94 %, people 96 %.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from effbench.data.prepared import prepared_source
from effbench.data.source import Arrays
from effbench.data.splitting import pack, stratified, unpack

Floats = NDArray[np.float64]

TEMPLATES = (
    (5, 6, 6.5, 6.75, 7, 7, 7, 7, 6.75, 6.5, 6, 5),
    (5, 3, 3, 3.4, 3.8, 4.2, 4.6, 5, 5.4, 5.8, 5, 5),
    (5, 6, 6.5, 6.5, 6, 5.25, 4.75, 4, 3.5, 3.5, 4, 5),
    (5, 6, 6.5, 6.5, 6, 5, 5, 6, 6.5, 6.5, 6, 5),
    (5, 4.4, 3.8, 3.2, 2.6, 2.6, 5, 5, 5, 5, 5, 5),
    (5, 3, 3, 3, 3, 5, 6, 6.5, 6.5, 6, 4.5, 5),
    (5, 4, 3.5, 3.25, 3, 3, 3, 3, 3.25, 3.5, 4, 5),
    (5, 7, 7, 6.6, 6.2, 5.8, 5.4, 5, 4.6, 4.2, 5, 5),
    (5, 4, 3.5, 3.5, 4, 5, 5, 4, 3.5, 3.5, 4, 5),
    (5, 4, 3.5, 3.5, 4, 5, 5, 5, 5, 4.7, 4.3, 5),
)
DRAWN = 72  # points of a series while it is distorted: 12 of the template and up to 60 of padding
KEPT = 40
PADDING = (36, 60)
TRANSLATION = 48
SCALE = 0.4
SHEAR = 0.75
CORRELATED_NOISE, CORRELATION = (
    0.25,
    2.0,
)  # standard deviation before smoothing; width of the Gaussian, points
NOISE = 0.02
#: Values are stored as multiples of this. Rounding also hides the last bits, in which processors differ.
STEP = 2.0**-12
TRAIN, VALIDATION, TEST = 4000, 1000, 1000


def generate(labels: NDArray[Any], seed: int) -> Floats:
    """Return one distorted template for each of (N,) labels, (N, 40), not yet normalised."""
    random = np.random.RandomState(seed)
    count = len(labels)
    stretch = 11 + random.randint(PADDING[0], PADDING[1] + 1, count)
    at = np.linspace(0, 1, DRAWN) * stretch[:, None]  # (N, 72), in points of the template
    series = np.stack([np.interp(a, np.arange(12), t, right=0) for a, t in zip(at, _templates()[labels], strict=True)])
    series *= 1 + SCALE * (random.random_sample((count, 1)) - 0.5)
    moved = (np.arange(DRAWN) - random.randint(0, TRANSLATION, (count, 1))) % DRAWN
    series, empty = (np.take_along_axis(a, moved, 1) for a in (series, at >= 12))
    series = np.where(empty, _smooth(CORRELATED_NOISE * random.standard_normal(series.shape)), series)
    series += NOISE * random.standard_normal(series.shape)
    series -= SHEAR * (random.random_sample((count, 1)) - 0.5) * np.linspace(-0.5, 0.5, DRAWN)
    kept = np.linspace(0, DRAWN - 1, KEPT)
    return np.stack([np.interp(kept, np.arange(DRAWN), s) for s in series])


def _templates() -> Floats:
    drawn = np.array(TEMPLATES)
    drawn = (drawn - drawn.mean(1, keepdims=True)) / drawn.std(1, keepdims=True)
    return np.asarray((drawn - drawn[:, :1]) / 6)  # starts and ends at 0, where the padding goes on


def _smooth(noise: Floats) -> Floats:
    radius = int(4 * CORRELATION)
    kernel = np.exp(-0.5 * (np.arange(-radius, radius + 1) / CORRELATION) ** 2)
    kernel /= kernel.sum()
    mirrored = np.pad(noise, ((0, 0), (radius, radius)), mode="symmetric")
    return np.asarray(sum(k * mirrored[:, i : i + DRAWN] for i, k in enumerate(kernel)))


def build() -> Arrays:
    """Generate all examples; mean and standard deviation are those of the training split."""
    labels = np.arange(TRAIN + VALIDATION + TEST) % 10
    series = generate(labels, seed=42)
    positions = stratified(labels, validation=VALIDATION, test=TEST, seed=0)
    train = series[positions["train"]]
    stored = np.rint((series - train.mean()) / train.std() / STEP).astype(np.int16)
    return pack(stored, labels.astype(np.uint8), positions)


def to_inputs(stored: NDArray[Any]) -> Tensor:
    """Return (N, 1, 40) float32 of the stored multiples of STEP."""
    return torch.from_numpy(stored).unsqueeze(1).float().mul_(STEP)


SOURCE = prepared_source(
    name="mnist1d",
    summary="ten classes of distorted series of 40 numbers; the best small set to tell optimizers apart",
    task="sequence classification",
    licence="generated; templates and strengths after the package mnist1d, Apache-2.0",
    origin="effbench's own generator after Greydanus & Kobak, arXiv:2011.14439",
    size_mib=0.5,
    sha256="0443d95fdeacdede7a45d15cabc0575e17b023fdeacd887bc6603f8b17e3a3f7",
    build=build,
    unpack=functools.partial(unpack, to_inputs=to_inputs, classes=10),
)
