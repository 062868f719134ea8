import pytest
import torch

from effbench.data.words import PADDING
from effbench.errors import Conflict, InvalidTechnique, NotApplicable
from effbench.models import text_classifier
from effbench.recipe import Recipe
from effbench.techniques import compose
from effbench_techniques.system_centric.data.length_bucketing import bucketed, length_bucketing
from effbench_techniques.system_centric.data.sequence_packing import sequence_packing
from toy import CLASSES, VOCABULARY, begun, random_integers, recipe, run, same, state, tokens

COUNT, LENGTH = 100, 16
LENGTHS = 1 + random_integers(LENGTH, COUNT)


def verses(**changes: object) -> Recipe:
    """A hundred texts of 1 to 16 words, with a class each, and a small transformer."""
    ids = 1 + random_integers(VOCABULARY - 1, COUNT, LENGTH)
    ids = ids.masked_fill(torch.arange(LENGTH) >= LENGTHS[:, None], PADDING)
    facts = {
        "model": lambda: text_classifier(VOCABULARY, CLASSES, length=LENGTH, width=16, depth=1, heads=2),
        "classes": CLASSES,
        "traits": frozenset({"text", "padded"}),
    }
    return recipe(ids, random_integers(CLASSES, COUNT), **{**facts, **changes})


def batches(recipe: Recipe, count: int) -> list[torch.Tensor]:
    """The positions of every batch of a run."""
    seen: list[torch.Tensor] = []

    def noting(positions, training):
        seen.append(positions)
        return recipe.loader(positions, training)

    run(recipe.wrap(loader=noting), count)
    return seen


def padding(drawn: list[torch.Tensor]) -> float:
    """The share of padding in batches that are cut to their longest text."""
    places = sum(len(batch) * int(LENGTHS[batch].max()) for batch in drawn)
    return 1.0 - sum(int(LENGTHS[batch].sum()) for batch in drawn) / places


def test_every_text_is_drawn_once_an_epoch() -> None:
    drawn = torch.cat(batches(length_bucketing.apply(verses(), {"window": 5}), 38))  # three epochs, in batches of 8
    for epoch in range(3):
        assert sorted(drawn[epoch * COUNT : (epoch + 1) * COUNT].tolist()) == list(range(COUNT))


def test_the_share_of_padding_falls_the_more_batches_are_sorted_together() -> None:
    alone, five, all_of_them = (
        padding(batches(length_bucketing.apply(verses(), {"window": window}), 50)) for window in (1, 5, 20)
    )
    assert alone > 0.35
    assert five < 0.6 * alone
    assert all_of_them < 0.3 * alone


def test_batches_of_one_length_come_in_random_order() -> None:
    random = torch.Generator().manual_seed(0)
    lengths = torch.arange(64) % 16
    drawn = bucketed(torch.randperm(64, generator=random), lengths, 8, 8, random).view(8, 8)
    assert all(lengths[batch].max() - lengths[batch].min() <= 1 for batch in drawn)
    firsts = [int(lengths[batch].min()) for batch in drawn]
    assert sorted(firsts) == list(range(0, 16, 2))
    assert firsts != sorted(firsts)


@pytest.mark.parametrize("size", [6, 8])  # 100 texts are no multiple, and neither lacks what is left
def test_a_batch_that_an_epoch_could_not_fill_does_not_shift_those_after_it(size: int) -> None:
    steps, epoch = 2 * COUNT // size, -(-COUNT // size)
    drawn = batches(length_bucketing.apply(verses(batch_size=lambda progress: size), {"window": 20}), steps)
    spreads = [int(LENGTHS[batch].max() - LENGTHS[batch].min()) for batch in drawn]
    assert sum(spread > 4 for spread in spreads) <= 1
    assert max(spreads[epoch:]) <= 4


def test_the_blocks_see_batches_that_are_cut_to_their_longest_text() -> None:
    seen = []
    training = begun(length_bucketing.apply(verses(), {}))
    training.model.blocks[0].register_forward_pre_hook(lambda _, inputs: seen.append(tuple(inputs[0].shape[:2])))
    short = (LENGTHS <= 5).nonzero()[:8, 0]
    training.forward(training.recipe.dataset.inputs[short])
    assert seen == [(8, int(LENGTHS[short].max()))]


def test_it_trains_and_repeats_and_the_control_has_the_same_model() -> None:
    sorted_, again, control = (
        run(length_bucketing.apply(verses(), {"window": window})).model for window in (20, 20, 1)
    )
    assert same(sorted_, again)
    assert state(sorted_).keys() == state(control).keys()
    assert not same(sorted_, control)


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="length_bucketing spares the padding"):
        length_bucketing.apply(tokens(), {})
    with pytest.raises(InvalidTechnique, match="window is 0"):
        length_bucketing.apply(verses(), {"window": 0})
    known = {t.name: t for t in (length_bucketing, sequence_packing)}
    with pytest.raises(Conflict, match="each says how texts are laid into rows"):
        compose(verses(), {"length_bucketing": {}, "sequence_packing": {}}, known)
