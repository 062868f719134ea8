"""Length bucketing: batches of texts of similar length, which need little padding."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from effbench import Recipe, Training, technique
from effbench.data.words import PADDING
from effbench.errors import InvalidTechnique
from effbench.models.padding import one_to_a_row, without_padding


@technique(
    "system_centric/data",
    paper="Khomenko et al., Accelerating Recurrent Neural Network Training Using Sequence Bucketing and Multi-GPU Data "
    "Parallelization, arXiv:1708.05604; as in Ott et al., fairseq, arXiv:1904.01038",
    claim="faster epochs where lengths vary much, shown for the recognition of handwriting by an LSTM",
    conflicts={
        "random_ltd": "it leads some tokens around blocks, which then do not know whose the others are",
        "torch_compile": "the length differs from batch to batch, and each is another graph",
    },
)
def length_bucketing(recipe: Recipe, *, window: int = 20) -> Recipe:
    """Sort the next `window` batches of texts by length, cut batches from them, and train on these in random order.

    Each batch is cut to its longest text. Every text is drawn once an epoch, as before, and the order of batches is
    random; which texts share a batch is not. Padding takes no part in attention nor in means, in training and in
    evaluation; where it did in the baseline, as in our classifier of verses, this changes the model: compare with
    `window = 1`.

    When it helps: texts of very different lengths, most of them short, such as our verses.
    When it does not: text that is cut from a stream has no padding; gradients of batches of one length are noisier.

    window: batches that are sorted together; 1 leaves the order as it is, and only cuts: the control.
    """
    if window < 1:
        raise InvalidTechnique(f"length_bucketing: window is {window}; it should be 1 (no sorting) or more batches")
    cutting = without_padding(recipe, one_to_a_row)
    if window == 1:
        return cutting

    def sampler(training: Training) -> Iterator[Tensor]:
        lengths = (training.recipe.dataset.inputs != PADDING).sum(1).cpu()
        drawn = 0
        for chunk in recipe.sampler(training):
            size = training.recipe.batch_size(training.progress)
            lacking = -drawn % size  # what the batch lacks that the former chunk could not fill
            yield torch.cat([chunk[:lacking], bucketed(chunk[lacking:], lengths, size, window, training.rng)])
            drawn += len(chunk)

    return cutting.wrap(sampler=sampler)


def bucketed(positions: Tensor, lengths: Tensor, size: int, window: int, random: torch.Generator) -> Tensor:
    """Return the same (K,) positions in another order: batches of like length, those of each window shuffled.

    lengths: (N,) of all examples.
    """
    arranged = []
    for piece in torch.split(positions, size * window):
        by_length = piece[lengths[piece].argsort(stable=True)]
        whole = len(piece) // size
        batches = by_length[: whole * size].view(whole, size)
        arranged += [batches[torch.randperm(whole, generator=random)].flatten(), by_length[whole * size :]]
    return torch.cat(arranged) if arranged else positions
