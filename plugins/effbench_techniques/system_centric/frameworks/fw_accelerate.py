"""Accelerate: take each step through Hugging Face's wrapper of the training loop."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from effbench import Batch, Recipe, Training, technique
from effbench.errors import NotApplicable


@technique(
    "system_centric/frameworks",
    paper="no paper: Gugger et al., Accelerate: Training and Inference at Scale Made Simple, 2022",
    claim="any loop in PyTorch runs on any hardware, after four lines are added",
    title="Hugging Face Accelerate",
)
def fw_accelerate(recipe: Recipe) -> Recipe:
    """Let Accelerate prepare model and optimizer, run the backward pass, and decide when the optimizer steps.

    Weights are those of the baseline: what is measured is the overhead. Batches are the baseline's as well; the loader
    of Accelerate is left out. It needs the package `accelerate`.

    When it helps: code that is to run on one core today and on many GPUs tomorrow.
    When it does not: small models, where its overhead shows; with its loader, it is in `docs/performance.md`.
    """
    if find_spec("accelerate") is None:
        raise NotApplicable("fw_accelerate needs the package accelerate: pip install accelerate")

    def place(model: nn.Module) -> nn.Module:
        placed: nn.Module = accelerator(model).prepare_model(recipe.placement(model), device_placement=False)
        return placed

    def build(model: nn.Module) -> Optimizer:
        made: Optimizer = accelerator(model).prepare_optimizer(recipe.optimizer(model), device_placement=False)
        return made

    def gradient(training: Training, batch: Batch) -> Tensor:
        if training.group.size > 1:
            raise NotApplicable("fw_accelerate would have to start the processes itself")
        if "fw_accelerate" not in training.kept:
            training.kept["fw_accelerate"] = accelerator(training.model)
        losses = training.loss(training.forward(batch.inputs), batch)
        training.kept["fw_accelerate"].backward((losses * batch.weight).sum())
        return losses.detach()

    return recipe.wrap(placement=place, optimizer=build).swap(gradient=gradient)


def accelerator(model: nn.Module) -> Any:
    """Return an Accelerator for where the model is; all of them share one state."""
    from accelerate import Accelerator

    return Accelerator(cpu=next(model.parameters()).device.type == "cpu")
