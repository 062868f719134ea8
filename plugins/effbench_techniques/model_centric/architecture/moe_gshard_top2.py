"""GShard's mixture of experts: many feed-forward layers in the place of one, and two of them for each token."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique
from effbench.models.experts import Experts, Routing, balanced, room
from effbench.models.replacing import replacing
from effbench.models.transformer import FeedForward


@technique(
    "model_centric/architecture",
    paper="Lepikhin et al., GShard: Scaling Giant Models with Conditional Computation and Automatic Sharding, "
    "arXiv:2006.16668",
    claim="translation from 100 languages with 600 B parameters, trained in 4 days on 2048 TPU v3",
    after=["glu_ffn", "relu_squared"],  # experts are copies of what the layer has become
    conflicts={
        "moe_switch": "each replaces the feed-forward layers",
        "torch_compile": "which experts compute depends on the data, and the graph would break there",
    },
    title="GShard, two experts",
)
def moe_gshard_top2(recipe: Recipe, *, experts: int = 4, capacity: float = 1.0, balance: float = 0.01) -> Recipe:
    """Replace each feed-forward layer of a transformer by several experts, of which every token is sent to two.

    A router gives each token probabilities of the experts; the two most probable compute, and the sum of what they say
    is weighted by their probabilities, divided by the sum of the two. In training, an expert takes `capacity * 2 *
    tokens / experts` tokens of a batch, first choices before second ones, and a second expert is asked only by chance:
    twice its weight is the probability. What is left out goes around the layer. A loss of `balance * experts *
    sum(f * p)` is added, where f is the share of the tokens whose first choice an expert is and p its mean probability:
    `balance`, if all are used alike. In evaluation nothing is left out. Here the experts are all in one process, and in
    every layer, where the paper has one in each device, and in every other layer.

    When it helps: more parameters at the arithmetic of two layers, with the experts dealt out over many devices.
    When it does not: on the wall clock of one small machine, where it costs twice as much as one expert for each token.

    experts: number of feed-forward layers in the place of one, 2 or more.
    capacity: how many times its even share of two choices for each token an expert takes in training.
    balance: factor of the loss that balances the experts.
    """
    if experts < 2:
        raise InvalidTechnique(f"moe_gshard_top2: experts is {experts}; it should be 2 or more, for two are asked")
    if not capacity > 0.0:
        raise InvalidTechnique(f"moe_gshard_top2: capacity is {capacity}; it should be above 0")
    if not 0.0 <= balance < math.inf:
        raise InvalidTechnique(f"moe_gshard_top2: balance is {balance}; it should be a finite factor, 0 or more")

    def sparse(layer: FeedForward) -> Experts:
        return Experts(layer, experts, two_most_probable, capacity)

    otherwise = "moe_gshard_top2 replaces a transformer's feed-forward layers, and this model has none"
    return replacing(recipe, FeedForward, sparse, otherwise).wrap(gradient=balanced(recipe.gradient, balance))


def two_most_probable(chances: Tensor, capacity: float | None) -> Routing:
    """Send each token to its two most probable experts, if there is room for it (algorithm 1 of the paper).

    Chance is torch's own, as dropout's is, so that a layer that is computed again makes the same choice again.
    """
    experts = chances.shape[1]
    gates, favourites = chances.topk(2, dim=1)
    gates = gates / gates.sum(1, keepdim=True)
    first, second = one_hot(favourites[:, 0], experts), one_hot(favourites[:, 1], experts)
    asked = first.bool(), second.bool()
    if capacity is not None:
        most = room(2 * capacity, chances)
        by_chance = 2.0 * gates[:, 1] > torch.rand(len(gates), device=gates.device)
        asked = (
            asked[0] & (first.cumsum(0) <= most),
            asked[1] & (first.sum(0) + second.cumsum(0) <= most) & by_chance[:, None],
        )
    weights = gates[:, :1] * asked[0] + gates[:, 1:] * asked[1]
    return Routing(asked[0] | asked[1], weights, favourites[:, 0])
