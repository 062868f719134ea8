"""Sequence packing: lay several short texts into one row, instead of filling each row with padding."""

from __future__ import annotations

from effbench import Recipe, technique
from effbench.models.padding import first_fit_decreasing, one_to_a_row, without_padding


@technique(
    "system_centric/data",
    paper="Krell et al., Efficient Sequence Packing without Cross-contamination: Accelerating Large Language Models "
    "without Impacting Performance, arXiv:2107.02027",
    claim="BERT, second phase: twice the throughput, as half of the tokens were padding",
    conflicts={
        "length_bucketing": "each says how texts are laid into rows",
        "random_ltd": "it leads some tokens around blocks, which then do not know whose the others are",
        "torch_compile": "the number of rows differs from batch to batch, and each is another graph",
    },
)
def sequence_packing(recipe: Recipe, *, pack: bool = True) -> Recipe:
    """Pack the texts of a batch into as few rows as they fill, each seeing nothing but itself.

    Rows are found by first-fit decreasing. Attention is masked to blocks, positions are those in the text, and what
    the blocks made is laid back for the head: losses and gradients are those of texts in rows of their own. Batches
    and their order stay what they are. Padding takes no part in attention nor in means, in training and in evaluation;
    where it did in the baseline, as in our classifier of verses, this changes the model: compare with `pack = false`.

    When it helps: texts much shorter than the row, such as our verses.
    When it does not: text that is cut from a stream has no padding. Masked attention computes what it throws away.

    pack: false leaves each text in a row of its own, cut to the longest of the batch: the control.
    """
    return without_padding(recipe, first_fit_decreasing if pack else one_to_a_row)
