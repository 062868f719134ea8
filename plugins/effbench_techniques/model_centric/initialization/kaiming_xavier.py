"""Kaiming and Xavier initialisation: weights so large that the signal neither grows nor fades."""

from __future__ import annotations

import math

import torch
from torch import nn

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique, NotApplicable
from effbench.models.hidden import hidden_layers

SCHEMES = ("kaiming", "xavier")


@technique(
    "model_centric/initialization",
    paper="He et al., Delving Deep into Rectifiers, arXiv:1502.01852; after Glorot and Bengio, Understanding the "
    "Difficulty of Training Deep Feedforward Neural Networks, AISTATS 2010",
    claim="networks of 20 to 30 layers with ReLUs train, where they did not before",
    title="Kaiming and Xavier initialisation",
)
def kaiming_xavier(recipe: Recipe, *, scheme: str = "kaiming", scale: float = 1.0) -> Recipe:
    """Draw the weights of the hidden layers anew, as large as the number of their inputs and outputs says.

    "kaiming" draws from N(0, 2 / inputs), which keeps the mean square from one ReLU to the next; "xavier" uniformly
    with the variance 2 / (inputs + outputs), for activations that are linear around zero. Hidden biases start at zero.
    The embedding and the output layer keep the baseline's.

    When it helps: deep networks without norms or shortcuts, against weights of the wrong size; `scale` 3 or 1 / 3 is
        such a control.
    When it does not: networks with both, whose own initialisation is tuned, as that of GPT-2 is.

    scheme: which rule says how large weights are: "kaiming" or "xavier".
    scale: factor on the weights; another one than 1 is a control.
    """
    if scheme not in SCHEMES:
        raise InvalidTechnique(
            f"kaiming_xavier: scheme is {scheme!r}; it should be one of {', '.join(map(repr, SCHEMES))}"
        )
    if not 0.0 < scale < math.inf:
        raise InvalidTechnique(f"kaiming_xavier: scale is {scale}; it should be a positive, finite factor")
    with torch.random.fork_rng(devices=[]):
        if not hidden_layers(recipe.model()):
            raise NotApplicable("kaiming_xavier finds no layer in the model's `blocks`")

    def model() -> nn.Module:
        made = recipe.model()
        for layer in hidden_layers(made).values():
            if scheme == "kaiming":
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            else:
                nn.init.xavier_uniform_(layer.weight)
            with torch.no_grad():
                layer.weight *= scale
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        return made

    return recipe.wrap(model=model)
