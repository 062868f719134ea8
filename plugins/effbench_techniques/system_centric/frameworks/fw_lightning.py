"""Lightning Fabric: take each step through Lightning's wrapper of the training loop."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from effbench import Batch, Recipe, Training, technique
from effbench.errors import NotApplicable


@technique(
    "system_centric/frameworks",
    paper="no paper: Falcon et al., PyTorch Lightning, 2019; its Fabric, 2023",
    claim="any loop in PyTorch scales to many devices, after five lines are changed",
    title="Lightning Fabric",
)
def fw_lightning(recipe: Recipe) -> Recipe:
    """Let Fabric wrap model and optimizer, and run the backward pass.

    Fabric is Lightning without its Trainer, which has a loop of its own in the place of ours. Weights are those of the
    baseline: what is measured is the overhead. It needs the package `lightning`, whose import takes seconds.

    When it helps: code that is to run on one core today and on many GPUs tomorrow.
    When it does not: small models, where its overhead shows; that of the Trainer is in `docs/performance.md`.
    """
    if find_spec("lightning") is None:
        raise NotApplicable("fw_lightning needs the package lightning: pip install lightning")

    def place(model: nn.Module) -> nn.Module:
        placed: nn.Module = fabric(model).setup_module(recipe.placement(model), move_to_device=False)
        return placed

    def build(model: nn.Module) -> Optimizer:
        made: Optimizer = fabric(model).setup_optimizers(recipe.optimizer(model))
        return made

    def gradient(training: Training, batch: Batch) -> Tensor:
        if training.group.size > 1:
            raise NotApplicable("fw_lightning would have to start the processes itself")
        if "fw_lightning" not in training.kept:
            training.kept["fw_lightning"] = fabric(training.model)
        losses = training.loss(training.forward(batch.inputs), batch)
        training.kept["fw_lightning"].backward((losses * batch.weight).sum())
        return losses.detach()

    return recipe.wrap(placement=place, optimizer=build).swap(gradient=gradient)


def fabric(model: nn.Module) -> Any:
    """Return a Fabric for the one device on which the model is."""
    from lightning.fabric import Fabric

    return Fabric(accelerator=next(model.parameters()).device.type, devices=1)
