"""cluttered_cnn: a small ResNet on distorted digits among clutter."""

from __future__ import annotations

import functools

import torch

from effbench.models import resnet
from effbench.optimizers import sgd
from effbench.recipe import Recipe
from effbench.workloads.baselines import baseline, splits
from effbench.workloads.evaluation import evaluate_classifier
from effbench.workloads.workload import Workload

DATASET = "cluttered_digits"


def recipe(device: torch.device) -> Recipe:
    """Return the tuned baseline."""
    return baseline(
        splits(DATASET).train,
        resnet,
        device,
        batch_size=32,
        optimizer=sgd(0.4, momentum=0.9, weight_decay=5e-4),
        warmup=0.05,
        classes=10,
        traits=("image", "any_resolution"),
    )


workload = Workload(
    name="cluttered_cnn",
    summary="Recognise distorted digits among clutter and noise, 16x16 pixels, with a small ResNet.",
    dataset=DATASET,
    model="ResNet-8, width 8, 20 k parameters",
    baseline="SGD, Nesterov momentum 0.9, peak rate 0.4 (swept), decay 5e-4, 5 % warm-up, linear decay to 0, batch 32",
    metric="accuracy",
    higher_is_better=True,
    target=0.9,
    budget="5s reference",
    step_seconds=5.5e-3,
    recipe=recipe,
    evaluate=functools.partial(evaluate_classifier, DATASET),
)
