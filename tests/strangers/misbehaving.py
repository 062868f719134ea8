"""A stranger's plugin: techniques that do what real ones sometimes do to a harness."""

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
from effbench import Batch, Recipe, Training

LEAF = "optimization_centric/objective"
NOTE = {"paper": "none; made for tests, arXiv:0000.00000", "claim": "none"}


def at_step(recipe: Recipe, step: int, do) -> Recipe:
    """Do something before the gradient of a step, counted from 0."""

    def gradient(training: Training, batch: Batch) -> torch.Tensor:
        if training.step == step:
            do(training)
        return recipe.gradient(training, batch)

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
def goner(recipe: Recipe) -> Recipe:
    """End the process before there is anything to train."""
    sys.stdout.write("goner was here")
    sys.stdout.flush()
    os._exit(5)


@effbench.technique(LEAF, **NOTE)
def dreamer(recipe: Recipe, *, deaf: bool = False) -> Recipe:
    """Never return, not even when asked to, if deaf."""
    while True:
        try:
            time.sleep(3600)
        except BaseException:  # it hears, and may not listen
            if not deaf:
                raise


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
def effbench_techniques() -> list[effbench.Technique]:
    return [thing for thing in globals().values() if isinstance(thing, effbench.Technique)]
