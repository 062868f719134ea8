"""LoRA, for training from random weights: after a while, train thin corrections of the matrices, and merge them."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from effbench import Recipe, Training, technique
from effbench.errors import InvalidTechnique, NotApplicable
from effbench.models.hidden import hidden_layers
from effbench.surgery import operate

_MOST_RESTARTS = 1000  # each is a milestone


@technique(
    "model_centric/compression",
    paper="Hu et al., LoRA: Low-Rank Adaptation of Large Language Models, arXiv:2106.09685; merged and restarted in "
    "Lialin et al., ReLoRA: High-Rank Training Through Low-Rank Updates, arXiv:2307.05695",
    claim="GPT-3: 10,000 times fewer trained parameters and a third of the memory, for fine-tuning",
    neutral={"rank": 0},
    conflicts={"low_rank_factorization": "it factorises the matrices that are to be corrected"},
    title="LoRA with restarts",
)
def lora(recipe: Recipe, *, rank: int = 8, start: float = 0.25, restarts: int = 2) -> Recipe:
    """Freeze the matrices of the hidden linear layers, and train a product of two thin ones beside each.

    A layer computes `W x + U V x`, with U of outputs x rank, which starts at zero, and V of rank x inputs, which is
    random. At even distances after `start`, U V is added to W and both start anew, so that the sum of the corrections
    has a higher rank than each. Biases, norms, embeddings and the output layer go on learning.

    When it helps: memory of the optimizer, in fine-tuning of large models.
    When it does not: time of training from random weights: the forward pass costs more, the backward pass hardly less.

    rank: of the corrections; 0 turns it off.
    start: share of the budget that is trained as usual before.
    restarts: how often the corrections are merged and started anew.
    """
    check(rank, start, restarts)
    with torch.random.fork_rng(devices=[]):
        if not linear_layers(recipe.model()):
            raise NotApplicable("lora finds no linear layer in the model's `blocks`")
    if rank == 0:
        return recipe

    adapted = recipe.at(start, lambda training: begin(training, rank))
    for number in range(1, restarts + 1):
        adapted = adapted.at(start + (1.0 - start) * number / (restarts + 1), restart)
    return adapted


def begin(training: Training, rank: int) -> None:
    """Freeze the matrices, and put corrections beside them."""

    def edit(model: nn.Module) -> None:
        for name, layer in linear_layers(model).items():
            model.set_submodule(name, Corrected(layer, rank, training.rng))

    operate(training, edit)


def restart(training: Training) -> None:
    """Merge the corrections, and start them anew."""

    def edit(model: nn.Module) -> None:
        for layer in model.modules():
            if isinstance(layer, Corrected):
                layer.merge()
                layer.begin(training.rng)

    operate(training, edit)


def check(rank: int, start: float, restarts: int) -> None:
    """Raise InvalidTechnique where an option is out of its range."""
    if rank < 0:
        raise InvalidTechnique(f"lora: rank is {rank}; it should be 0 (off) or more")
    if not 0.0 <= start < 1.0:
        raise InvalidTechnique(f"lora: start is {start}; it should be a share from 0, below 1")
    if not 0 <= restarts <= _MOST_RESTARTS:
        raise InvalidTechnique(f"lora: restarts is {restarts}; it should be 0 to {_MOST_RESTARTS}")


def linear_layers(model: nn.Module) -> dict[str, nn.Linear]:
    """Return the linear layers in the blocks, by name."""
    return {name: layer for name, layer in hidden_layers(model).items() if isinstance(layer, nn.Linear)}


class Corrected(nn.Module):
    """A linear layer whose matrix is frozen, and a product of two thin ones beside it that learns."""

    def __init__(self, layer: nn.Linear, rank: int, random: torch.Generator) -> None:
        super().__init__()
        self.layer, self.rank = layer, rank
        layer.weight.requires_grad_(False)
        layer.weight.grad = None
        self.begin(random)

    @property
    def weight(self) -> Tensor:
        """The frozen matrix with its correction, (O, I)."""
        return self.layer.weight + self.up.weight @ self.down.weight

    def begin(self, random: torch.Generator) -> None:
        """Start with a correction of zero, with parameters that no optimizer knows."""
        outputs, inputs = self.layer.weight.shape
        drawn = torch.randn(self.rank, inputs, generator=random) / math.sqrt(inputs)
        self.down = nn.Linear(inputs, self.rank, bias=False, device="meta")
        self.up = nn.Linear(self.rank, outputs, bias=False, device="meta")
        self.down.weight = nn.Parameter(drawn.to(self.layer.weight))
        self.up.weight = nn.Parameter(torch.zeros_like(self.layer.weight[:, :1]).repeat(1, self.rank))

    @torch.no_grad()
    def merge(self) -> None:
        """Add the correction to the frozen matrix."""
        self.layer.weight.add_(self.up.weight @ self.down.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Return (..., O) for (..., I)."""
        corrected: Tensor = self.layer(x) + self.up(self.down(x))
        return corrected
