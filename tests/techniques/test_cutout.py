import pytest
import torch

from effbench.errors import InvalidTechnique, NotApplicable
from effbench_techniques.data_centric.regularization.cutout import cutout, stripes
from toy import begun, first_batch, images, run, same, vectors


@pytest.mark.parametrize("size", [0.25, 0.5, 1.0])
def test_no_more_pixels_than_the_square_has_are_zero_and_none_else_changes(size: float) -> None:
    recipe = cutout.apply(images(16, 8), {"size": size})
    training = begun(recipe)
    clean = first_batch(images(16, 8), training, 32)
    areas = set()
    for _ in range(20):
        batch = first_batch(recipe, training, 32)
        changed = batch.inputs != clean.inputs
        assert (batch.inputs[changed] == 0.0).all()
        rows, columns = changed.any(3).sum(2), changed.any(2).sum(2)
        assert torch.equal(changed.sum((2, 3)), rows * columns)  # a box, whole
        assert rows.max() == (round(size * 16) if size < 1.0 else rows.max())  # a whole one hardly ever fits
        assert columns.max() == (round(size * 8) if size < 1.0 else columns.max())
        areas |= set((rows * columns).flatten().tolist())
        assert torch.equal(batch.targets, clean.targets)
    assert len(areas) > 3  # some reach over the border


def test_every_pixel_is_the_centre_as_often() -> None:
    drawn = stripes(8000, 10, 1, torch.Generator().manual_seed(0))
    assert drawn.sum(1).tolist() == [1] * 8000
    assert (drawn.sum(0) - 800).abs().max() < 4 * 800**0.5


def test_the_data_set_stays_as_it_is() -> None:
    recipe = cutout.apply(images(), {})
    before = recipe.dataset.inputs.clone()
    run(recipe, 3)
    assert torch.equal(recipe.dataset.inputs, before)


def test_size_zero_is_the_baseline_and_a_half_is_not() -> None:
    baseline = run(images(), 3)
    assert same(run(cutout.apply(images(), {"size": 0.0}), 3).model, baseline.model)
    assert not same(run(cutout.apply(images(), {}), 3).model, baseline.model)


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="squares of images"):
        cutout.apply(vectors(), {})
    for size in (-0.1, 1.1):
        with pytest.raises(InvalidTechnique, match=f"size is {size}"):
            cutout.apply(images(), {"size": size})
