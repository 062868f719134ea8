"""Gated feed-forward layers: one half of the hidden units says how much of the other half gets through."""

from __future__ import annotations

from torch import Tensor, nn

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique
from effbench.models.replacing import replacing
from effbench.models.transformer import FeedForward

_ACTIVATIONS: dict[str, type[nn.Module]] = {"silu": nn.SiLU, "gelu": nn.GELU, "sigmoid": nn.Sigmoid}


@technique(
    "model_centric/architecture",
    paper="Shazeer, GLU Variants Improve Transformer, arXiv:2002.05202",
    claim="T5 on C4: a lower perplexity than with ReLU or GELU, at equal parameters and compute",
    title="Gated feed-forward",
)
def glu_ffn(recipe: Recipe, *, gate: str = "silu") -> Recipe:
    """Replace the feed-forward layers of a transformer by gated ones of as many parameters.

    `last(value * activation(gate))`, where value and gate are two linear functions of the input. The hidden layer is
    about two thirds as wide, so that parameters and multiplications are those of the baseline, within 1 % for usual
    widths. Weights are drawn as large as those that they replace.

    When it helps: transformers of all kinds; part of the architecture in Geiping and Goldstein, Cramming
        (arXiv:2212.14034), and of most large language models.
    When it does not: small layers, bound by overhead, pay for the additional operations.

    gate: the activation: "silu" makes it SwiGLU, "gelu" GEGLU, "sigmoid" the plain GLU.
    """
    if gate not in _ACTIVATIONS:
        known = ", ".join(map(repr, _ACTIVATIONS))
        raise InvalidTechnique(f"glu_ffn: gate is {gate!r}; it should be one of {known}")
    otherwise = "glu_ffn replaces a transformer's feed-forward layers, and this model has none"
    return replacing(recipe, FeedForward, lambda layer: gated(layer, _ACTIVATIONS[gate]()), otherwise)


def gated(layer: FeedForward, activation: nn.Module) -> FeedForward:
    """Make a feed-forward layer a gated one of as many parameters."""
    width, hidden = layer.first.in_features, layer.first.out_features
    inner = round(hidden * (2 * width + 1) / (3 * width + 2))
    layer.first = alike(layer.first, width, 2 * inner)
    layer.activation = Gate(activation)
    layer.last = alike(layer.last, inner, width)
    return layer


def alike(layer: nn.Linear, inputs: int, outputs: int) -> nn.Linear:
    """Return a linear layer of another shape whose weights have the same standard deviation, and biases of zero."""
    made = nn.Linear(inputs, outputs)
    nn.init.normal_(made.weight, std=float(layer.weight.detach().std()))
    nn.init.zeros_(made.bias)
    return made


class Gate(nn.Module):
    """(..., 2 H) -> (..., H): the first half times the activation of the second."""

    def __init__(self, activation: nn.Module) -> None:
        super().__init__()
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        """Let the second half of `x` say how much of the first gets through."""
        value, gate = x.chunk(2, dim=-1)
        passed: Tensor = value * self.activation(gate)
        return passed
