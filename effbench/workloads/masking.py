"""Masked language modelling: hide some tokens, predict them from the others (BERT, arXiv:1810.04805)."""

from __future__ import annotations

import functools

import torch
from torch import Tensor, nn

from effbench.recipe import Batch, Examples, Training, Transform
from effbench.terms import IGNORED, valid_targets
from effbench.workloads.baselines import examples_of, splits
from effbench.workloads.evaluation import score

RATE = 0.15  # share of the tokens that are predicted
HIDDEN, RANDOM = 0.8, 0.1  # of these: shown as the mask, shown as another token; the rest is shown as it is


def masked(vocabulary: int, rate: float = RATE) -> Transform:
    """Make the transform that masks a batch of whole texts, each time anew.

    Only the chosen tokens are targets, and the weight of an example is their number. Which ones are chosen is drawn
    from `training.order`: it is part of the baseline, the same whatever techniques there are.

    vocabulary: number of tokens; the next one, `vocabulary`, is the mask.
    rate: share of the tokens that are predicted.
    """

    def transform(batch: Batch, training: Training) -> Batch:
        inputs, targets = mask(batch.inputs, vocabulary, rate, training.order)
        return batch.replace(inputs=inputs, targets=targets, weight=valid_targets(targets))

    return transform


def mask(ids: Tensor, vocabulary: int, rate: float, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return (inputs, targets), both (B, T), of whole texts (B, T).

    random: a generator on the CPU, so that every device sees the same masks.
    """
    chosen = torch.rand(ids.shape, generator=random) < rate
    shown = torch.rand(ids.shape, generator=random)
    others = torch.randint(vocabulary, ids.shape, generator=random)
    chosen, shown, others = chosen.to(ids.device), shown.to(ids.device), others.to(ids.device)
    inputs = torch.where(chosen & (shown < HIDDEN), vocabulary, ids)
    inputs = torch.where(chosen & (shown >= HIDDEN) & (shown < HIDDEN + RANDOM), others, inputs)
    return inputs, torch.where(chosen, ids, IGNORED)


@functools.lru_cache(maxsize=4)
def masked_examples(dataset: str, split: str) -> Examples:
    """Return the texts of a split with masks that are always the same."""
    ids = examples_of(dataset, split).inputs
    vocabulary = splits(dataset).notes["vocabulary"]
    return Examples(*mask(ids, vocabulary, RATE, torch.Generator().manual_seed(0)))


def evaluate_masked(dataset: str, model: nn.Module, split: str) -> dict[str, float]:
    """Return `loss` in nats and `accuracy` in [0, 1] of the masked tokens, and how many `tokens` these are."""
    correct, loss, count = score(model, masked_examples(dataset, split))
    return {"loss": loss / count, "accuracy": correct / count, "tokens": float(count)}
