"""A stranger's plugin: a tiny workload, and techniques that do what real ones sometimes do to a harness."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

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
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 2))


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
        outputs = network(data.inputs)
    network.train()
    right, loss = (outputs.argmax(1) == data.targets).float().mean(), nn.functional.cross_entropy(outputs, data.targets)
    return {"accuracy": float(right), "loss": float(loss)}


def slow_evaluate(network: nn.Module, split: str) -> dict[str, float]:
    time.sleep(0.3)
    return evaluate(network, split)


def strange_evaluate(network: nn.Module, split: str) -> dict[str, float]:
    return {"accuracy": object()}


def workload(name: str, judge=evaluate) -> Workload:
    return Workload(
        name=name,
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
        evaluate=judge,
    )


def at_step(recipe: Recipe, step: int, do) -> Recipe:
    """Do something before the gradient of a step, counted from 0."""

    def gradient(training: Training, batch: Batch) -> torch.Tensor:
        if training.step == step:
            do(training)
        return recipe.gradient(training, batch)

    return recipe.wrap(gradient=gradient)


@effbench.technique(LEAF, **NOTE)
def slow(recipe: Recipe, *, seconds: float = 0.05, first: float = 0.0) -> Recipe:
    """Sleep in every step, and longer in the first."""

    def gradient(training: Training, batch: Batch) -> torch.Tensor:
        time.sleep(first if first and training.step == 0 else seconds)
        return recipe.gradient(training, batch)

    return recipe.wrap(gradient=gradient)


@effbench.technique(LEAF, **NOTE)
def by_example(recipe: Recipe, *, seconds: float = 0.001, slices: int = 1) -> Recipe:
    """Take as long as there are examples, and take the gradient slice by slice."""

    def gradient(training: Training, batch: Batch) -> torch.Tensor:
        time.sleep(seconds * len(batch))
        return torch.cat([recipe.gradient(training, batch[part]) for part in torch.arange(len(batch)).chunk(slices)])

    return recipe.wrap(gradient=gradient)


@effbench.technique(LEAF, **NOTE)
def boom(recipe: Recipe, *, step: int = 3, text: str = "boom") -> Recipe:
    """Raise at a step."""

    def fail(training: Training) -> None:
        raise RuntimeError(text)

    return at_step(recipe, step, fail)


@effbench.technique(LEAF, **NOTE)
def broken(recipe: Recipe) -> Recipe:
    """Raise before there is anything to train."""
    raise ZeroDivisionError("broken at once")


@effbench.technique(LEAF, **NOTE)
def leaver(recipe: Recipe) -> Recipe:
    """Leave before there is anything to train, by what is no Exception."""
    raise GeneratorExit("left at once")


@effbench.technique(LEAF, **NOTE)
def quitter(recipe: Recipe) -> Recipe:
    """Leave the program."""
    return at_step(recipe, 1, lambda training: sys.exit("enough"))


@effbench.technique(LEAF, **NOTE)
def nan_from(recipe: Recipe, *, step: int = 10) -> Recipe:
    """Make the loss NaN from a step on, counted from 1."""

    def gradient(training: Training, batch: Batch) -> torch.Tensor:
        losses = recipe.gradient(training, batch)
        return losses * float("nan") if training.step + 1 >= step else losses

    return recipe.wrap(gradient=gradient)


@effbench.technique(LEAF, **NOTE)
def nan_weights(recipe: Recipe) -> Recipe:
    """Spoil the weights behind the back of the loss, at the end."""

    def eval_model(training: Training) -> nn.Module:
        if training.progress >= 1.0:
            with torch.no_grad():
                next(training.model.parameters()).fill_(float("nan"))
        return training.model

    return recipe.wrap(eval_model=eval_model)


@effbench.technique(LEAF, **NOTE)
def hang(recipe: Recipe, *, step: int = 2, deaf: bool = False) -> Recipe:
    """Sleep for an hour; a deaf one does not hear that it should stop."""

    def sleep(training: Training) -> None:
        if deaf:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        time.sleep(3600)

    return at_step(recipe, step, sleep)


class Sleepers(Dataset):
    def __len__(self) -> int:
        return 200

    def __getitem__(self, position: int) -> int:
        time.sleep(3600)
        return position


@effbench.technique(LEAF, **NOTE)
def hanging_workers(recipe: Recipe) -> Recipe:
    """Wait for two worker processes that never come back."""

    def loader(positions: torch.Tensor, training: Training) -> Batch:
        next(iter(DataLoader(Sleepers(), batch_size=20, num_workers=2)))
        return recipe.loader(positions, training)

    return recipe.wrap(loader=loader)


@effbench.technique(LEAF, **NOTE)
def spawner(recipe: Recipe) -> Recipe:
    """Leave a process behind."""

    def spawn(training: Training) -> None:
        training.kept["spawner"] = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])

    return at_step(recipe, 0, spawn)


@effbench.technique(LEAF, **NOTE)
def suicide(recipe: Recipe, *, number: int = 9, step: int = 0) -> Recipe:
    """Be ended by a signal: 9, as by the system's out-of-memory killer, or 6 or 11, as by a fault in C code."""
    return at_step(recipe, step, lambda training: os.kill(os.getpid(), number))


@effbench.technique(LEAF, **NOTE)
def regicide(recipe: Recipe) -> Recipe:
    """Kill the process that all trials are forked from."""
    return at_step(recipe, 0, lambda training: os.kill(os.getppid(), signal.SIGKILL))


@effbench.technique(LEAF, **NOTE)
def hoard(recipe: Recipe, *, mib: int = 200, fail: bool = False) -> Recipe:
    """Say how much memory there is in use, take more, and perhaps run out of it."""

    def take(training: Training) -> None:
        sys.stdout.write(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB\n")
        training.kept["hoard"] = bytearray(os.urandom(1 << 20) * mib)
        if fail:
            raise MemoryError("no memory is left")

    return at_step(recipe, 1, take)


@effbench.technique(LEAF, **NOTE)
def rogue(recipe: Recipe, *, step: int = 0, at_once: bool = False) -> Recipe:
    """Change everything global that one can reach, in a step or at once."""

    def change(training: Training | None) -> None:
        torch.set_num_threads(2)
        torch.use_deterministic_algorithms(True)
        torch.set_float32_matmul_precision("medium")
        torch.manual_seed(0)
        random.seed(0)
        np.random.seed(0)
        os.environ["ROGUE"] = "1"

    if at_once:
        change(None)
    return at_step(recipe, step, change)


@effbench.technique(LEAF, **NOTE)
def idle(recipe: Recipe) -> Recipe:
    """Never step."""

    def update(training: Training) -> None:
        training.optimizer.zero_grad()

    return recipe.swap(update=update)


@effbench.technique(LEAF, **NOTE)
def preparation(recipe: Recipe, *, seconds: float = 1.0) -> Recipe:
    """Spend time before the first step."""
    return recipe.at(0.0, lambda training: time.sleep(seconds))


@effbench.technique(LEAF, **NOTE)
def forgetful(recipe: Recipe, *, step: int = 1) -> Recipe:
    """Switch gradients off for good, which breaks whatever comes after in the same process."""
    return at_step(recipe, step, lambda training: torch.set_grad_enabled(False) and None)


@effbench.technique(LEAF, **NOTE)
def dice(recipe: Recipe) -> Recipe:
    """Draw from the generators that everybody shares, which nobody should."""

    def gradient(training: Training, batch: Batch) -> torch.Tensor:
        factor = 0.5 + random.random() + np.random.rand() + float(torch.rand(()))
        return recipe.gradient(training, batch.replace(weight=batch.weight * factor))

    return recipe.wrap(gradient=gradient)


@effbench.technique(LEAF, **NOTE)
def time_traveller(recipe: Recipe, *, seconds: float = -3600.0) -> Recipe:
    """Let the system clock jump."""
    real = time.time

    def jump(training: Training) -> None:
        time.time = lambda: real() + seconds

    return at_step(recipe, 1, jump)


@effbench.technique(LEAF, **NOTE)
def talkative(recipe: Recipe) -> Recipe:
    """Print."""
    return at_step(recipe, 0, lambda training: sys.stdout.write("so much to say\n"))


@effbench.technique(LEAF, **NOTE)
def beacon(recipe: Recipe, *, step: int = 3) -> Recipe:
    """Make a file when a step is reached, so that others know."""
    return at_step(recipe, step, lambda training: Path("beacon").touch())


@effbench.technique(LEAF, **NOTE)
def unwilling(recipe: Recipe) -> Recipe:
    """Refuse."""
    raise effbench.NotApplicable("unwilling never applies")


@effbench.technique(LEAF, **NOTE)
def late_refusal(recipe: Recipe) -> Recipe:
    """Refuse when the model is built."""

    def refuse() -> nn.Module:
        raise effbench.NotApplicable("this model has no place for it")

    return recipe.wrap(model=refuse)


@effbench.technique(LEAF, **NOTE)
def busy(recipe: Recipe, *, seconds: float = 0.001) -> Recipe:
    """Keep the processor busy in every step."""
    return recipe.wrap(gradient=taking(recipe, lambda count: seconds))


@effbench.technique(LEAF, **NOTE)
def half_batches(recipe: Recipe) -> Recipe:
    """Train on half a batch for half of the budget."""
    return recipe.wrap(batch_size=lambda progress: 10 if progress < 0.5 else 20)


@effbench.technique(LEAF, **NOTE)
def upside_down(recipe: Recipe) -> Recipe:
    """Take longer for half a batch than for a whole one, as only a disturbed machine makes it seem."""
    slower = taking(recipe, lambda count: 0.001 if count == 20 else 0.02)
    return recipe.wrap(gradient=slower, batch_size=lambda progress: 10 if progress < 0.5 else 20)


def taking(recipe: Recipe, seconds):
    def gradient(training: Training, batch: Batch) -> torch.Tensor:
        until = time.process_time() + seconds(len(batch))
        while time.process_time() < until:
            pass
        return recipe.gradient(training, batch)

    return gradient


@effbench.technique("system_centric/model", **NOTE)
def pair(recipe: Recipe, *, fate: str = "", step: int = 3, seconds: float = 0.0) -> Recipe:
    """Train in two processes; rank 1 may raise, be killed, or hang."""

    def loader(positions: torch.Tensor, training: Training) -> Batch:
        return recipe.loader(positions[training.group.rank :: training.group.size], training)

    def gradient(training: Training, batch: Batch) -> torch.Tensor:
        time.sleep(seconds)
        if training.group.rank == 1 and training.step == step:
            if fate == "raises":
                raise RuntimeError("rank 1 has had enough")
            if fate == "is killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if fate == "hangs":
                time.sleep(3600)
        losses = recipe.gradient(training, batch)
        for weight in training.model.parameters():
            weight.grad = training.group.sum(weight.grad)
        return losses

    return recipe.swap(processes=2).wrap(loader=loader, gradient=gradient)


@effbench.hookimpl
def effbench_workloads() -> list[Workload]:
    return [workload("toy"), workload("judged_slowly", slow_evaluate), workload("judged_strangely", strange_evaluate)]


@effbench.hookimpl
def effbench_techniques() -> list[effbench.Technique]:
    return [thing for thing in globals().values() if isinstance(thing, effbench.Technique)]
