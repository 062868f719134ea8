from itertools import pairwise

import pytest
import torch

from effbench.errors import NotApplicable
from effbench.techniques import compose
from effbench_techniques.data_centric.regularization.alternating_flip import alternating_flip
from effbench_techniques.data_centric.sampling.selective_backprop import selective_backprop
from toy import begun, first_batch, images, run, same, vectors


def sides(recipe, training, count: int = 32) -> list[bool]:
    """Whether each of the first images is mirrored now; it is that or as it is."""
    clean, batch = first_batch(images(), training, count), first_batch(recipe, training, count)
    found = []
    for one, other in zip(clean.inputs, batch.inputs, strict=True):
        mirrored = torch.equal(other, one.flip(-1))
        assert mirrored or torch.equal(other, one)
        found.append(mirrored)
    return found


def test_any_two_epochs_in_a_row_show_each_image_once_mirrored() -> None:
    recipe = alternating_flip.apply(images(), {})
    training = begun(recipe)
    epochs = [sides(recipe, training) for _ in range(4)]
    for one, other in pairwise(epochs):
        assert [a + b for a, b in zip(one, other, strict=True)] == [1] * 32
    assert 8 <= sum(epochs[0]) <= 24


def test_what_counts_is_how_often_an_image_was_seen() -> None:
    recipe = alternating_flip.apply(images(), {})
    training = begun(recipe)
    first = sides(recipe, training)
    assert sides(recipe, training, 5) == [not side for side in first[:5]]
    assert sides(recipe, training) == first[:5] + [not side for side in first[5:]]


def test_what_is_not_chosen_is_not_counted() -> None:
    known = {each.name: each for each in (alternating_flip, selective_backprop)}
    recipe, order = compose(images(), {"alternating_flip": {}, "selective_backprop": {"start": 0.0}}, known)
    assert order == ["selective_backprop", "alternating_flip"]
    training = begun(recipe)
    chosen = first_batch(recipe, training).index
    after = training.kept["alternating_flip"]
    fresh = torch.randint(2, (32,), generator=begun(images()).rng)
    assert (after - fresh).nonzero()[:, 0].tolist() == sorted(chosen.tolist())


def test_random_flips_repeat_themselves_half_of_the_time() -> None:
    recipe = alternating_flip.apply(images(), {"alternate": False})
    training = begun(recipe)
    epochs = torch.tensor([sides(recipe, training) for _ in range(20)])
    repeated = (epochs[1:] == epochs[:-1]).float().mean()
    assert 0.4 < repeated < 0.6
    assert "alternating_flip" not in training.kept


def test_it_is_not_the_baseline_and_two_runs_are_alike() -> None:
    once, again = run(alternating_flip.apply(images(), {}), 5), run(alternating_flip.apply(images(), {}), 5)
    assert same(once.model, again.model)
    assert not same(once.model, run(images(), 5).model)


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="mirrors images"):
        alternating_flip.apply(vectors(), {})
