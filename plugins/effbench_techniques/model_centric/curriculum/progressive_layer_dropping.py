"""Progressive layer dropping: drop more and more residual branches, the later ones more often."""

from __future__ import annotations

import dataclasses
import math
from contextlib import ExitStack

import torch
from torch import Tensor

from effbench import Batch, Recipe, Training, technique
from effbench.distributed.data_parallel import UNUSED_PARAMETERS
from effbench.errors import InvalidTechnique, NotApplicable
from effbench.models import residuals
from effbench_techniques.model_centric.curriculum.stochastic_depth import drop_blocks, running

_PHASES = (0.25, 1.0, 3.0)  # times of decay after which a step costs so much less that it has a price of its own


@technique(
    "model_centric/curriculum",
    paper="Zhang and He, Accelerating Training of Transformer-Based Language Models with Progressive Layer Dropping, "
    "arXiv:2010.13369",
    claim="BERT: 24 % less time per sample, and 2.5 times faster to equal accuracy downstream",
    neutral={"theta": 1.0},
    conflicts={
        "stochastic_depth": "each says which residual branches are dropped",
        "torch_compile": "each combination of dropped branches is another graph to compile",
    },
)
def progressive_layer_dropping(recipe: Recipe, *, theta: float = 0.5, gamma: float = 100.0) -> Recipe:
    """Drop residual branches at random, from none at the beginning to many soon after.

    The rate of keeping falls with progress t as `(1 - theta) * exp(-gamma * t) + theta`, and linearly with depth, from
    1 at the input to this rate at the last branch. A branch that stays is scaled by 1 / (its rate), so that the
    expected output is that of the whole network, which is what is evaluated. Nothing of a dropped branch is computed.

    When it helps: deep transformers, where a quarter of the branches is a quarter of the time.
    When it does not: no gain for BERT against a baseline whose rate decays within the budget (Kaddour et al., No
        Train No Gain, arXiv:2307.06440); shallow networks, which have no depth to spare.

    theta: rate of keeping the last branch in the end; 1 turns it off.
    gamma: how fast it gets there: after 1 / gamma of the budget, two thirds of the way are gone.
    """
    if not 0.0 < theta <= 1.0:
        raise InvalidTechnique(
            f"progressive_layer_dropping: theta is {theta}; it should be a rate above 0, up to 1 (off)"
        )
    if not 0.0 < gamma < math.inf:
        raise InvalidTechnique(f"progressive_layer_dropping: gamma is {gamma}; it should be positive and finite")
    with torch.random.fork_rng(devices=[]):
        if not residuals(recipe.model()):
            raise NotApplicable("progressive_layer_dropping drops residual branches, and this model has none")
    if theta == 1.0:
        return recipe

    def gradient(training: Training, batch: Batch) -> Tensor:
        branches = list(residuals(training.model).values())
        rates = dropping_rates(training.progress, len(branches), theta, gamma)
        with ExitStack() as stack:
            for branch, forward in zip(branches, drop_blocks(branches, rates, training), strict=True):
                stack.enter_context(running(branch, forward))
            return recipe.gradient(training, batch)

    traits = recipe.traits | {UNUSED_PARAMETERS}
    phases = (*recipe.phases, *(times / gamma for times in _PHASES if times < gamma))
    return dataclasses.replace(recipe.wrap(gradient=gradient, phases=phases), traits=traits)


def dropping_rates(progress: float, branches: int, theta: float, gamma: float) -> list[float]:
    """Return the probability of dropping each branch, in order."""
    kept = (1.0 - theta) * math.exp(-gamma * progress) + theta
    return [number / branches * (1.0 - kept) for number in range(1, branches + 1)]
