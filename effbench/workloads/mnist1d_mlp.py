"""mnist1d_mlp: a perceptron on short series, which it can only learn by heart."""

from __future__ import annotations

import functools

import torch

from effbench.models import mlp
from effbench.optimizers import adamw
from effbench.recipe import Recipe
from effbench.workloads.baselines import baseline, splits
from effbench.workloads.evaluation import evaluate_classifier
from effbench.workloads.workload import Workload

DATASET = "mnist1d"


def recipe(device: torch.device) -> Recipe:
    """Return the tuned baseline."""
    return baseline(
        splits(DATASET).train,
        lambda: mlp(40, 10, width=256, depth=3),
        device,
        batch_size=128,
        optimizer=adamw(8e-3, weight_decay=0.1),
        warmup=0.05,
        classes=10,
    )


workload = Workload(
    name="mnist1d_mlp",
    summary="Classify series of 40 numbers with a perceptron, which knows nothing of neighbourhood.",
    dataset=DATASET,
    model="MLP, 3 hidden layers of 256, 145 k parameters",
    baseline="AdamW, peak rate 8e-3 (swept), decay 0.1, 5 % warm-up, linear decay to 0, batch 128",
    metric="accuracy",
    higher_is_better=True,
    target=0.74,
    budget="5s reference",
    step_seconds=1.8e-3,
    recipe=recipe,
    evaluate=functools.partial(evaluate_classifier, DATASET),
)
