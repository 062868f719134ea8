"""Texts without their padding: models in which it takes no part, and may be left out.

Texts of different lengths fill the end of their row with a token that stands for nothing. Here they are laid into
other rows before the blocks, cut to the longest or packed several to a row, and laid back after them. No text sees
anything but itself, wherever it lies, so that the arrangement changes nothing but the cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from effbench.data.words import PADDING
from effbench.errors import NotApplicable
from effbench.models.network import Mean, Network
from effbench.models.replacing import replace
from effbench.models.transformer import DotProduct
from effbench.recipe import Recipe

#: (lengths of the texts, the most tokens of a row) -> for each row, which texts lie in it, one after the other.
Arrange = Callable[[Sequence[int], int], list[list[int]]]

_EMPTY = -1  # the text that the empty places of all rows belong to


def one_to_a_row(lengths: Sequence[int], longest: int) -> list[list[int]]:  # noqa: ARG001 - the signature of Arrange
    """Leave every text in a row of its own."""
    return [[text] for text in range(len(lengths))]


def first_fit_decreasing(lengths: Sequence[int], longest: int) -> list[list[int]]:
    """Put the longest text that is left into the first row that has room for it, or into a new one.

    At most 11/9 of the fewest possible rows, and one (Johnson, Near-Optimal Bin Packing Algorithms, 1973).
    """
    rows: list[list[int]] = []
    room: list[int] = []
    for text in sorted(range(len(lengths)), key=lambda text: -lengths[text]):
        row = next((row for row, left in enumerate(room) if left >= lengths[text]), len(rows))
        if row == len(rows):
            rows.append([])
            room.append(longest)
        rows[row].append(text)
        room[row] -= lengths[text]
    return rows


def without_padding(recipe: Recipe, arrange: Arrange) -> Recipe:
    """Return a recipe whose model leaves padding out; its weights, their names and its inputs are as before.

    Raises:
        NotApplicable: texts are not padded, or this model attends in another way.
    """
    name = recipe.author or "leaving padding out"
    if "padded" not in recipe.traits:
        raise NotApplicable(f"{name} spares the padding of texts, and there is none in this workload")
    with torch.random.fork_rng(devices=[]):
        found = recipe.model()
    if type(found) is not Network or not any(type(module) is DotProduct for module in found.modules()):
        raise NotApplicable(f"{name} needs a network with dot-product attention, which it keeps to one text")

    def model() -> nn.Module:
        made = recipe.model()
        assert isinstance(made, Network)
        return Unpadded(made, arrange)

    return recipe.wrap(model=model)


class Layout(NamedTuple):
    """Where the N tokens of (B, T) texts lie in (R, L) rows."""

    shape: tuple[int, int]  # R, L
    before: Tensor  # (N,) places in B * T
    after: Tensor  # (N,) places in R * L
    texts: Tensor  # (R, L) which text is there, -1 where none is
    lengths: Tensor  # (B,) tokens of each text, 1 at the least


def layout(ids: Tensor, arrange: Arrange) -> Layout:
    """Find a place for every token of (B, T) ids; rows are as long as the fullest of them."""
    count, longest = ids.shape
    lengths = ((ids != PADDING) * torch.arange(1, longest + 1, device=ids.device)).amax(1).clamp_min(1)
    known = lengths.tolist()
    rows = arrange(known, longest)
    width = max(sum(known[text] for text in row) for row in rows)
    starts = [0] * count
    for number, row in enumerate(rows):
        start = number * width
        for text in row:
            starts[text] = start
            start += known[text]
    steps = torch.arange(longest, device=ids.device)
    there = steps < lengths[:, None]
    after = (torch.tensor(starts, device=ids.device)[:, None] + steps)[there]
    texts = torch.full((len(rows) * width,), _EMPTY, device=ids.device)
    texts[after] = there.nonzero()[:, 0]
    shape = (len(rows), width)
    return Layout(shape, there.flatten().nonzero()[:, 0], after, texts.view(shape), lengths)


def moved(features: Tensor, source: Tensor, target: Tensor, shape: tuple[int, int]) -> Tensor:
    """Take the tokens of (B, T, C) features at `source` to the places `target` of (*shape, C), zero elsewhere."""
    flat = features.flatten(0, 1)
    laid = flat.new_zeros(shape[0] * shape[1], flat.shape[1]).index_copy(0, target, flat.index_select(0, source))
    return laid.view(*shape, -1)


class Unpadded(Network):
    """A network whose blocks see texts without their padding.

    Positions are embedded before texts are moved, and so stay what they were.
    """

    def __init__(self, network: Network, arrange: Arrange) -> None:
        super().__init__(network.embed, network.blocks, network.head)
        self.arrange = arrange
        replace(self.blocks, DotProduct, lambda attend: WithinTexts(causal=attend.causal))
        replace(self.head, Mean, lambda _: MeanOfText())

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits of (B, T) token ids; those of padding mean nothing."""
        places = layout(inputs, self.arrange)
        seen = places.texts[:, None, :, None] == places.texts[:, None, None, :]
        for module in self.modules():
            if isinstance(module, WithinTexts):
                module.seen = seen
            elif isinstance(module, MeanOfText):
                module.lengths = places.lengths
        features = moved(self.embed(inputs), places.before, places.after, places.shape)
        for block in self.blocks:
            features = block(features)
        rows, length = inputs.shape
        outputs: Tensor = self.head(moved(features, places.after, places.before, (rows, length)))
        return outputs


class WithinTexts(nn.Module):
    """Scaled dot-product attention among the tokens of one text, several of which may share a row.

    seen: (R, 1, L, L) booleans, which the network sets before it calls its blocks.
    """

    seen: Tensor

    def __init__(self, *, causal: bool) -> None:
        super().__init__()
        self.causal = causal

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Mix the values of each head; all shapes (R, heads, L, C / heads)."""
        seen = self.seen.tril() if self.causal else self.seen
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)

    def extra_repr(self) -> str:
        """Show which tokens are seen."""
        return f"causal={self.causal}"


class MeanOfText(nn.Module):
    """The mean over the tokens of a text, padding left out; (B, T, C) -> (B, C).

    lengths: (B,) which the network sets before it calls its head.
    """

    lengths: Tensor

    def forward(self, x: Tensor) -> Tensor:
        """Return the mean of `x` over its first tokens; (B, T, C) -> (B, C)."""
        there = torch.arange(x.shape[1], device=x.device) < self.lengths[:, None]
        return (x * there[..., None]).sum(1) / self.lengths[:, None]
