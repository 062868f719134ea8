import pytest
import torch

from effbench.errors import InvalidTechnique, NotApplicable
from effbench_techniques.data_centric.regularization.basic_augment import basic_augment, cropped
from toy import begun, first_batch, images, random_numbers, run, same, vectors

PICTURES = random_numbers(6, 3, 8, 4)
NONE, ALL = torch.zeros(6, dtype=torch.bool), torch.ones(6, dtype=torch.bool)


def places(value: int) -> torch.Tensor:
    return torch.full((6,), value)


def test_a_crop_from_the_middle_is_the_image_and_mirrored_twice_it_is_again() -> None:
    assert torch.equal(cropped(PICTURES, [2, 1], places(2), places(1), NONE), PICTURES)
    once = cropped(PICTURES, [2, 1], places(2), places(1), ALL)
    assert torch.equal(once, PICTURES.flip(-1))
    assert torch.equal(cropped(once, [0, 0], places(0), places(0), ALL), PICTURES)


def test_other_crops_are_shifted_and_zero_comes_in_from_the_border() -> None:
    crop = cropped(PICTURES, [2, 1], places(0), places(2), NONE)  # two up, so that zeros are above; one to the right
    assert torch.equal(crop[..., 2:, :-1], PICTURES[..., :-2, 1:])
    assert not crop[..., :2, :].any()
    assert not crop[..., -1].any()


def test_every_image_has_a_place_and_a_side_of_its_own() -> None:
    recipe = basic_augment.apply(images(8, 8), {"shift": 0.25, "flip": 0.5})
    training = begun(recipe)
    clean = first_batch(images(8, 8), training, 32)
    seen = {True: 0, False: 0}
    shifts = set()
    for _ in range(10):
        batch = first_batch(recipe, training, 32)
        assert torch.equal(batch.targets, clean.targets)
        for ours, image in zip(batch.inputs, clean.inputs, strict=True):
            middle = {side: (image.flip(-1) if side else image)[:, 3:5, 3:5] for side in (True, False)}
            found = [
                (side, row, column)
                for side in (True, False)
                for row in range(1, 6)
                for column in range(1, 6)
                if torch.equal(ours[:, row : row + 2, column : column + 2], middle[side])
            ]
            assert len(found) == 1
            seen[found[0][0]] += 1
            shifts.add(found[0][1:])
    assert len(shifts) == 25  # -2 to 2 pixels, in both directions
    assert abs(seen[True] - 160) < 4 * 80**0.5


def test_without_shift_and_flip_it_is_the_baseline_and_else_it_is_not() -> None:
    plain = run(images(), 3).model
    assert same(run(basic_augment.apply(images(), {"shift": 0.0, "flip": 0.0}), 3).model, plain)
    assert not same(run(basic_augment.apply(images(), {"flip": 0.0}), 3).model, plain)


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="mirrors images"):
        basic_augment.apply(vectors(), {})
    for option in ("shift", "flip"):
        with pytest.raises(InvalidTechnique, match=f"basic_augment: {option} is 1.1"):
            basic_augment.apply(images(), {option: 1.1})
