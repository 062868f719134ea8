"""mnist1d_cnn: the convolutional network of the MNIST-1D paper (arXiv:2011.14439) on its series."""

from __future__ import annotations

import functools

import torch

from effbench.models import cnn1d
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
        cnn1d,
        device,
        batch_size=256,
        optimizer=adamw(8e-2, weight_decay=0.05),
        warmup=0.05,
        classes=10,
    )


workload = Workload(
    name="mnist1d_cnn",
    summary="Classify series of 40 numbers with the small convolutional network of the MNIST-1D paper.",
    dataset=DATASET,
    model="CNN, 3 convolutions of 25 channels, 5.2 k parameters",
    baseline="AdamW, peak rate 8e-2 (swept), decay 0.05, 5 % warm-up, linear decay to 0, batch 256",
    metric="accuracy",
    higher_is_better=True,
    target=0.93,
    budget="5s reference",
    step_seconds=1.9e-3,
    recipe=recipe,
    evaluate=functools.partial(evaluate_classifier, DATASET),
)
