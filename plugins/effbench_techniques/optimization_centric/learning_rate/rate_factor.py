"""Rate factor: the baseline at another learning rate, the control that shows whether it is tuned."""

from __future__ import annotations

from torch import nn
from torch.optim import Optimizer

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique


@technique(
    "optimization_centric/learning_rate",
    paper="Bengio, Practical Recommendations for Gradient-Based Training of Deep Architectures, arXiv:1206.5533",
    claim="the initial learning rate is often the single most important hyper-parameter",
    neutral={"factor": 1.0},
    after=["schedule_free", "sgd_nesterov", "soap", "sophia"],  # they bring an optimizer, as those before it by name
    title="Rate factor",
    scope="element",
)
def rate_factor(recipe: Recipe, *, factor: float = 2.0) -> Recipe:
    """Train at a multiple of the baseline's learning rate, everything else as it is.

    A control, no technique: a comparison is fair only against a baseline whose learning rate is tuned for the budget.
    The schedule keeps its shape; its peak moves. Where another technique brings an optimizer of its own, the factor
    goes on top of that optimizer's rates.

    When it helps: where it does, the baseline was not tuned for this budget.
    When it does not: at the factor 1, by definition; and beside a tuned baseline.

    factor: what every learning rate is multiplied with, above 0; 1 turns it off.
    """
    if not 0.0 < factor < float("inf"):
        raise InvalidTechnique(f"rate_factor: factor is {factor}; a learning rate is above 0, and finite")
    if factor == 1.0:
        return recipe

    def optimizer(model: nn.Module) -> Optimizer:
        built = recipe.optimizer(model)
        for group in built.param_groups:
            group["lr"] *= factor
        return built

    return recipe.wrap(optimizer=optimizer)
