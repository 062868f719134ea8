import math

import pytest
import torch

from effbench.errors import InvalidTechnique, NotApplicable
from effbench.techniques import compose
from effbench_techniques.data_centric.regularization.cutmix import cutmix
from effbench_techniques.data_centric.regularization.mixup import mixup
from toy import begun, first_batch, images, run, same, vectors

HEIGHT, WIDTH = 32, 8


def black_and_white(training):
    """Two images: the first all 0, of class 0; the second all 1, of class 1."""
    batch = first_batch(images(HEIGHT, WIDTH), training, 2)
    inputs = torch.stack([torch.zeros(1, HEIGHT, WIDTH), torch.ones(1, HEIGHT, WIDTH)])
    return batch.replace(inputs=inputs, targets=torch.tensor([0, 1]))


def test_the_label_counts_as_much_as_the_pixels_do_exactly() -> None:
    training = begun(images(HEIGHT, WIDTH))
    recipe = cutmix.apply(images(HEIGHT, WIDTH, loader=lambda positions, training: black_and_white(training)), {})
    tall, wide, clipped, pasted = 0, 0, 0, 0
    for _ in range(200):
        batch = first_batch(recipe, training, 2)
        image, target = batch.inputs[0, 0], batch.targets[0]
        assert float(image.mean()) == float(target[1])
        assert float(target.sum()) == 1.0
        assert set(image.unique().tolist()) <= {0.0, 1.0}
        rows, columns = image.any(1).sum().item(), image.any(0).sum().item()
        assert image.sum() == rows * columns  # a box, whole
        pasted += rows > 0
        tall += rows > WIDTH
        wide += columns > 4
        # rows and columns of a box that is whole have the ratio of the image
        clipped += rows > 0 and not math.isclose(rows / HEIGHT, columns / WIDTH, abs_tol=0.13)
    assert pasted > 60
    assert min(tall, wide, clipped) > 10


def test_pixels_are_those_of_one_of_the_two_images() -> None:
    recipe = cutmix.apply(images(HEIGHT, WIDTH), {})
    training = begun(recipe)
    clean = first_batch(images(HEIGHT, WIDTH), training)
    batch = first_batch(recipe, training)
    for i in range(8):
        own = batch.inputs[i] == clean.inputs[i]
        assert any((own | (batch.inputs[i] == clean.inputs[j])).all() for j in range(8))


def test_boxes_cover_what_beta_says_before_they_are_clipped() -> None:
    import numpy as np

    from effbench_techniques.data_centric.regularization.cutmix import draw_box

    random = np.random.default_rng(0)
    boxes = np.array([draw_box(random, 8.0, 100, 50) for _ in range(2000)])
    heights, widths = boxes[:, 1] - boxes[:, 0], boxes[:, 3] - boxes[:, 2]
    whole = (boxes[:, 0] > 0) & (boxes[:, 1] < 100) & (boxes[:, 2] > 0) & (boxes[:, 3] < 50)
    assert whole.sum() > 50
    assert abs(heights[whole] - 2 * widths[whole]).max() <= 2
    assert (boxes[:, 0] >= 0).all()
    assert (boxes[:, 1] <= 100).all()
    assert (boxes[:, 3] <= 50).all()


def test_without_alpha_it_is_the_baseline_and_with_it_is_not() -> None:
    baseline = run(images(), 3)
    assert same(run(cutmix.apply(images(), {"alpha": 0.0}), 3).model, baseline.model)
    assert not same(run(cutmix.apply(images(), {}), 3).model, baseline.model)


def test_it_goes_with_mixup() -> None:
    both, order = compose(images(), {"mixup": {}, "cutmix": {}}, {"mixup": mixup, "cutmix": cutmix})
    assert order == ["cutmix", "mixup"]
    torch.testing.assert_close(first_batch(both, begun(both)).targets.sum(1), torch.ones(8))


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="patches of images"):
        cutmix.apply(vectors(), {})
    with pytest.raises(NotApplicable, match="class labels"):
        cutmix.apply(images(classes=None), {})
    with pytest.raises(InvalidTechnique, match="alpha is -1"):
        cutmix.apply(images(), {"alpha": -1.0})
