"""mnist5k_resnet: a small ResNet on 5,000 MNIST digits; best judged by the time to its target."""

from __future__ import annotations

import functools

import torch

from effbench.models import resnet
from effbench.optimizers import sgd
from effbench.recipe import Recipe
from effbench.workloads.baselines import baseline, splits
from effbench.workloads.evaluation import evaluate_classifier
from effbench.workloads.workload import Workload

DATASET = "mnist5k"


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
    name="mnist5k_resnet",
    summary="Recognise MNIST digits, 28x28 pixels, from 3,500 examples with a small ResNet.",
    dataset=DATASET,
    model="ResNet-8, width 8, 20 k parameters",
    baseline="SGD, Nesterov momentum 0.9, peak rate 0.4 (swept), decay 5e-4, 5 % warm-up, linear decay to 0, batch 32",
    metric="accuracy",
    higher_is_better=True,
    target=0.95,
    budget="5s reference",
    step_seconds=11e-3,
    recipe=recipe,
    evaluate=functools.partial(evaluate_classifier, DATASET),
)
