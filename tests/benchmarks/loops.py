"""The same training step in several loops: written by hand, by effbench, by accelerate, by Lightning."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from effbench.budget import Budget
from effbench.clock import StepClock
from effbench.recipe import Recipe
from effbench.train import start, train

FOREVER = 10**7  # steps


def seeded_model(recipe: Recipe) -> nn.Module:
    torch.manual_seed(0)
    return recipe.model()


def batches(recipe: Recipe) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches as a hand-written loop draws them: a permutation an epoch, cut into pieces, picked by index."""
    inputs, targets, size = recipe.dataset.inputs, recipe.dataset.targets, recipe.batch_size(0.0)
    while True:
        order = torch.randperm(len(inputs))
        for first in range(0, len(inputs) - size + 1, size):
            chosen = order[first : first + size]
            yield inputs[chosen], targets[chosen]


def by_hand(recipe: Recipe, *, per_example: bool) -> Iterator[None]:
    """Train as one writes it in a notebook: draw, set the rate, forward, backward, step.

    per_example: keep the loss of each example, as effbench does for techniques that look at them, and then average;
        else let the loss average by itself.
    """
    model = seeded_model(recipe)
    optimizer = recipe.optimizer(model)
    peaks = [group["lr"] for group in optimizer.param_groups]
    for step, (inputs, targets) in enumerate(batches(recipe)):
        for group, peak in zip(optimizer.param_groups, peaks, strict=True):
            group["lr"] = peak * recipe.lr_schedule(step / FOREVER)
        if per_example:
            losses = F.cross_entropy(model(inputs), targets, reduction="none")
            losses.mean().backward()
        else:
            F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield


def by_effbench(recipe: Recipe) -> Iterator[None]:
    """Train as a trial does."""
    for _ in train(start(recipe, 0), Budget(FOREVER, "steps"), StepClock()):
        yield


def by_accelerate(recipe: Recipe) -> Iterator[None]:
    """Train with Hugging Face accelerate, on the same batches."""
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model = seeded_model(recipe)
    built = recipe.optimizer(model)
    peaks = [group["lr"] for group in built.param_groups]
    schedule = torch.optim.lr_scheduler.LambdaLR(built, lambda step: recipe.lr_schedule(step / FOREVER))
    assert len(peaks) == len(built.param_groups)
    model, optimizer, scheduler = accelerator.prepare(model, built, schedule)
    for inputs, targets in batches(recipe):
        with accelerator.accumulate(model), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            accelerator.backward(F.cross_entropy(model(inputs), targets))
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad(set_to_none=True)
        yield


def by_lightning(recipe: Recipe) -> Iterator[None]:
    """Train with Lightning, on the same batches; its Trainer runs in a thread that waits for each `next`."""
    import threading

    go, done = threading.Semaphore(0), threading.Semaphore(0)
    thread = threading.Thread(target=_fit, args=(recipe, go, done), daemon=True)
    thread.start()
    while True:
        go.release()
        done.acquire()
        yield


def _fit(recipe: Recipe, go: Any, done: Any) -> None:
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = seeded_model(recipe)

        def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> Tensor:
            inputs, targets = batch
            return F.cross_entropy(self.model(inputs), targets)

        def configure_optimizers(self) -> dict[str, Any]:
            optimizer = recipe.optimizer(self.model)
            schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: recipe.lr_schedule(step / FOREVER))
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def waiting() -> Iterator[tuple[Tensor, Tensor]]:
        for number, batch in enumerate(batches(recipe)):
            if number:
                done.release()  # the step on the batch before is over
            go.acquire()
            yield batch

    class Endless(torch.utils.data.IterableDataset[tuple[Tensor, Tensor]]):
        def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
            return waiting()

    trainer = lightning.Trainer(
        accelerator="cpu",
        max_steps=FOREVER,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        barebones=False,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.fit(Module(), torch.utils.data.DataLoader(Endless(), batch_size=None))
