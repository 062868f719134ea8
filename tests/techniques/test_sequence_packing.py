import pytest
import torch
from torch import Tensor

from effbench.data.words import PADDING
from effbench.errors import NotApplicable
from effbench.models import gpt, text_classifier
from effbench.models.padding import first_fit_decreasing, layout
from effbench.optimizers import sgd
from effbench.recipe import Recipe
from effbench.techniques import compose
from effbench.terms import IGNORED
from effbench_techniques.model_centric.architecture.rope import rope
from effbench_techniques.model_centric.architecture.sliding_window_attention import sliding_window_attention
from effbench_techniques.system_centric.data.sequence_packing import sequence_packing
from effbench_techniques.system_centric.model.activation_checkpointing import activation_checkpointing
from toy import CLASSES, VOCABULARY, begun, first_batch, flat, random_integers, recipe, run, state, tokens

LENGTH = 16
KNOWN = {t.name: t for t in (activation_checkpointing, rope, sequence_packing, sliding_window_attention)}


def padded(count: int = 32) -> tuple[Tensor, Tensor]:
    """Token ids, none of them padding but at the end, and how many there are in each text: 1 to 16."""
    lengths = 1 + random_integers(LENGTH, count)
    ids = 1 + random_integers(VOCABULARY - 1, count, LENGTH)
    return ids.masked_fill(torch.arange(LENGTH) >= lengths[:, None], PADDING), lengths


def verses(**changes: object) -> Recipe:
    """Padded texts with a class each, and a small transformer."""
    facts = {
        "model": lambda: text_classifier(VOCABULARY, CLASSES, length=LENGTH, width=16, depth=2, heads=2),
        "classes": CLASSES,
        "traits": frozenset({"text", "padded"}),
    }
    return recipe(padded()[0], random_integers(CLASSES, 32), **{**facts, **changes})


def stories(**changes: object) -> Recipe:
    """Padded texts, and a small GPT that continues them; padding is no target."""
    ids, _ = padded()
    targets = torch.cat([ids[:, 1:], torch.full((32, 1), PADDING)], 1)
    facts = {
        "model": lambda: gpt(VOCABULARY, length=LENGTH, width=16, depth=2, heads=2),
        "traits": frozenset({"text", "causal", "padded"}),
    }
    return recipe(ids, targets.masked_fill(targets == PADDING, IGNORED), **{**facts, **changes})


def loss_and_gradient(of: Recipe) -> tuple[Tensor, Tensor]:
    training = begun(of)
    batch = first_batch(of, training, 32)
    losses = of.gradient(training, batch.replace(weight=batch.weight / batch.weight.sum()))
    return losses, torch.cat([weight.grad.flatten() for weight in training.model.parameters()])


@pytest.mark.parametrize("make", [verses, stories])
@pytest.mark.parametrize("others", [{}, {"rope": {}}, {"activation_checkpointing": {}}])
def test_losses_and_gradients_are_those_of_texts_in_rows_of_their_own(make, others) -> None:
    def arranged(pack: bool) -> Recipe:
        return compose(make(), {"sequence_packing": {"pack": pack}, **others}, KNOWN)[0]

    for ours, theirs in zip(loss_and_gradient(arranged(True)), loss_and_gradient(arranged(False)), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)


@pytest.mark.parametrize("pack", [True, False])
def test_a_text_gets_the_outputs_that_the_plain_model_gives_it_alone_and_without_padding(pack: bool) -> None:
    ids, lengths = padded()
    ours = begun(sequence_packing.apply(verses(), {"pack": pack})).model
    plain = begun(verses()).model
    assert ours.state_dict().keys() == plain.state_dict().keys()
    alone = torch.cat([plain(text[None, :length]) for text, length in zip(ids, lengths.tolist(), strict=True)])
    torch.testing.assert_close(ours(ids), alone, rtol=0, atol=1e-5)


@pytest.mark.parametrize("pack", [True, False])
def test_a_causal_model_never_looked_at_padding_and_trains_the_baselines_weights(pack: bool) -> None:
    plain = stories(optimizer=sgd(0.1, 0.9, 0.0))  # which, unlike Adam, does not make rounding large
    ours = run(sequence_packing.apply(plain, {"pack": pack}), 10).model
    torch.testing.assert_close(flat(ours), flat(run(plain, 10).model), rtol=0, atol=1e-5)


def test_no_token_is_lost_and_rows_hardly_waste_a_place() -> None:
    ids, lengths = padded()
    places = layout(ids, first_fit_decreasing)
    rows, width = places.shape
    assert width == LENGTH
    assert len(places.after.unique()) == len(places.before.unique()) == int(lengths.sum())
    assert torch.equal((places.texts >= 0).sum(), lengths.sum())
    assert int(lengths.sum()) / (rows * width) > 0.95
    laid = torch.zeros(rows * width, dtype=torch.long).index_copy(0, places.after, ids.flatten()[places.before])
    for text, length in enumerate(lengths.tolist()):  # each lies whole, in order, in one row
        here = (places.texts == text).nonzero()
        assert here[:, 0].unique().numel() == 1
        assert torch.equal(here[:, 1], here[0, 1] + torch.arange(length))
        assert torch.equal(laid.view(rows, width)[places.texts == text], ids[text, :length])


@pytest.mark.parametrize(
    ("lengths", "rows"),
    [([3, 7, 5, 5], [[1, 0], [2, 3]]), ([10, 1], [[0], [1]]), ([4, 4, 4, 4], [[0, 1], [2, 3]]), ([1], [[0]])],
)
def test_first_fit_decreasing(lengths: list[int], rows: list[list[int]]) -> None:
    assert first_fit_decreasing(lengths, 10) == rows


def test_the_blocks_see_fewer_tokens() -> None:
    seen = []
    for pack in (True, False):
        training = begun(sequence_packing.apply(verses(), {"pack": pack}))
        training.model.blocks[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].shape[:2].numel()))
        training.forward(padded()[0])
    packed, alone = seen
    assert alone == 32 * LENGTH
    assert packed < 1.05 * int(padded()[1].sum())


def test_a_text_of_padding_alone_is_no_trouble() -> None:
    ids = padded()[0].index_fill(0, torch.tensor([2]), PADDING)
    assert begun(sequence_packing.apply(verses(), {})).model(ids).isfinite().all()


def test_it_trains_and_repeats() -> None:
    first, second = (state(run(sequence_packing.apply(verses(), {})).model) for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="sequence_packing spares the padding"):
        sequence_packing.apply(tokens(), {})
    with pytest.raises(NotApplicable, match="needs a network with dot-product attention"):
        compose(stories(), {"sequence_packing": {}, "sliding_window_attention": {"window": 4}}, KNOWN)
