import pytest
import torch

from effbench.errors import InvalidTechnique
from effbench.techniques import compose
from effbench.train import Positions
from effbench_techniques.data_centric.regularization.batch_augmentation import batch_augmentation
from effbench_techniques.data_centric.regularization.cutout import cutout
from effbench_techniques.data_centric.sampling.uniform_subset import uniform_subset
from toy import begun, first_batch, images, run, same, vectors


@pytest.mark.parametrize("copies", [2, 4])
def test_a_batch_has_so_many_copies_of_each_and_the_order_is_the_baselines(copies: int) -> None:
    recipe = batch_augmentation.apply(vectors(), {"copies": copies})
    drawn = Positions(recipe.sampler(begun(recipe)))
    plain = Positions(vectors().sampler(begun(vectors())))
    for _ in range(30):  # over several epochs
        batch = drawn.take(8)
        assert batch.unique().tolist() == sorted(set(batch[::copies].tolist()))
        assert torch.bincount(batch).max() == copies
        assert torch.equal(batch[::copies], plain.take(8 // copies))


def test_copies_are_augmented_each_in_its_own_way() -> None:
    known = {each.name: each for each in (batch_augmentation, cutout)}
    recipe, _ = compose(images(16, 16), {"batch_augmentation": {}, "cutout": {}}, known)
    training = begun(recipe)
    batch = recipe.transform(recipe.loader(Positions(recipe.sampler(training)).take(8), training), training)
    assert torch.equal(batch.index[::2], batch.index[1::2])
    assert not any(torch.equal(one, other) for one, other in zip(batch.inputs[::2], batch.inputs[1::2], strict=True))


def test_without_augmentation_two_copies_are_a_batch_of_half_the_size() -> None:
    halves = run(vectors(batch_size=lambda progress: 4), 6)
    twice = run(batch_augmentation.apply(vectors(), {}), 6)
    ours, theirs = (torch.cat([w.flatten() for w in each.model.parameters()]) for each in (twice, halves))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)
    assert twice.examples == 48


def test_it_goes_with_a_subset() -> None:
    known = {each.name: each for each in (batch_augmentation, uniform_subset)}
    sets = {"batch_augmentation": {}, "uniform_subset": {"fresh": False, "fraction": 0.25}}
    recipe, _ = compose(vectors(), sets, known)
    assert len(next(recipe.sampler(begun(recipe)))) == 32
    assert len(next(recipe.sampler(begun(recipe))).unique()) == 16


def test_one_copy_is_the_baseline_and_two_are_not() -> None:
    baseline = run(images(), 4)
    assert same(run(batch_augmentation.apply(images(), {"copies": 1}), 4).model, baseline.model)
    assert not same(run(batch_augmentation.apply(images(), {}), 4).model, baseline.model)
    assert len(first_batch(batch_augmentation.apply(images(), {}), begun(images()))) == 8


def test_wrong_options_are_refused() -> None:
    with pytest.raises(InvalidTechnique, match="copies is 0"):
        batch_augmentation.apply(vectors(), {"copies": 0})
