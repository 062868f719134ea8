"""What tests of pipelines share: a deep toy, and questions that every schedule must answer alike."""

from __future__ import annotations

import torch
from torch import nn

from effbench.models import gpt
from effbench.optimizers import clipped_step, sgd
from effbench.recipe import Recipe, Training
from effbench.techniques import Technique, compose
from effbench_techniques.optimization_centric.large_batch.gradient_accumulation import gradient_accumulation
from ranks import evaluated, on_all_ranks
from toy import VOCABULARY, run, tokens

SGD = sgd(0.1, momentum=0.9, weight_decay=0.01)  # which does not divide rounding errors by small gradients
TOLERANCE = 1e-6


def deep(depth: int = 4, **changes: object) -> Recipe:
    """A GPT whose output layer is its embedding, gradients that are clipped."""

    def model() -> nn.Module:
        return gpt(VOCABULARY, length=16, width=8, depth=depth, heads=2)

    return tokens(**{"optimizer": SGD, "update": clipped_step(0.3), "model": model, **changes})


def accumulated(recipe: Recipe, micro_batches: int) -> Recipe:
    """What one process trains that takes its gradient from the same micro-batches."""
    return gradient_accumulation.apply(recipe, {"micro_batches": micro_batches})


def whole(technique: Technique, recipe: Recipe, options: dict[str, object], others: dict[str, Technique] | None = None):
    """The model that is evaluated on rank 0, weights and buffers, after six steps."""
    known = {technique.name: technique, **(others or {})}
    several, _ = compose(recipe, {technique.name: options, **{name: {} for name in others or {}}}, known)

    def told(training: Training) -> dict[str, torch.Tensor]:
        model = training.recipe.eval_model(training)
        return {name: tensor.clone() for name, tensor in model.state_dict().items()}

    return on_all_ranks(several, told)[0]


def gap(several: dict[str, torch.Tensor], one: Recipe) -> float:
    """The largest difference of a weight or a buffer to those that one process trains."""
    alone = run(one).model.state_dict()
    assert several.keys() == alone.keys()
    return max(float((several[name].double() - alone[name].double()).abs().max()) for name in alone)


def losses(recipe: Recipe) -> list[list[float]]:
    """The losses of the last step, on every rank."""
    return on_all_ranks(recipe, lambda training: training.losses.tolist())


def bytes_of_steps(recipe: Recipe, steps: int = 3) -> list[float]:
    """What each rank has sent, in bytes, in all steps."""
    return on_all_ranks(recipe, lambda training: training.group.wire.traffic.sent_bytes(), steps)


__all__ = ["SGD", "TOLERANCE", "accumulated", "bytes_of_steps", "deep", "evaluated", "gap", "losses", "whole"]
