"""AdamW: scale each step by how large gradients have been, and let weights decay by themselves."""

from __future__ import annotations

import math

from torch import nn
from torch.optim import AdamW, Optimizer

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique
from effbench.optimizers import groups_at


@technique(
    "optimization_centric/learning_rate",
    paper="Loshchilov and Hutter, Decoupled Weight Decay Regularization, arXiv:1711.05101; after Kingma and Ba, Adam: "
    "A Method for Stochastic Optimization, arXiv:1412.6980",
    claim="CIFAR-10 and ImageNet32x32: Adam generalises as well as SGD with momentum",
    title="AdamW",
    scope="element",
)
def adamw(recipe: Recipe, *, lr: float = 3e-3, beta1: float = 0.9, beta2: float = 0.999) -> Recipe:
    """Divide the running mean of the gradients by the root of the running mean of their squares, weight by weight.

    Every weight moves by about the rate, however large its gradients are (torch.optim.AdamW). The parameter groups are
    the baseline's, and so is what weight decay takes from a weight in a step.

    When it helps: transformers; it is their baseline here, which this one varies. A well-tuned rate alone is worth up
        to twice the steps (Wen et al., Fantastic Pretraining Optimizers and Where to Find Them, arXiv:2509.02046).
    When it does not: convolutional networks, where a tuned SGD is as good, and cheaper in memory.

    lr: peak learning rate, by which each weight moves in its first step at the peak.
    beta1: share of the mean gradient that stays from step to step, from 0, below 1.
    beta2: share of the mean square that stays from step to step, from 0, below 1.
    """
    if not 0.0 < lr < math.inf:
        raise InvalidTechnique(f"adamw: lr is {lr}; it should be a positive, finite rate")
    for name, beta in (("beta1", beta1), ("beta2", beta2)):
        if not 0.0 <= beta < 1.0:
            raise InvalidTechnique(f"adamw: {name} is {beta}; it should be 0 or more, and below 1")

    def build(model: nn.Module) -> Optimizer:
        return AdamW(groups_at(recipe.optimizer(model), lr), lr=lr, betas=(beta1, beta2), foreach=True)

    return recipe.swap(optimizer=build)
