"""Averages of weights: name the tensors of a model, and evaluate a copy that holds others."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import update_bn

from effbench.recipe import EvalModel, Recipe, Training

_BATCHES = 20  # over which BatchNorm's statistics are taken anew


def parameters_of(model: nn.Module) -> dict[str, Tensor]:
    """Return all parameters by name, each once, without gradients; they are the model's own."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def tensors_of(model: nn.Module) -> dict[str, Tensor]:
    """Return all parameters and buffers by name, each once, without gradients; they are the model's own."""
    return parameters_of(model) | dict(model.named_buffers())


def holding(tensors: Mapping[str, Tensor], training: Training, eval_model: EvalModel) -> nn.Module:
    """Return a copy of what `eval_model` would evaluate if training held these tensors; training keeps its own."""
    places = tensors_of(training.model)
    own = {name: places[name].clone() for name in tensors}
    try:
        _write(tensors, places)
        return copy.deepcopy(eval_model(training))
    finally:
        _write(own, places)


def renew_statistics(model: nn.Module, recipe: Recipe, training: Training) -> None:
    """Take BatchNorm's statistics anew, over the same examples every time, and without a random number of training."""
    count = len(training.recipe.dataset)
    positions = torch.randperm(count, generator=torch.Generator().manual_seed(0))
    size = min(count, recipe.batch_size(1.0))
    chunks = torch.split(positions[: min(_BATCHES, count // size) * size], size)
    device = next(model.parameters()).device
    with torch.no_grad(), torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        update_bn((recipe.loader(chunk, training).inputs for chunk in chunks), model)


@torch.no_grad()
def _write(tensors: Mapping[str, Tensor], places: Mapping[str, Tensor]) -> None:
    for name, tensor in tensors.items():
        places[name].copy_(tensor)
