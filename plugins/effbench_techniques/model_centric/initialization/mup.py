"""Maximal update parametrization: rates and weights that suit a model of any width."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique, NotApplicable
from effbench.models.transformer import Attention


@technique(
    "model_centric/initialization",
    paper="Yang et al., Tensor Programs V: Tuning Large Neural Networks via Zero-Shot Hyperparameter Transfer, "
    "arXiv:2203.03466",
    claim="GPT-3 of 6.7 B parameters does better with rates tuned on 40 M, for 7 % of the cost of its training",
    neutral={"ratio": 1.0},
    title="Maximal update parametrization",
    scope="element",
)
def mup(recipe: Recipe, *, ratio: float = 4.0) -> Recipe:
    """Let a wide transformer learn at the rate that was tuned on a narrow one, layer by layer as wide layers need it.

    With Adam every entry of a matrix moves by the rate, so that features which sum over the width would move more the
    wider they are. For a model `ratio` times as wide as the one that the rate was tuned for, the paper's table 8 says:
    matrices from width to width learn at the rate over `ratio`, and keep their initial size, which the baseline has in
    proportion to 1 / sqrt(width); embeddings, and the output layer with them, keep their rate and start as large as in
    the narrow model, and the output layer is given features over `ratio`; attention divides by the size of its heads
    and no longer by its root. Biases and norms stay as they are, and so does what decay takes in a step.

    When it helps: tuning: a sweep on narrow models serves wide ones. At the narrow width it changes nothing.
    When it does not: a single run whose rate has been tuned at its own width, as those of our baselines.

    ratio: width over that of the model whose rate and sizes are right; 1 is that model. Heads grow with the width.
    """
    if not 0.0 < ratio < math.inf:
        raise InvalidTechnique(f"mup: ratio is {ratio}; it should be a positive, finite ratio of widths, 1 is off")
    with torch.random.fork_rng(devices=[]):
        probe = recipe.model()
        if not any(isinstance(module, Attention) for module in probe.modules()):
            raise NotApplicable("mup knows which layers of a transformer grow with its width, and this model is none")
        if not isinstance(recipe.optimizer(probe), Adam):
            raise NotApplicable("mup has the rules for Adam and AdamW, and the optimizer is another one")
    if ratio == 1.0:
        return recipe

    def model() -> nn.Module:
        made = recipe.model()
        parametrize(made, ratio)
        return made

    def build(model: nn.Module) -> Optimizer:
        optimizer = recipe.optimizer(model)
        optimizer.param_groups[:] = slower(optimizer, wide_matrices(model), ratio)
        return optimizer

    return recipe.wrap(model=model, optimizer=build)


def parametrize(model: nn.Module, ratio: float) -> None:
    """Let a transformer start, and compute, as one that is `ratio` times as wide as another does."""
    output = output_layer(model)
    assert output is not None  # a whole transformer has one
    with torch.no_grad():
        for weight in embeddings(model) | {output.weight}:
            weight.mul_(math.sqrt(ratio))

    def fade(layer: nn.Module, arguments: tuple[Tensor, ...]) -> tuple[Tensor]:  # noqa: ARG001 - a hook's signature
        return (arguments[0] / ratio,)

    output.register_forward_pre_hook(fade)
    for module in model.modules():
        if isinstance(module, Attention):
            module.attend = Cooler(module.attend, ratio)


class Cooler(nn.Module):
    """Attention with queries over the root of the ratio of widths, so that logits are over d and not over its root."""

    def __init__(self, attend: nn.Module, ratio: float) -> None:
        super().__init__()
        self.attend, self.ratio = attend, ratio

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Mix the values of each head; all shapes (B, heads, T, C / heads)."""
        mixed: Tensor = self.attend(q / math.sqrt(self.ratio), k, v)
        return mixed


def output_layer(model: nn.Module) -> nn.Linear | None:
    """Return the last linear layer of the head; None where this part of a model has no head."""
    head = getattr(model, "head", None)
    layers = [layer for layer in head.modules() if isinstance(layer, nn.Linear)] if isinstance(head, nn.Module) else []
    return layers[-1] if layers else None


def embeddings(model: nn.Module) -> set[nn.Parameter]:
    """Return the vectors of tokens and positions, whose length is the width."""
    embed = model.get_submodule("embed")
    tables = {module for module in embed.modules() if isinstance(module, nn.Embedding)}
    return {
        weight
        for module in embed.modules()
        for name, weight in module.named_parameters(recurse=False)
        if module in tables or name == "positions"
    }


def wide_matrices(model: nn.Module) -> set[nn.Parameter]:
    """Return the weights of the linear layers from width to width: all but the output layer's, in a part of a model."""
    output = output_layer(model)
    weights = {layer.weight for layer in model.modules() if isinstance(layer, nn.Linear) and layer is not output}
    return {weight for weight in weights if isinstance(weight, nn.Parameter)}


def slower(optimizer: Optimizer, chosen: set[nn.Parameter], ratio: float) -> list[dict[str, Any]]:
    """Return the groups of an optimizer, in which the chosen weights have the rate over `ratio`, and the same decay."""
    groups = []
    for group in optimizer.param_groups:
        fast = [weight for weight in group["params"] if weight not in chosen]
        slow = [weight for weight in group["params"] if weight in chosen]
        changed = {"lr": group["lr"] / ratio, "weight_decay": group["weight_decay"] * ratio}
        groups += [{**group, "params": fast}] if fast else []
        groups += [{**group, "params": slow, **changed}] if slow else []
    return groups
