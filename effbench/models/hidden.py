"""The matrices between the embedding and the output: what is pruned, quantised and adapted."""

from __future__ import annotations

from collections import Counter

import torch
from torch import Tensor, nn

Layer = nn.Linear | nn.Conv1d | nn.Conv2d

_KINDS = (nn.Linear, nn.Conv1d, nn.Conv2d)


def hidden_layers(model: nn.Module) -> dict[str, Layer]:
    """Return the linear layers and convolutions in the model's `blocks`, by name.

    Those whose weights another module uses as well are left out: what suits one need not suit the other.
    """
    modules = [module for module in model.modules() if isinstance(getattr(module, "weight", None), nn.Parameter)]
    uses = Counter(module.weight for module in modules)
    found: dict[str, Layer] = {}
    for name, layer in model.named_modules():
        if name.startswith("blocks.") and type(layer) in _KINDS:
            assert isinstance(layer, _KINDS)
            if uses[layer.weight] == 1:
                found[name] = layer
    return found


def hidden_weights(model: nn.Module) -> list[nn.Parameter]:
    """Return the weights of the hidden layers, in order."""
    weights = (layer.weight for layer in hidden_layers(model).values())
    return [weight for weight in weights if isinstance(weight, nn.Parameter)]


def largest(scores: Tensor, count: int) -> Tensor:
    """Return where the `count` largest scores are, as a mask of their shape: exactly so many, ties included."""
    mask = torch.zeros(scores.numel(), dtype=torch.bool, device=scores.device)
    mask[scores.flatten().argsort(descending=True, stable=True)[:count]] = True
    return mask.view_as(scores)
