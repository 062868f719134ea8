"""kjv_bert: a small BERT that fills in masked characters of the King James Bible."""

from __future__ import annotations

import functools

import torch

from effbench.models import bert
from effbench.optimizers import adamw, clipped_step
from effbench.recipe import Examples, Recipe
from effbench.workloads.baselines import baseline, splits
from effbench.workloads.masking import evaluate_masked, masked
from effbench.workloads.workload import Workload

DATASET = "kjv"


def recipe(device: torch.device) -> Recipe:
    """Return the tuned baseline."""
    text = splits(DATASET)
    vocabulary = text.notes["vocabulary"]
    return baseline(
        Examples(text.train.inputs, text.train.inputs),  # every token is a target, until the masks are drawn
        lambda: bert(vocabulary + 1, length=text.notes["context"]),
        device,
        batch_size=16,
        optimizer=adamw(4e-3, weight_decay=0.01, betas=(0.9, 0.98)),
        warmup=0.1,
        update=clipped_step(1.0),
        transform=masked(vocabulary),
        traits=("text", "masked"),
    )


workload = Workload(
    name="kjv_bert",
    summary="Fill in masked characters of the King James Bible with a small BERT.",
    dataset=DATASET,
    model="BERT with norms first, width 64, 2 blocks, 4 heads, context 64, 113 k parameters",
    baseline="AdamW, peak rate 4e-3 (swept), decay 0.01, clipping at 1, 10 % warm-up, linear decay to 0, batch 16",
    metric="loss",
    higher_is_better=False,
    target=2.1,
    budget="20s reference",
    step_seconds=14e-3,
    recipe=recipe,
    evaluate=functools.partial(evaluate_masked, DATASET),
)
