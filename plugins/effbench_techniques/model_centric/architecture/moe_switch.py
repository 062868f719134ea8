"""Switch transformer: many experts in the place of a feed-forward layer, and one of them for each token."""

from __future__ import annotations

import math

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique
from effbench.models.experts import Experts, balanced, most_probable
from effbench.models.replacing import replacing
from effbench.models.transformer import FeedForward


@technique(
    "model_centric/architecture",
    paper="Fedus et al., Switch Transformers: Scaling to Trillion Parameter Models with Simple and Efficient Sparsity, "
    "arXiv:2101.03961",
    claim="7 times faster to the quality of T5-Base at equal FLOPs per token",
    after=["glu_ffn", "relu_squared"],  # experts are copies of what the layer has become
    conflicts={"torch_compile": "which experts compute depends on the data, and the graph would break there"},
    title="Switch transformer",
)
def moe_switch(recipe: Recipe, *, experts: int = 4, capacity: float = 1.25, balance: float = 0.01) -> Recipe:
    """Replace each feed-forward layer of a transformer by several experts, of which every token is sent to one.

    A router gives each token probabilities of the experts; the most probable one computes, and what it says is
    multiplied by its probability, through which the router learns. In training, an expert takes `capacity * tokens /
    experts` tokens of a batch; those beyond go around the layer. A loss of `balance * experts * sum(f * p)` is added,
    where f is the share of the tokens that are sent to an expert and p its mean probability: `balance`, if all are
    used alike. In evaluation no token goes around.

    When it helps: more parameters at the same arithmetic: better per step, on hardware that keeps its experts busy.
    When it does not: on the wall clock at the scale of GPT-2, where it lowered the use of a GPU from 46 to 35 % of its
        peak (nanochat); small layers in small batches, which are cut into smaller ones yet.

    experts: number of feed-forward layers in the place of one; 1 is the dense layer.
    capacity: how many times its even share of the tokens an expert takes in training.
    balance: factor of the loss that balances the experts.
    """
    if experts < 1:
        raise InvalidTechnique(f"moe_switch: experts is {experts}; it should be 1 or more")
    if capacity <= 0.0:
        raise InvalidTechnique(f"moe_switch: capacity is {capacity}; it should be above 0")
    if not 0.0 <= balance < math.inf:
        raise InvalidTechnique(f"moe_switch: balance is {balance}; it should be a finite factor, 0 or more")

    def sparse(layer: FeedForward) -> Experts:
        return Experts(layer, experts, most_probable, capacity)

    otherwise = "moe_switch replaces a transformer's feed-forward layers, and this model has none"
    return replacing(recipe, FeedForward, sparse, otherwise).wrap(gradient=balanced(recipe.gradient, balance))
