"""AGC: clip the gradient of each unit where it is large for the unit's weights."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from effbench import Recipe, Training, technique
from effbench.errors import InvalidTechnique


@technique(
    "optimization_centric/large_batch",
    paper="Brock et al., High-Performance Large-Scale Image Recognition Without Normalization, arXiv:2102.06171",
    claim="NFNet-F1 matches EfficientNet-B7 on ImageNet and trains up to 8.7 times faster",
    neutral={"limit": math.inf},
    title="Adaptive gradient clipping",
    scope="tensor",
)
def agc(recipe: Recipe, *, limit: float = 0.01, floor: float = 1e-3) -> Recipe:
    """Scale down the gradient of each unit whose norm is above `limit` times the norm of the unit's weights.

    A unit is a row of a matrix, or a kernel of a convolution with all its inputs; a bias or a gain is one as a whole.
    Weights count as if their norm were `floor` at least, so that units that start at zero can move. The output layer,
    the last linear one, is left alone, as in the paper. Whatever clipping the baseline has comes after it.

    When it helps: networks without BatchNorm, at batches and rates at which they would diverge.
    When it does not: with BatchNorm, which does it by other means (MosaicML Composer's method card).

    limit: largest norm of a gradient, relative to the weights'; infinity turns it off.
    floor: smallest norm of weights that counts, above 0.
    """
    if not limit > 0.0:
        raise InvalidTechnique(f"agc: limit is {limit}; it should be a ratio above 0, inf is off")
    if not 0.0 < floor < math.inf:
        raise InvalidTechnique(f"agc: floor is {floor}; it should be a positive, finite norm")
    if limit == math.inf:
        return recipe

    def update(training: Training) -> None:
        clip(training.model, limit, floor)
        recipe.update(training)

    return recipe.wrap(update=update)


@torch.no_grad()
def clip(model: nn.Module, limit: float, floor: float) -> None:
    """Scale the gradients down, unit by unit."""
    spared = {id(parameter) for parameter in output_layer(model)}
    for weight in model.parameters():
        if weight.grad is not None and id(weight) not in spared:
            most = limit * unit_norms(weight).clamp_min(floor)
            slope = unit_norms(weight.grad)
            weight.grad.mul_(torch.where(slope > most, most / slope, 1.0))


def unit_norms(tensor: Tensor) -> Tensor:
    """Return the norm of each unit: (O, 1, ...) for (O, I, ...), one number for (O,)."""
    inside = tuple(range(1, tensor.ndim)) or None
    norms: Tensor = torch.linalg.vector_norm(tensor, dim=inside, keepdim=inside is not None)
    return norms


def output_layer(model: nn.Module) -> list[nn.Parameter]:
    """Return the parameters of the last linear layer; none where there is no linear layer."""
    layers = [module for module in model.modules() if isinstance(module, nn.Linear)]
    return list(layers[-1].parameters()) if layers else []
