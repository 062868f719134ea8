"""SGD with Nesterov momentum: the optimizer that every adaptive one has to beat."""

from __future__ import annotations

import math

from torch import nn
from torch.optim import SGD, Optimizer

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique
from effbench.optimizers import groups_at


@technique(
    "optimization_centric/learning_rate",
    paper="Sutskever et al., On the Importance of Initialization and Momentum in Deep Learning, ICML 2013; compared "
    "with adaptive methods in Wilson et al., The Marginal Value of Adaptive Gradient Methods, arXiv:1705.08292",
    claim="deep networks that were thought to need second-order methods train well",
    title="SGD with Nesterov momentum",
    scope="element",
)
def sgd_nesterov(recipe: Recipe, *, lr: float = 0.1, momentum: float = 0.9) -> Recipe:
    """Step along a running sum of the gradients, and look one step of it ahead.

    `sum = momentum * sum + gradient`, and the step is `rate * (gradient + momentum * sum)` (torch.optim.SGD). The
    parameter groups are the baseline's. Weight decay is added to the gradient, so small that in the long run it takes
    as much from a weight as the baseline's does.

    When it helps: a control; the default for convolutional networks, and the cheapest.
    When it does not: transformers, whose gradients have heavy tails (Zhang et al., Why Are Adaptive Methods Good for
        Attention Models?, arXiv:1912.03194).

    lr: peak learning rate.
    momentum: share of the sum that stays from step to step, below 1; 0 turns it off, which is plain SGD.
    """
    if not 0.0 < lr < math.inf:
        raise InvalidTechnique(f"sgd_nesterov: lr is {lr}; it should be a positive, finite rate")
    if not 0.0 <= momentum < 1.0:
        raise InvalidTechnique(f"sgd_nesterov: momentum is {momentum}; it should be 0 (plain SGD) or more, and below 1")

    def build(model: nn.Module) -> Optimizer:
        groups = groups_at(recipe.optimizer(model), lr)
        for group in groups:
            group["weight_decay"] *= 1.0 - momentum
        return SGD(groups, lr=lr, momentum=momentum, nesterov=momentum > 0.0, foreach=True)

    return recipe.swap(optimizer=build)
