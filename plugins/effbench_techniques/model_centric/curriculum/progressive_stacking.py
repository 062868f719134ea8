"""Progressive stacking: train a shallow network, and double its depth by copying the trained blocks."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from itertools import groupby

import torch
from torch import Tensor, nn

from effbench import Recipe, Training, technique
from effbench.errors import Conflict, InvalidTechnique, NotApplicable
from effbench.surgery import Origin, operate

_MOST_STAGES = 32  # each doubles the depth


@technique(
    "model_centric/curriculum",
    paper="Gong et al., Efficient Training of BERT by Progressively Stacking, ICML 2019; compared with other ways to "
    "grow in Gu et al., On the Transformer Growth for Progressive BERT Training, arXiv:2010.12562",
    claim="BERT-base in about 25 % less time at equal quality",
    neutral={"stages": 1},
)
def progressive_stacking(recipe: Recipe, *, stages: int = 2, full: float = 0.5, inherit: bool = True) -> Recipe:
    """Train a shallow network first, and put copies of its trained blocks on top of them until it is deep.

    Every run of blocks that could stand for each other begins with its first n / 2^(stages - 1), as they are
    initialised in the baseline, and doubles at each stage: the block i of the upper half starts as a copy of the block
    i of the lower half. Blocks could stand for each other if they are built alike and keep the shape of their input.

    When it helps: deep transformers, where the shallow network is much cheaper and its blocks do alike work.
    When it does not: no gain for BERT against a baseline whose rate decays within the budget (Kaddour et al., No Train
        No Gain, arXiv:2307.06440); models of two or three blocks, where depth is a small part of the cost.

    stages: number of depths, each twice the one before; 1 turns it off.
    full: share of the budget at which the network has its full depth; the stages before it are equally long.
    inherit: true gives copies the optimizer state of their originals, false lets it start anew.
    """
    if not 1 <= stages <= _MOST_STAGES:
        raise InvalidTechnique(f"progressive_stacking: stages is {stages}; it should be 1 (off) to {_MOST_STAGES}")
    if not 0.0 < full < 1.0:
        raise InvalidTechnique(f"progressive_stacking: full is {full}; it should be a share between 0 and 1")
    if stages == 1:
        return recipe
    with torch.random.fork_rng(devices=[]):
        runs = interchangeable(recipe.model(), recipe.dataset.inputs[:2])
    if max(runs, default=1) == 1:
        raise NotApplicable("progressive_stacking finds no two blocks in this model that could stand for each other")
    plan = [[math.ceil(run / 2**later) for run in runs] for later in reversed(range(stages))]

    def model() -> nn.Module:
        made = recipe.model()
        made.blocks = nn.ModuleList(lowest(split(blocks_of(made), runs), plan[0]))
        return made

    grown = recipe.wrap(model=model)
    for stage in range(1, stages):
        grown = grown.at(full * stage / (stages - 1), stacking(plan[stage - 1], plan[stage], inherit=inherit))
    return grown


def interchangeable(model: nn.Module, inputs: Tensor) -> list[int]:
    """Return the lengths of the runs of blocks that are built alike and keep the shape of their input, in order.

    inputs: (B, ...) examples to look at the shapes of.
    """
    blocks = blocks_of(model)
    kept: dict[nn.Module, bool] = {}

    def look(block: nn.Module, arguments: tuple[Tensor, ...], output: Tensor) -> None:
        kept[block] = output.shape == arguments[0].shape

    for block in blocks:
        block.register_forward_hook(look)
    with torch.no_grad():
        model.eval()(inputs.to(next(model.parameters()).device))

    def kind(numbered: tuple[int, nn.Module]) -> object:
        number, block = numbered
        return (repr(block), [p.shape for p in block.parameters()]) if kept.get(block) else number

    return [len(list(run)) for _, run in groupby(enumerate(blocks), kind)]


def split(blocks: Sequence[nn.Module], lengths: Sequence[int]) -> list[list[nn.Module]]:
    """Cut the blocks into runs of these lengths.

    Raises:
        Conflict: there are more or fewer blocks.
    """
    if len(blocks) != sum(lengths):
        raise Conflict(
            f"progressive_stacking left {sum(lengths)} blocks and finds {len(blocks)}; another technique changes them"
        )
    rest = iter(blocks)
    return [[next(rest) for _ in range(length)] for length in lengths]


def lowest(runs: Sequence[Sequence[nn.Module]], lengths: Sequence[int]) -> list[nn.Module]:
    """Return the first blocks of each run, as many as `lengths` says."""
    return [block for run, length in zip(runs, lengths, strict=True) for block in run[:length]]


def stacking(before: Sequence[int], after: Sequence[int], *, inherit: bool) -> Callable[[Training], None]:
    """Return what a milestone does: let runs of these lengths grow to those, the optimizer following."""

    def grow(training: Training) -> None:
        operate(training, lambda model: stack(model, before, after, inherit=inherit))

    return grow


def stack(model: nn.Module, before: Sequence[int], after: Sequence[int], *, inherit: bool) -> Origin:
    """Put copies of its lowest blocks on top of each run; return whose optimizer state the copies' parameters get."""
    origin: dict[nn.Parameter, nn.Parameter] = {}
    stacked: list[nn.Module] = []
    for run, length in zip(split(blocks_of(model), before), after, strict=True):
        stacked += run
        for original in run[: length - len(run)]:
            made = copy.deepcopy(original)
            stacked.append(made)
            if inherit:
                origin.update(zip(made.parameters(), original.parameters(), strict=True))
    model.blocks = nn.ModuleList(stacked)
    return origin


def blocks_of(model: nn.Module) -> list[nn.Module]:
    """Return the model's blocks; none where it has no `blocks`."""
    blocks = getattr(model, "blocks", None)
    return list(blocks) if isinstance(blocks, nn.ModuleList) else []
