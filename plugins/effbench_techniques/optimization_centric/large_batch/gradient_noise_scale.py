"""Gradient noise scale: measure how noisy gradients are, and let the batch be as large as pays."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from effbench import Batch, Recipe, Training, technique
from effbench.errors import InvalidTechnique

_LEAST = 4  # examples of a batch that is measured: both halves should have statistics, where there is BatchNorm


@technique(
    "optimization_centric/large_batch",
    paper="McCandlish et al., An Empirical Model of Large-Batch Training, arXiv:1812.06162",
    claim="one number, measured while training, predicts the largest useful batch from MNIST to Dota",
    neutral={"max_growth": 1},
    after=["sparse_mlm_head"],  # which says how a single gradient is taken
    conflicts=dict.fromkeys(
        ("expert_parallel", "fsdp", "hybrid_3d", "tensor_parallel", "zero1_weight_update_sharding"),
        "no process has the whole gradient, whose norm is measured",
    ),
)
def gradient_noise_scale(
    recipe: Recipe, *, max_growth: int = 8, interval: int = 5, memory: float = 0.9, power: float = 0.5
) -> Recipe:
    """Take as many examples for an update as gradients are noisy: batches of tr(S) / |G|^2, the simple noise scale.

    G is the gradient, S the covariance of those of single examples. Every `interval` steps a batch is cut in two, and
    from the squared norms of the gradients of the halves and of the whole both are estimated without bias; running
    means are kept of each, and divided. A step has the baseline's batch, whatever comes out, so that it has one price
    and budgets of every kind can buy it: it is the update that waits, until the gradients of so many steps as make up
    the noise scale are averaged, `max_growth` at the most, and for it the rate is multiplied by their number to the
    `power`. What has been gathered when the budget ends is lost.

    When it helps: as a tuner, that tells which batch is worth its examples; late in training, where noise is large.
    When it does not: batches that are above the noise scale already, which it does not make smaller; a fixed number of
        examples, of which fewer, better updates may make less.

    max_growth: how many batches an update may wait for; 1 turns it off.
    interval: steps from one measurement to the next.
    memory: share of the running means that stays from measurement to measurement, from 0, below 1.
    power: of the growth of the batch, by which the rate is multiplied: 1 for SGD, 0.5 for Adam, 0 leaves it.
    """
    check(max_growth, interval, memory, power)
    if max_growth == 1:
        return recipe

    def gradient(training: Training, batch: Batch) -> Tensor:
        kept = remembered(training)
        is_measured = training.step % interval == 0 and kept["last"] != training.step and len(batch) >= _LEAST
        if not is_measured:  # or measured by an earlier pass of the same step
            return recipe.gradient(training, batch)
        kept["last"] = training.step
        return measure(recipe, training, batch, memory)

    def update(training: Training) -> None:
        kept = remembered(training)
        kept["gathered"] += 1
        if kept["gathered"] < kept["awaited"]:
            return
        with averaged(training, kept["gathered"], power):
            recipe.update(training)
        kept["gathered"], kept["awaited"] = 0, growth(kept, max_growth)

    return recipe.wrap(gradient=gradient, update=update)


def check(max_growth: int, interval: int, memory: float, power: float) -> None:
    """Raise InvalidTechnique where an option is out of its range."""
    for name, count in (("max_growth", max_growth), ("interval", interval)):
        if count < 1:
            raise InvalidTechnique(f"gradient_noise_scale: {name} is {count}; it should be 1 or more")
    if not 0.0 <= memory < 1.0:
        raise InvalidTechnique(f"gradient_noise_scale: memory is {memory}; it should be 0 or more, and below 1")
    if not 0.0 <= power <= 1.0:
        raise InvalidTechnique(f"gradient_noise_scale: power is {power}; it should be an exponent from 0 to 1")


def remembered(training: Training) -> dict[str, Any]:
    """Return what is remembered: the means of tr(S) and |G|^2, and how many batches are gathered and awaited.

    A model with other parameters starts to gather anew, and so do its gradients.
    """
    kept: dict[str, Any] = training.kept.setdefault(
        "gradient_noise_scale",
        {"noise": 0.0, "slope": 0.0, "gathered": 0, "awaited": 1, "last": -1, "examples": 0.0, "generation": 0},
    )
    if kept["generation"] != training.generation:
        kept["generation"], kept["gathered"] = training.generation, 0
        training.optimizer.zero_grad(set_to_none=True)
    return kept


def measure(recipe: Recipe, training: Training, batch: Batch, memory: float) -> Tensor:
    """Add the gradient of a batch to p.grad, half by half, and move the means towards what their norms tell."""
    weights = [weight for weight in training.model.parameters() if weight.requires_grad]
    before = [weight.grad for weight in weights]
    halves = batch[: len(batch) // 2], batch[len(batch) // 2 :]
    shares, losses, gradients = [], [], []
    for half in halves:
        for weight in weights:
            weight.grad = None
        losses.append(recipe.gradient(training, half))
        gradients.append([weight.grad for weight in weights])
        shares.append(float(training.group.sum(half.weight.sum())) / training.group.size)
    with torch.no_grad(), training.extra():
        for weight, *parts in zip(weights, before, *gradients, strict=True):
            weight.grad = added(parts)
        whole = [added(parts) for parts in zip(*gradients, strict=True)]
        if min(shares) > 0.0:
            kept = remembered(training)
            sizes = [training.group.sum_float(len(half)) for half in halves]
            kept["examples"] = sum(sizes)
            squares = [squared_norm(part) / share**2 for part, share in zip(gradients, shares, strict=True)]
            noise, slope = estimate(squares, sizes, squared_norm(whole) / sum(shares) ** 2)
            kept["noise"] = memory * kept["noise"] + (1.0 - memory) * noise
            kept["slope"] = memory * kept["slope"] + (1.0 - memory) * slope
    return torch.cat(losses)


def estimate(squares: list[float], sizes: list[float], whole: float) -> tuple[float, float]:
    """Return unbiased estimates of tr(S) and |G|^2 (the paper's appendix A.1).

    squares: squared norms of the mean gradients of parts of a batch.
    sizes: examples of these parts.
    whole: squared norm of the mean gradient of the whole batch.
    """
    many, small = sum(sizes), sum(squares) / len(squares)
    few = len(sizes) / sum(1.0 / size for size in sizes)  # the size whose noise is the parts' mean noise
    noise = (small - whole) / (1.0 / few - 1.0 / many)
    slope = (many * whole - few * small) / (many - few)
    return noise, slope


def growth(kept: dict[str, Any], most: int) -> int:
    """Return how many batches make up the noise scale, rounded, from 1 to `most`."""
    noise, slope = float(kept["noise"]), float(kept["slope"])
    if noise <= 0.0:
        return 1
    scale = noise / slope if slope > 0.0 else math.inf
    return max(1, round(min(scale / float(kept["examples"]), most)))


@contextmanager
def averaged(training: Training, count: int, power: float) -> Iterator[None]:
    """Divide the sum of `count` gradients by their number, and raise the rates while the context is open."""
    groups = training.optimizer.param_groups
    rates = [group["lr"] for group in groups]
    if count > 1:
        for weight in training.model.parameters():
            if weight.grad is not None:
                weight.grad.div_(count)
        for group in groups:
            group["lr"] *= count**power
    yield
    for group, rate in zip(groups, rates, strict=True):
        group["lr"] = rate


def added(parts: Any) -> Tensor | None:
    """Return the sum of those that are tensors, as a new one; None where none is."""
    found = [part for part in parts if part is not None]
    return torch.stack(found).sum(0) if found else None


def squared_norm(gradients: list[Tensor | None]) -> float:
    """Return the squared norm of all gradients together."""
    return float(nn.utils.get_total_norm([gradient for gradient in gradients if gradient is not None]).square())
