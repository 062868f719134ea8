"""Selective backprop: look at all examples, learn from the hard ones."""

from __future__ import annotations

import math

from effbench import Batch, Recipe, Training, technique
from effbench.errors import InvalidTechnique
from effbench.workloads.evaluation import evaluating

_ROUNDING = 1e-9  # 0.56 * 25 is a little more than 14, and should not keep 15


@technique(
    "data_centric/sampling",
    paper="Jiang et al., Accelerating Deep Learning by Focusing on the Biggest Losers, arXiv:1910.00762",
    claim="CIFAR-10, CIFAR-100 and SVHN: the target error up to 3.5 times faster",
    neutral={"keep": 1.0},
    after=["progressive_resizing", "seq_length_warmup"],  # rank examples as small and short as they are trained on
)
def selective_backprop(recipe: Recipe, *, keep: float = 0.5, start: float = 0.5, end: float = 0.9) -> Recipe:
    """Look at every example of a batch, and train on the share that the model finds hardest.

    Between `start` and `end` of the budget, a forward pass without gradients gives the loss of each example, and the
    ceil(keep * B) examples with the highest loss are trained on, never fewer than two, which BatchNorm needs. As
    backward costs about twice as much as forward, keeping half costs two thirds of a plain step.

    The ranking is by the workload's own loss: not smoothed, not mixed. Its forward pass is in evaluation mode, so that
    dropout neither adds noise to the ranking nor shifts the random numbers of training, and BatchNorm's running
    statistics count each batch once; they are poor in the first steps, which is one more reason to start later.

    When it helps: many easy examples. ImageNet 343 -> 322 minutes at 76.46 %, CIFAR-10 35.6 -> 32.6 minutes (MosaicML
        Composer's method card).
    When it does not: no gain for BERT and T5 against a baseline whose rate has decayed (Kaddour et al., No Train No
        Gain, arXiv:2307.06440). Wrong labels are hard examples too.

    keep: share of each batch that is trained on; 1 turns it off.
    start: share of the budget after which it begins.
    end: share of the budget after which all examples are trained on again.
    """
    if not 0.0 < keep <= 1.0:
        raise InvalidTechnique(f"selective_backprop: keep is {keep}; it should be a share above 0, up to 1 (off)")
    if not 0.0 <= start < end <= 1.0:
        raise InvalidTechnique(
            f"selective_backprop: start is {start} and end is {end}; it should be 0 <= start < end <= 1"
        )
    if keep == 1.0:
        return recipe

    def select(batch: Batch, training: Training) -> Batch:
        batch = recipe.transform(batch, training)
        kept = min(len(batch), max(2, math.ceil(keep * len(batch) - _ROUNDING)))
        if not start <= training.progress < end:
            return batch
        with training.extra(), evaluating(training.model):
            losses = recipe.loss(training.forward(batch.inputs), batch)
            hardest = losses.argsort(descending=True, stable=True)[:kept]
            return batch[hardest.sort().values]

    return recipe.wrap(transform=select)
