"""cluttered_vit: a small Vision Transformer on distorted digits among clutter."""

from __future__ import annotations

import functools

import torch

from effbench.models import vit
from effbench.optimizers import adamw, clipped_step
from effbench.recipe import Recipe
from effbench.workloads.baselines import baseline, splits
from effbench.workloads.evaluation import evaluate_classifier
from effbench.workloads.workload import Workload

DATASET = "cluttered_digits"


def recipe(device: torch.device) -> Recipe:
    """Return the tuned baseline."""
    return baseline(
        splits(DATASET).train,
        vit,
        device,
        batch_size=32,
        optimizer=adamw(2e-3, weight_decay=0.05),
        warmup=0.1,
        update=clipped_step(1.0),
        classes=10,
        traits=("image",),
    )


workload = Workload(
    name="cluttered_vit",
    summary="Recognise distorted digits among clutter and noise, 16x16 pixels, with a Vision Transformer.",
    dataset=DATASET,
    model="ViT, 16 patches, width 48, 3 blocks, 4 heads, 87 k parameters",
    baseline="AdamW, peak rate 2e-3 (swept), decay 0.05, clipping at 1, 10 % warm-up, linear decay to 0, batch 32",
    metric="accuracy",
    higher_is_better=True,
    target=0.72,
    budget="8s reference",
    step_seconds=8.5e-3,
    recipe=recipe,
    evaluate=functools.partial(evaluate_classifier, DATASET),
)
