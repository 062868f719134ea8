"""Adafactor: remember the squared gradients of a matrix by its rows and columns alone."""

from __future__ import annotations

import math

from torch import nn
from torch.optim import Adafactor, Optimizer

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique
from effbench.optimizers import groups_at


@technique(
    "optimization_centric/learning_rate",
    paper="Shazeer and Stern, Adafactor: Adaptive Learning Rates with Sublinear Memory Cost, arXiv:1804.04235",
    claim="WMT 2014 English-German, transformer: the BLEU of Adam with almost no optimizer state",
    scope="tensor",
)
def adafactor(recipe: Recipe, *, lr: float = 0.1, clip: float = 1.0, forget: float = 0.8) -> Recipe:
    """Scale steps as Adam does, from n + m instead of n * m numbers for each matrix, and without momentum.

    The mean square of each gradient is estimated as `row mean * column mean / mean`, which is exact where the squares
    have rank 1. An update whose root mean square is above `clip` is scaled down to it. The rate is relative: a tensor
    moves by `min(lr, 1 / sqrt(step))` times the root mean square of its weights, or times 0.001 where that is larger
    (torch.optim.Adafactor). The parameter groups are the baseline's, and so is what weight decay takes in a step.

    When it helps: models whose optimizer state does not fit in memory; equal quality is what it promises.
    When it does not: models that fit; beyond step 1 / lr^2 the rate falls whatever the schedule says.

    lr: peak learning rate, relative to the size of the weights.
    clip: root mean square to which larger updates are scaled down, 1 or more.
    forget: speed at which the past is forgotten: of the mean square, `1 - step ** -forget` stays; above 0.
    """
    if not 0.0 < lr < math.inf:
        raise InvalidTechnique(f"adafactor: lr is {lr}; it should be a positive, finite rate")
    if not 1.0 <= clip < math.inf:
        raise InvalidTechnique(f"adafactor: clip is {clip}; it should be a finite root mean square, 1 or more")
    if not 0.0 < forget < math.inf:
        raise InvalidTechnique(f"adafactor: forget is {forget}; it should be a positive, finite exponent")

    def build(model: nn.Module) -> Optimizer:
        return Adafactor(groups_at(recipe.optimizer(model), lr), lr=lr, d=clip, beta2_decay=-forget, foreach=True)

    return recipe.swap(optimizer=build)
