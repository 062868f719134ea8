"""kjv_switch: a small GPT with experts, a Switch transformer, that learns the King James Bible."""

from __future__ import annotations

import functools

import torch

from effbench import terms
from effbench.models import switch_gpt
from effbench.models.experts import balanced
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
        lambda: switch_gpt(text.notes["vocabulary"], length=text.notes["context"]),
        device,
        batch_size=16,
        optimizer=adamw(1.6e-2, weight_decay=0.1, betas=(0.9, 0.95)),
        warmup=0.05,
        gradient=balanced(terms.backward, 0.01),
        update=clipped_step(1.0),
        traits=("text", "causal"),
    )


workload = Workload(
    name="kjv_switch",
    summary="Predict the next character of the King James Bible with a small GPT that has experts.",
    dataset=DATASET,
    model="Switch transformer, width 64, 2 blocks, 4 experts in the second, 4 heads, context 64, 208 k parameters",
    baseline="AdamW, peak rate 1.6e-2 (swept), decay 0.1, clipping at 1, 5 % warm-up, linear decay to 0, batch 16, "
    "loss of balance 0.01",
    metric="bits_per_byte",
    higher_is_better=False,
    target=2.4,
    budget="10s reference",
    step_seconds=15.5e-3,
    recipe=recipe,
    evaluate=functools.partial(evaluate_causal, DATASET),
)
