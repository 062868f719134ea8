"""Net2Net: train a narrow network, and widen it without changing what it computes."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from effbench import Recipe, Training, technique
from effbench.errors import InvalidTechnique, NotApplicable
from effbench.models import residuals
from effbench.models.resnet import ResidualBlock
from effbench.models.transformer import FeedForward
from effbench.surgery import operate

Inner = FeedForward | ResidualBlock


@technique(
    "model_centric/curriculum",
    paper="Chen et al., Net2Net: Accelerating Learning via Knowledge Transfer, arXiv:1511.05641",
    claim="wider and deeper Inception networks reach their accuracy faster than from random weights",
    neutral={"scale": 1.0},
    conflicts={
        "ghost_batchnorm": "it would look for a norm's weights that are hidden in another one",
        "low_rank_factorization": "a matrix in two factors cannot be widened unit by unit",
        "lora": "a matrix with a correction beside it cannot be widened unit by unit",
        "qat_fake_quant": "it would look for units that are hidden in quantised layers",
    },
    title="Net2Net",
)
def net2net(recipe: Recipe, *, scale: float = 0.5, full: float = 0.5, noise: float = 0.1) -> Recipe:
    """Train with fewer hidden units in the residual branches first, then copy units until there are as many as usual.

    Hidden units are those between the two layers of a feed-forward branch, or the channels between the two convolutions
    of a residual block. The narrow network has the first share `scale` of the baseline's. When it is widened, each new
    unit is a copy of a random old one, and what goes out of a unit is divided by the number of its copies: the outputs
    stay the same. Noise on the copies' incoming weights lets them part; without, equal units have equal gradients.

    When it helps: wide branches, where the narrow network is much cheaper.
    When it does not: unknown under a fixed budget; what is known of growing in depth (Kaddour et al., No Train No Gain,
        arXiv:2307.06440) does not speak for it. Small networks, bound by overhead, are as slow when narrow.

    scale: share of the hidden units at the beginning; 1 turns it off.
    full: share of the budget at which the network is widened.
    noise: standard deviation of the noise on a copy's incoming weights, as a share of that of the weights.
    """
    check(scale, full, noise)
    with torch.random.fork_rng(devices=[]):
        full_units = {units(branch) for branch in inner(recipe.model())}
    if not full_units:
        raise NotApplicable("net2net widens feed-forward branches and residual blocks, and this model has none")
    if scale == 1.0:
        return recipe
    few = {count: max(1, round(scale * count)) for count in full_units}
    many = {narrow: count for count, narrow in few.items()}

    def model() -> nn.Module:
        made = recipe.model()
        for branch in inner(made):
            take(branch, torch.arange(few[units(branch)]))
        return made

    def widen(training: Training) -> None:
        def edit(model: nn.Module) -> None:
            for branch in inner(model):
                duplicate(branch, many[units(branch)], noise, training.rng)

        operate(training, edit)

    return recipe.wrap(model=model).at(full, widen)


def check(scale: float, full: float, noise: float) -> None:
    """Raise InvalidTechnique where an option is out of its range."""
    if not 0.0 < scale <= 1.0:
        raise InvalidTechnique(f"net2net: scale is {scale}; it should be a share above 0, up to 1 (off)")
    if not 0.0 < full < 1.0:
        raise InvalidTechnique(f"net2net: full is {full}; it should be a share between 0 and 1")
    if not 0.0 <= noise < math.inf:
        raise InvalidTechnique(f"net2net: noise is {noise}; it should be a finite share, 0 or more")


def inner(model: nn.Module) -> list[Inner]:
    """Return the branches whose hidden units go out of one layer, one by one, and into the next."""
    found: list[Inner] = []
    for branch in residuals(model).values():
        if isinstance(branch, FeedForward | ResidualBlock):
            out, into = (getattr(layer, "weight", None) for layer in (branch.first, branch.last))
            if out is not None and into is not None and out.shape[0] == into.shape[1]:
                found.append(branch)
    return found


def units(branch: Inner) -> int:
    """Return the number of hidden units of a branch."""
    return int(branch.last.weight.shape[1])


@torch.no_grad()
def take(branch: Inner, chosen: Tensor) -> None:
    """Let the branch have these hidden units, (H,), of its own; one may be there several times."""
    chosen = chosen.to(branch.last.weight.device)
    own: list[tuple[nn.Module, str, int]] = [
        (branch.first, "weight", 0),
        (branch.first, "bias", 0),
        (branch.last, "weight", 1),
    ]
    if isinstance(branch, ResidualBlock):
        norm = branch.last_norm
        own += [(norm, name, 0) for name in ("weight", "bias", "running_mean", "running_var")]
        norm.num_features = branch.first.out_channels = branch.last.in_channels = len(chosen)
    else:
        branch.first.out_features = branch.last.in_features = len(chosen)
    for module, name, dimension in own:
        tensor = getattr(module, name)
        if tensor is not None:
            some = tensor.index_select(dimension, chosen)
            setattr(module, name, nn.Parameter(some) if isinstance(tensor, nn.Parameter) else some)


@torch.no_grad()
def duplicate(branch: Inner, width: int, noise: float, random: torch.Generator) -> None:
    """Let the branch have `width` hidden units, the new ones copies of old ones, and compute the same but for noise."""
    before = units(branch)
    new = torch.randint(before, (max(0, width - before),), generator=random)
    chosen = torch.cat([torch.arange(before), new])
    copies = torch.bincount(chosen, minlength=before)[chosen].to(branch.last.weight)
    std = float(branch.first.weight.detach().std())
    take(branch, chosen)
    branch.last.weight.div_(copies.view(1, -1, *[1] * (branch.last.weight.ndim - 2)))
    drawn = torch.randn(branch.first.weight[before:].shape, generator=random)
    branch.first.weight[before:] += noise * std * drawn.to(branch.first.weight)
