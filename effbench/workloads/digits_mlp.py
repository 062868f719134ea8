"""digits_mlp: a small perceptron on 8x8 digits; solved in a second, so good for smoke tests and nothing else."""

from __future__ import annotations

import functools

import torch

from effbench.models import mlp
from effbench.optimizers import adamw
from effbench.recipe import Recipe
from effbench.workloads.baselines import baseline, splits
from effbench.workloads.evaluation import evaluate_classifier
from effbench.workloads.workload import Workload

DATASET = "digits"


def recipe(device: torch.device) -> Recipe:
    """Return the tuned baseline."""
    return baseline(
        splits(DATASET).train,
        lambda: mlp(64, 10, width=64, depth=2),
        device,
        batch_size=64,
        optimizer=adamw(8e-3, weight_decay=0.05),
        warmup=0.05,
        classes=10,
        traits=("image",),
    )


workload = Workload(
    name="digits_mlp",
    summary="Recognise handwritten digits of 8x8 pixels with a small perceptron: a smoke test.",
    dataset=DATASET,
    model="MLP, 2 hidden layers of 64, 9 k parameters",
    baseline="AdamW, peak rate 8e-3 (swept), decay 0.05, 5 % warm-up, linear decay to 0, batch 64",
    metric="accuracy",
    higher_is_better=True,
    target=0.99,
    budget="1s reference",
    step_seconds=0.45e-3,
    recipe=recipe,
    evaluate=functools.partial(evaluate_classifier, DATASET),
)
