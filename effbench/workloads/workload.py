"""What a workload is: a standard model on a standard data set, with a tuned baseline and a way to judge the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from effbench.recipe import Recipe


@dataclass(frozen=True, slots=True)
class Workload:
    """A standard model on a standard data set, with a tuned, fully decayed baseline.

    Choices are made on validation; tables show test. `metric` is one of the keys that `evaluate` returns.
    """

    name: str
    summary: str  # one sentence that a stranger understands
    dataset: str  # name of the data set
    model: str  # "ResNet-8, width 8, 20 k parameters"
    baseline: str  # "AdamW, peak rate 3e-3 (swept), 5 % warm-up, linear decay to 0, batch 32"
    metric: str  # headline metric, such as "accuracy" or "bits_per_byte"
    higher_is_better: bool
    target: float  # value of the headline metric on validation that counts as "got there"
    budget: str  # default budget of a trial, such as "5s reference"
    step_seconds: (
        float  # price of one baseline step on the reference machine, CPU seconds: the c0 of the reference clock
    )
    recipe: Callable[[torch.device], Recipe]  # load the data, return the baseline
    evaluate: Callable[[nn.Module, str], dict[str, float]]  # (model, "validation" or "test") -> metric -> value
