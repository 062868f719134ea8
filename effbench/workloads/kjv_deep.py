"""kjv_deep: a narrow and deep GPT, for techniques that stack, drop or divide blocks."""

from __future__ import annotations

import functools

import torch

from effbench.models import gpt
from effbench.optimizers import adamw, clipped_step
from effbench.recipe import Recipe
from effbench.workloads.baselines import baseline, splits
from effbench.workloads.evaluation import evaluate_causal
from effbench.workloads.workload import Workload

DATASET = "kjv"


def recipe(device: torch.device) -> Recipe:
    """Return the tuned baseline."""
    text = splits(DATASET)
    return baseline(
        text.train,
        lambda: gpt(text.notes["vocabulary"], length=text.notes["context"], width=32, depth=8),
        device,
        batch_size=16,
        optimizer=adamw(1.6e-2, weight_decay=0.1, betas=(0.9, 0.95)),
        warmup=0.05,
        update=clipped_step(1.0),
        traits=("text", "causal"),
    )


workload = Workload(
    name="kjv_deep",
    summary="Predict the next character of the King James Bible with a narrow GPT of eight blocks.",
    dataset=DATASET,
    model="GPT-2, width 32, 8 blocks, 4 heads, context 64, 106 k parameters",
    baseline="AdamW, peak rate 1.6e-2 (swept), decay 0.1, clipping at 1, 5 % warm-up, linear decay to 0, batch 16",
    metric="bits_per_byte",
    higher_is_better=False,
    target=2.55,
    budget="20s reference",
    step_seconds=29e-3,
    recipe=recipe,
    evaluate=functools.partial(evaluate_causal, DATASET),
)
