"""kjv_books: a small transformer that tells from a verse which part of the King James Bible it is from."""

from __future__ import annotations

import functools

import torch

from effbench.models import text_classifier
from effbench.optimizers import adamw, clipped_step
from effbench.recipe import Recipe
from effbench.workloads.baselines import baseline, splits
from effbench.workloads.evaluation import evaluate_classifier
from effbench.workloads.workload import Workload

DATASET = "kjv_books"


def recipe(device: torch.device) -> Recipe:
    """Return the tuned baseline."""
    verses = splits(DATASET)
    classes = len(verses.notes["divisions"])
    length = verses.train.inputs.shape[1]
    return baseline(
        verses.train,
        lambda: text_classifier(verses.notes["vocabulary"], classes, length=length),
        device,
        batch_size=32,
        optimizer=adamw(4e-3, weight_decay=0.01, betas=(0.9, 0.98)),
        warmup=0.1,
        update=clipped_step(1.0),
        classes=classes,
        traits=("text", "padded"),
    )


workload = Workload(
    name="kjv_books",
    summary="Tell from one verse which of seven parts of the King James Bible it is from.",
    dataset=DATASET,
    model="BERT's trunk with norms first, width 64, 2 blocks, 4 heads, 48 words, 616 k parameters",
    baseline="AdamW, peak rate 4e-3 (swept), decay 0.01, clipping at 1, 10 % warm-up, linear decay to 0, batch 32",
    metric="accuracy",
    higher_is_better=True,
    target=0.65,
    budget="5s reference",
    step_seconds=20e-3,
    recipe=recipe,
    evaluate=functools.partial(evaluate_classifier, DATASET),
)
