"""Sophia: divide the momentum by an estimate of the curvature, and clip what comes out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from effbench import Batch, Recipe, Training, technique
from effbench.errors import InvalidTechnique, NotApplicable
from effbench.optimizers import groups_at, loss_of
from effbench.terms import IGNORED, valid_targets


@technique(
    "optimization_centric/learning_rate",
    paper="Liu et al., Sophia: A Scalable Stochastic Second-order Optimizer for Language Model Pre-training, "
    "arXiv:2305.14342",
    claim="GPT-2 of 125 M to 1.5 B parameters: the loss of AdamW in half the steps, compute and time",
    after=["sparse_mlm_head"],  # which says how a single gradient is taken
    scope="element",
)
def sophia(
    recipe: Recipe,
    *,
    lr: float = 3e-3,
    beta1: float = 0.96,
    beta2: float = 0.99,
    gamma: float = 0.05,
    interval: int = 10,
) -> Recipe:
    """Step by `momentum / (gamma * curvature)`, at most by the rate, weight by weight.

    This is Sophia-G: every `interval` steps, targets are drawn from what the model itself predicts; the squares of the
    gradient for them, times the number of targets, estimate the diagonal of the Gauss-Newton matrix without bias, and
    move its running mean. The extra pass is on the clock; it leaves BatchNorm's statistics alone. The parameter groups
    are the baseline's, and so is what weight decay takes from a weight in a step.

    When it helps: pre-training of language models, by the paper.
    When it does not: no gain for BERT and T5 against a baseline whose rate has decayed (Kaddour et al., No Train No
        Gain, arXiv:2307.06440), nor beside a tuned AdamW (Semenov et al., Benchmarking Optimizers for Large Language
        Model Pretraining, arXiv:2509.01440).

    lr: peak learning rate, by which a weight moves at the most.
    beta1: share of the momentum that stays from step to step, from 0, below 1.
    beta2: share of the mean curvature that stays from estimate to estimate, from 0, below 1.
    gamma: what the curvature is multiplied with; the smaller, the more weights move by the whole rate; above 0.
    interval: steps from one estimate of the curvature to the next.
    """
    for name, value in (("lr", lr), ("gamma", gamma)):
        if not 0.0 < value < math.inf:
            raise InvalidTechnique(f"sophia: {name} is {value}; it should be positive and finite")
    for name, beta in (("beta1", beta1), ("beta2", beta2)):
        if not 0.0 <= beta < 1.0:
            raise InvalidTechnique(f"sophia: {name} is {beta}; it should be 0 or more, and below 1")
    if interval < 1:
        raise InvalidTechnique(f"sophia: interval is {interval}; it should be 1 or more steps")
    if recipe.classes is None and not {"causal", "masked"} & recipe.traits:
        raise NotApplicable("sophia draws classes or tokens as the model predicts, and this workload has neither")

    def build(model: nn.Module) -> Optimizer:
        return Sophia(groups_at(recipe.optimizer(model), lr), lr, (beta1, beta2), gamma)

    def gradient(training: Training, batch: Batch) -> Tensor:
        losses = recipe.gradient(training, batch)
        if training.step % interval == 0:
            with training.extra():
                look_at_curvature(training, recipe, batch)
        return losses

    return recipe.swap(optimizer=build).wrap(gradient=gradient)


class Sophia(Optimizer):
    """Clipped steps by momentum over curvature, with decoupled weight decay."""

    def __init__(self, groups: list[dict[str, Any]], lr: float, betas: tuple[float, float], gamma: float) -> None:
        super().__init__(groups, {"lr": lr, "betas": betas, "gamma": gamma, "eps": 1e-12, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]  # torch has two
        """Take one step, after `closure`, if there is one; return its loss."""
        loss = loss_of(closure)
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                begin(state, weight)
                state["momentum"].lerp_(weight.grad, 1.0 - group["betas"][0])
                scale = (group["gamma"] * state["curvature"]).clamp_min_(group["eps"])
                weight.mul_(1.0 - group["lr"] * group["weight_decay"])
                weight.sub_((state["momentum"] / scale).clamp_(-1.0, 1.0), alpha=group["lr"])
        return loss

    @torch.no_grad()
    def see(self, estimates: dict[Tensor, Tensor]) -> None:
        """Move the mean curvature of each weight towards its new estimate."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight in estimates:
                    begin(self.state[weight], weight)
                    self.state[weight]["curvature"].lerp_(estimates[weight], 1.0 - group["betas"][1])


def begin(state: dict[str, Any], weight: Tensor) -> None:
    """Let momentum and curvature of a weight start at zero, if they have not started."""
    if "momentum" not in state:
        state["momentum"], state["curvature"] = torch.zeros_like(weight), torch.zeros_like(weight)


def look_at_curvature(training: Training, recipe: Recipe, batch: Batch) -> None:
    """Estimate the curvature, and let the optimizer see it; gradients and buffers stay as they are."""
    weights = [weight for weight in training.model.parameters() if weight.requires_grad]
    gradients = [weight.grad for weight in weights]
    for weight in weights:
        weight.grad = None
    with buffers_kept(training.model):
        drawn = batch.replace(targets=drawn_targets(training, batch))
        recipe.gradient(training, drawn)
    count = training.group.sum(valid_targets(drawn.targets).sum())
    estimates: dict[Tensor, Tensor] = {w: count * w.grad.square() for w in weights if w.grad is not None}
    for weight, gradient in zip(weights, gradients, strict=True):
        weight.grad = gradient
    assert isinstance(training.optimizer, Sophia)
    training.optimizer.see(estimates)


@torch.no_grad()
def drawn_targets(training: Training, batch: Batch) -> Tensor:
    """Draw a class for each example, (B,), or a token for each that has a target, (B, T), as the model predicts."""
    outputs: Tensor = training.forward(batch.inputs)
    # one number of the techniques' generator, whatever the share of the batch is that a process has
    seed = int(torch.randint(2**62, (), generator=training.rng)) + training.group.rank
    generator = torch.Generator(outputs.device).manual_seed(seed)
    chances = outputs.float().softmax(-1).flatten(0, -2)
    drawn = torch.multinomial(chances, 1, generator=generator).view(outputs.shape[:-1])
    return drawn if drawn.ndim == 1 else torch.where(batch.targets == IGNORED, IGNORED, drawn)


@contextmanager
def buffers_kept(model: nn.Module) -> Iterator[None]:
    """Put the buffers of a model back, bit by bit."""
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, value in buffers:
                buffer.copy_(value)
