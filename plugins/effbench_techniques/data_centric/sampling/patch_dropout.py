"""PatchDropout: train a vision transformer on a random part of the patches of each image."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from effbench import Batch, Recipe, Training, technique
from effbench.errors import InvalidTechnique, NotApplicable
from effbench.models.vit import PatchEmbedding

_SEEDS = 2**62


@technique(
    "data_centric/sampling",
    paper="Liu et al., PatchDropout: Economizing Vision Transformers Using Patch Dropout, arXiv:2208.07220",
    claim="ImageNet: at least half of the FLOPs and of the memory saved, for a small loss of accuracy",
    neutral={"keep": 1.0},
    conflicts={"torch_compile": "each step hangs another function on the model, which would be compiled anew"},
    title="PatchDropout",
)
def patch_dropout(recipe: Recipe, *, keep: float = 0.5) -> Recipe:
    """Show a vision transformer a random part of the patches of each training image; all of them in evaluation.

    The patches are embedded with their positions, and round(keep * T) of the T are handed on, drawn anew for each
    example and step. What comes after is cheaper in proportion, attention by the square.

    When it helps: large images of many patches, most of them redundant; long runs, where it also regularises.
    When it does not: few patches, each of which is needed; small networks, whose steps are bound by overhead. The model
        is evaluated on more patches than it was ever trained on.

    keep: share of the patches that is seen in training; 1 turns it off.
    """
    if not 0.0 < keep <= 1.0:
        raise InvalidTechnique(f"patch_dropout: keep is {keep}; it should be a share above 0, up to 1 (off)")
    with torch.random.fork_rng(devices=[]):
        if patches_of(recipe.model()) is None:
            raise NotApplicable("patch_dropout drops patches of images, and this model does not embed any")
    if keep == 1.0:
        return recipe

    def gradient(training: Training, batch: Batch) -> Tensor:
        seed = int(torch.randint(_SEEDS, (), generator=training.rng))
        dropping = drop(patches_of(training.model), keep, seed + training.group.rank)
        try:
            return recipe.gradient(training, batch)
        finally:
            dropping.remove()

    return recipe.wrap(gradient=gradient)


def patches_of(model: nn.Module) -> PatchEmbedding | None:
    """Return the module that embeds patches, if there is one."""
    return next((module for module in model.modules() if isinstance(module, PatchEmbedding)), None)


def drop(embed: nn.Module | None, keep: float, seed: int) -> RemovableHandle:
    """Let `embed` hand on a random part of its tokens until the handle is removed; a second pass draws the same."""
    assert embed is not None

    def thin(_module: nn.Module, _inputs: tuple[Tensor, ...], tokens: Tensor) -> Tensor:
        random = torch.Generator().manual_seed(seed)
        count, length, width = tokens.shape
        chosen = torch.rand(count, length, generator=random).argsort(1)[:, : max(1, round(keep * length))]
        return tokens.gather(1, chosen.to(tokens.device)[..., None].expand(-1, -1, width))

    return embed.register_forward_hook(thin)
