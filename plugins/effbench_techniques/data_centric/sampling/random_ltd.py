"""Random-LTD: let only some tokens through the middle blocks of a transformer, more and more of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn

from effbench import Batch, Recipe, Training, technique
from effbench.errors import InvalidTechnique, NotApplicable
from effbench.models.transformer import Attention

_SEEDS = 2**62
_ROUNDING = 1e-9  # a stage begins where its phase does

_MOST_STAGES = 1000  # each is a phase that is priced by itself


@technique(
    "data_centric/sampling",
    paper="Yao et al., Random-LTD: Random and Layerwise Token Dropping Brings Efficient Training for Large-scale "
    "Transformers, arXiv:2211.11586",
    claim="GPT-3 1.3B: a third of the cost of training saved at equal quality",
    neutral={"initial_scale": 1.0},
    conflicts={
        "rope": "a block takes the tokens that are left for neighbours, and their distances would be wrong",
        "sliding_window_attention": "a block takes the tokens that are left for neighbours, and windows would be wider",
        "torch_compile": "each step runs the blocks by another function, which would be compiled anew",
    },
    title="Random-LTD",
)
def random_ltd(
    recipe: Recipe, *, initial_scale: float = 0.5, duration: float = 0.7, stages: int = 4, spared: int = 1
) -> Recipe:
    """Let a random part of the tokens through each of the middle blocks, and lead the others around it unchanged.

    Each block draws its own tokens for each example in each step; their order stays, so causal attention stays causal.
    The first and the last blocks see all tokens, and every token has its loss. The number of tokens grows in `stages`
    equal steps, from `initial_scale` of the sequence to all of it, which is reached after `duration` of the budget.

    When it helps: deep transformers on long sequences; reported by its authors, who are the vendors of DeepSpeed.
    When it does not: shallow networks, of which the first and the last block are most; short sequences.

    initial_scale: share of the tokens that middle blocks see at the beginning; 1 turns it off.
    duration: share of the budget after which they see all tokens.
    stages: how many numbers of tokens there are, the full one included.
    spared: blocks at either end that see all tokens.
    """
    check(initial_scale, duration, stages, spared)
    with torch.random.fork_rng(devices=[]):
        if not middle_blocks(recipe.model(), spared):
            raise NotApplicable(
                f"random_ltd leads tokens around blocks with attention, and this model has none but the {spared} at "
                "either end"
            )
    if initial_scale == 1.0:
        return recipe
    share_at = growing(initial_scale, duration, stages)

    def gradient(training: Training, batch: Batch) -> Tensor:
        if (share := share_at(training.progress)) == 1.0:
            return recipe.gradient(training, batch)
        blocks = middle_blocks(training.model, spared)
        seeds = torch.randint(_SEEDS, (len(blocks),), generator=training.rng).tolist()
        with ExitStack() as stack:
            for block, seed in zip(blocks, seeds, strict=True):
                stack.enter_context(bypassed(block, share, seed + training.group.rank))
            return recipe.gradient(training, batch)

    growth = (duration * stage / (stages - 1) for stage in range(1, stages))
    return recipe.wrap(gradient=gradient, phases=(*recipe.phases, *growth))


def check(initial_scale: float, duration: float, stages: int, spared: int) -> None:
    """Raise InvalidTechnique where an option is out of its range."""
    if not 0.0 < initial_scale <= 1.0:
        raise InvalidTechnique(
            f"random_ltd: initial_scale is {initial_scale}; it should be a share above 0, up to 1 (off)"
        )
    if not 0.0 < duration <= 1.0:
        raise InvalidTechnique(f"random_ltd: duration is {duration}; it should be a share of the budget above 0")
    if not 2 <= stages <= _MOST_STAGES:
        raise InvalidTechnique(f"random_ltd: stages is {stages}; it should be 2 to {_MOST_STAGES} numbers of tokens")
    if spared < 0:
        raise InvalidTechnique(f"random_ltd: spared is {spared}; it should be 0 blocks or more")


def growing(initial_scale: float, duration: float, stages: int) -> Callable[[float], float]:
    """Return the function progress -> share of the tokens."""

    def share_at(progress: float) -> float:
        if progress >= duration:
            return 1.0
        stage = int(progress / duration * (stages - 1) + _ROUNDING)
        return initial_scale + (1.0 - initial_scale) * stage / (stages - 1)

    return share_at


def middle_blocks(model: nn.Module, spared: int) -> list[nn.Module]:
    """Return the blocks with attention, without `spared` of them at either end."""
    blocks = getattr(model, "blocks", None)
    if not isinstance(blocks, nn.ModuleList):
        return []
    found = [block for block in blocks if any(isinstance(module, Attention) for module in block.modules())]
    return found[spared : len(found) - spared]


@contextmanager
def bypassed(block: nn.Module, share: float, seed: int) -> Iterator[None]:
    """Let `block` see a random part of the tokens, (B, T, C), and lead the others around, while the context is open.

    A second pass, as in recomputation, draws the same tokens.
    """
    before, computed = vars(block).get("forward"), block.forward

    def forward(x: Tensor) -> Tensor:
        count, length, width = x.shape
        random = torch.Generator().manual_seed(seed)
        drawn = torch.rand(count, length, generator=random).argsort(1)[:, : max(1, round(share * length))]
        chosen = drawn.sort(1).values.to(x.device)[..., None].expand(-1, -1, width)
        seen: Tensor = computed(x.gather(1, chosen))
        return x.scatter(1, chosen, seen.to(x.dtype))

    block.forward = forward
    try:
        yield
    finally:
        if before is None:
            del block.forward
        else:
            block.forward = before
