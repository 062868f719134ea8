"""A stranger's plugin: a tiny workload, and techniques that do what real ones sometimes do to a harness."""

from __future__ import annotations

import os
import signal
import time

import torch
from torch import nn

import effbench
from effbench import Batch, Examples, Recipe, Training, Workload, terms
from effbench.optimizers import adamw

LEAF = "optimization_centric/objective"
NOTE = {"paper": "none; made for tests, arXiv:0000.00000", "claim": "none"}


def points(seed: int, count: int) -> Examples:
    generator = torch.Generator().manual_seed(seed)
    inputs = 3 * torch.randn(count, 8, generator=generator) + 5
    return Examples(inputs, (inputs[:, 0] + inputs[:, 1] > 10).long())


def model() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))


def baseline(device: torch.device) -> Recipe:
    return Recipe(
        dataset=points(0, 200),
        sampler=terms.shuffled,
        loader=terms.by_position,
        batch_size=lambda progress: 20,
        transform=terms.unchanged,
        model=model,
        placement=terms.as_it_is,
        loss=terms.cross_entropy,
        gradient=terms.backward,
        optimizer=adamw(1e-2, 0.01),
        lr_schedule=terms.warmup_then_linear(0.05),
        update=terms.step,
        eval_model=terms.trained_model,
        classes=2,
    )


def evaluate(network: nn.Module, split: str) -> dict[str, float]:
    data = points({"validation": 1, "test": 2}[split], 100)
    network.eval()
    with torch.no_grad():
        right = (network(data.inputs).argmax(1) == data.targets).float().mean()
    network.train()
    return {"accuracy": float(right)}


toy = Workload(
    name="toy",
    summary="Tell which side of a line a point lies on.",
    dataset="points",
    model="MLP 8-16-2 with BatchNorm",
    baseline="AdamW 1e-2",
    metric="accuracy",
    higher_is_better=True,
    target=0.9,
    budget="40 steps",
    step_seconds=0.0005,
    recipe=baseline,
    evaluate=evaluate,
)


@effbench.technique(LEAF, **NOTE)
def slow(recipe: Recipe, *, seconds: float = 0.05, first: float = 0.0) -> Recipe:
    """Sleep in every step, and longer in the first."""

    def gradient(training: Training, batch: Batch) -> torch.Tensor:
        time.sleep(first if first and training.step == 0 else seconds)
        return recipe.gradient(training, batch)

    return recipe.wrap(gradient=gradient)


@effbench.technique(LEAF, **NOTE)
def boom(recipe: Recipe, *, step: int = 3, text: str = "boom") -> Recipe:
    """Raise at a step."""

    def gradient(training: Training, batch: Batch) -> torch.Tensor:
        if training.step == step:
            raise RuntimeError(text)
        return recipe.gradient(training, batch)

    return recipe.wrap(gradient=gradient)


@effbench.technique(LEAF, **NOTE)
def nan_from(recipe: Recipe, *, step: int = 10) -> Recipe:
    """Make the loss NaN from a step on."""

    def loss(outputs: torch.Tensor, batch: Batch) -> torch.Tensor:
        return recipe.loss(outputs, batch) * float("nan")

    def gradient(training: Training, batch: Batch) -> torch.Tensor:
        losses = recipe.gradient(training, batch)
        return losses * float("nan") if training.step + 1 >= step else losses

    return recipe.wrap(gradient=gradient)


@effbench.technique(LEAF, **NOTE)
def hang(recipe: Recipe, *, step: int = 2, deaf: bool = False) -> Recipe:
    """Sleep for an hour, as a data loader may; a deaf one does not hear that it should stop."""

    def gradient(training: Training, batch: Batch) -> torch.Tensor:
        if training.step == step:
            if deaf:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(3600)
        return recipe.gradient(training, batch)

    return recipe.wrap(gradient=gradient)


@effbench.technique(LEAF, **NOTE)
def suicide(recipe: Recipe) -> Recipe:
    """Be killed, as the system's out-of-memory killer does."""

    def gradient(training: Training, batch: Batch) -> torch.Tensor:
        os.kill(os.getpid(), signal.SIGKILL)
        return recipe.gradient(training, batch)

    return recipe.wrap(gradient=gradient)


@effbench.technique(LEAF, **NOTE)
def hoard(recipe: Recipe, *, mib: int = 500) -> Recipe:
    """Take memory, then run out of it."""

    def gradient(training: Training, batch: Batch) -> torch.Tensor:
        training.kept["hoard"] = bytearray(mib << 20)
        raise MemoryError("no memory is left")

    return recipe.swap(gradient=gradient)


@effbench.technique(LEAF, **NOTE)
def rogue(recipe: Recipe) -> Recipe:
    """Change everything global that one can reach."""

    def transform(batch: Batch, training: Training) -> Batch:
        batch = recipe.transform(batch, training)
        torch.set_default_dtype(torch.float64)
        torch.set_num_threads(2)
        torch.use_deterministic_algorithms(True)
        torch.manual_seed(0)
        os.environ["ROGUE"] = "1"
        return batch

    return recipe.wrap(transform=transform)


@effbench.technique(LEAF, **NOTE)
def unwilling(recipe: Recipe) -> Recipe:
    """Refuse."""
    raise effbench.NotApplicable("unwilling never applies")


@effbench.hookimpl
def effbench_workloads() -> list[Workload]:
    return [toy]


@effbench.hookimpl
def effbench_techniques() -> list[effbench.Technique]:
    return [slow, boom, nan_from, hang, suicide, hoard, rogue, unwilling]
