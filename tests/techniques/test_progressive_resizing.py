import pytest
import torch

from effbench.errors import InvalidTechnique, NotApplicable
from effbench_techniques.data_centric.curriculum.progressive_resizing import progressive_resizing
from toy import begun, first_batch, images, run, same, vectors


def sizes(height: int, width: int, options=None, steps: int = 100) -> list[tuple[int, int]]:
    recipe = progressive_resizing.apply(images(height, width), options or {})
    training = begun(recipe)
    found = []
    for step in range(steps):
        training.progress = step / steps
        found.append(tuple(first_batch(recipe, training, 2).inputs.shape[-2:]))
    return found


def test_images_grow_in_few_steps_from_half_to_full_size() -> None:
    found = sizes(28, 28)
    assert list(dict.fromkeys(found)) == [(12, 12), (16, 16), (20, 20), (24, 24), (28, 28)]
    assert found == sorted(found)
    assert found[:51] == [(12, 12)] * 51
    assert found[80:] == [(28, 28)] * 20
    assert found[79] != (28, 28)


def test_sides_keep_to_their_own_axes_and_to_multiples() -> None:
    found = sizes(30, 16, {"size_increment": 5, "initial_scale": 0.25, "delay": 0.0, "finetune": 0.5})
    heights, widths = [list(dict.fromkeys(side)) for side in zip(*found, strict=True)]
    assert heights == [5, 10, 15, 20, 25, 30]
    assert widths == [5, 10, 15, 16]  # full size need be no multiple
    assert found[50:] == [(30, 16)] * 50


def test_full_size_is_reached_where_nothing_is_left_to_finetune() -> None:
    assert sizes(8, 8, {"delay": 1.0, "finetune": 0.0})[-1] == (4, 4)
    assert sizes(8, 8, {"delay": 0.0, "finetune": 1.0})[0] == (8, 8)


def test_every_pixel_counts_and_a_plain_surface_stays_plain() -> None:
    recipe = progressive_resizing.apply(images(16, 16), {"initial_scale": 0.25})
    training = begun(recipe)
    pixels = torch.full((2, 1, 16, 16), 0.7, requires_grad=True)
    clean = first_batch(images(16, 16), training, 2).replace(inputs=pixels)
    recipe = progressive_resizing.apply(
        images(16, 16, loader=lambda positions, training: clean), {"initial_scale": 0.25}
    )
    small = first_batch(recipe, training, 2).inputs
    torch.testing.assert_close(small, torch.full((2, 1, 4, 4), 0.7))
    small.sum().backward()
    assert (pixels.grad > 0).all()


def test_full_scale_is_the_baseline_and_half_is_not() -> None:
    baseline = run(images(), 4)
    assert same(run(progressive_resizing.apply(images(), {"initial_scale": 1.0}), 4).model, baseline.model)
    assert not same(run(progressive_resizing.apply(images(), {}), 4).model, baseline.model)


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="any resolution"):
        progressive_resizing.apply(vectors(), {})
    with pytest.raises(NotApplicable, match="any resolution"):
        progressive_resizing.apply(images(traits=frozenset({"image"})), {})


@pytest.mark.parametrize("options", [{"initial_scale": 0.0}, {"delay": 0.9}, {"finetune": -0.1}, {"size_increment": 0}])
def test_wrong_options_are_refused(options) -> None:
    with pytest.raises(InvalidTechnique, match=next(iter(options))):
        progressive_resizing.apply(images(), options)
