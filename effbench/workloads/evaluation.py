"""How good a model is: every example once, sums over examples and never means over batches."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from effbench.recipe import Examples
from effbench.terms import IGNORED
from effbench.workloads.baselines import examples_of, splits

BATCH = 500  # bounds the memory, and changes nothing else


def evaluate_classifier(dataset: str, model: nn.Module, split: str) -> dict[str, float]:
    """Return `accuracy` in [0, 1], `loss` in nats, and the number of `examples` of one split."""
    correct, loss, count = score(model, examples_of(dataset, split))
    return {"accuracy": correct / count, "loss": loss / count, "examples": float(count)}


def evaluate_causal(dataset: str, model: nn.Module, split: str) -> dict[str, float]:
    """Return `bits_per_byte`, `loss` in nats per token, `accuracy` in [0, 1], and the number of `tokens`."""
    correct, loss, count = score(model, examples_of(dataset, split))
    bytes_per_token = splits(dataset).notes["bytes_per_token"]
    return {
        "bits_per_byte": loss / count / bytes_per_token / math.log(2),
        "loss": loss / count,
        "accuracy": correct / count,
        "tokens": float(count),
    }


def score(model: nn.Module, examples: Examples) -> tuple[int, float, int]:
    """Return how many targets the model got right, the sum of its losses in nats, and how many targets there are.

    Targets that are to be ignored count nowhere.
    """
    device = next(model.parameters()).device
    correct, loss, count = 0, 0.0, 0
    with evaluating(model):
        for inputs, targets in batches(examples, device):
            logits, wanted = model(inputs).float().flatten(0, -2), targets.flatten()
            loss += F.cross_entropy(logits, wanted, ignore_index=IGNORED, reduction="sum").item()
            correct += int((logits.argmax(1) == wanted).sum())
            count += int((wanted != IGNORED).sum())
    return correct, loss, count


def batches(examples: Examples, device: torch.device) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield inputs (B, ...) and targets (B, ...) of every example once, in order, on the device."""
    for start in range(0, len(examples), BATCH):
        chosen = slice(start, start + BATCH)
        yield examples.inputs[chosen].to(device), examples.targets[chosen].to(device)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put the model into evaluation mode without gradients, then each module into the mode that it was in.

    Frozen layers may have been in evaluation mode before.
    """
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.training = mode
