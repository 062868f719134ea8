import pytest
import torch

from effbench.errors import InvalidTechnique, NotApplicable
from effbench_techniques.data_centric.regularization import randaugment as module
from effbench_techniques.data_centric.regularization.randaugment import OPERATIONS, operated, randaugment
from toy import begun, first_batch, images, random_numbers, run, same, vectors

X = random_numbers(6, 2, 12, 12)


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_without_strength_an_operation_hardly_changes_an_image_and_with_it_does(name: str) -> None:
    scale = float(X.max() - X.min())
    weak, strong = (OPERATIONS[name](X, torch.full((6,), strength)) for strength in (0.0, 1.0))
    assert (weak - X).abs().max() < scale / 255
    assert ((strong - X).abs().max() > scale / 50) == (name != "nothing")
    assert weak.shape == strong.shape == X.shape


def test_pixels_go_where_they_should() -> None:
    spot = torch.zeros(1, 1, 20, 20)
    spot[..., 10, 10] = 1.0
    third = torch.tensor([1 / 0.9 / 5])  # of a strength: 0.2 of half a side are 2 pixels
    assert OPERATIONS["translate_x"](spot, third)[0, 0, 10, 8] == pytest.approx(1.0, abs=1e-4)
    assert OPERATIONS["translate_y"](spot, -third)[0, 0, 12, 10] == pytest.approx(1.0, abs=1e-4)
    line = torch.zeros(1, 1, 21, 21)
    line[..., 10, :] = 1.0
    turned = OPERATIONS["rotate"](line, torch.tensor([1.0]))[0, 0]
    rows = turned.argmax(0).float()
    assert abs(float((rows[16] - rows[4]) / 12)) == pytest.approx(0.577, abs=0.1)  # tan 30 degrees


def test_brightness_contrast_solarise_and_posterise_are_what_they_say() -> None:
    x = torch.tensor([-1.0, 0.0, 3.0]).view(1, 1, 1, 3)
    half = torch.tensor([0.5])
    assert OPERATIONS["brightness"](x, half).flatten().tolist() == pytest.approx([-1.0, 0.45, 4.8])
    mean = 2 / 3
    assert OPERATIONS["contrast"](x, -half).flatten().tolist() == pytest.approx(
        [mean + 0.55 * (e - mean) for e in (-1.0, 0.0, 3.0)]
    )
    assert OPERATIONS["solarise"](x, half).flatten().tolist() == [-1.0, 0.0, -1.0]  # above 1.0
    levels = OPERATIONS["posterise"](torch.linspace(0, 1, 1000).view(1, 1, 1, -1), torch.ones(1))
    assert len(levels.unique()) == 16


def test_each_image_has_its_own_operation() -> None:
    found = operated(X, torch.arange(6), torch.full((6,), 0.7))
    for i, operation in enumerate([*OPERATIONS.values()][:6]):
        torch.testing.assert_close(found[i], operation(X[i : i + 1], torch.tensor([0.7]))[0])


@pytest.mark.parametrize("count", [1, 3])
def test_so_many_operations_are_applied_all_as_often_and_as_strong(count: int, monkeypatch) -> None:
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []

    def watched(images, which, strengths):
        seen.append((which, strengths))
        return operated(images, which, strengths)

    monkeypatch.setattr(module, "operated", watched)
    recipe = randaugment.apply(images(), {"operations": count, "magnitude": 0.4})
    training = begun(recipe)
    for _ in range(60):
        first_batch(recipe, training, 32)
    assert len(seen) == 60 * count
    which, strengths = (torch.cat(each) for each in zip(*seen, strict=True))
    counts, expected = torch.bincount(which, minlength=11), len(which) / 11
    assert float(((counts - expected) ** 2 / expected).sum()) < 29.6  # chi square of 10 degrees, 0.1 %
    torch.testing.assert_close(strengths.abs(), torch.full_like(strengths, 0.4))
    assert abs(float(strengths.sign().mean())) < 4 / len(which) ** 0.5


def test_no_operation_is_the_baseline_and_two_are_not() -> None:
    baseline = run(images(), 3)
    before = images().dataset.inputs.clone()
    assert same(run(randaugment.apply(images(), {"operations": 0}), 3).model, baseline.model)
    training = run(randaugment.apply(images(), {}), 3)
    assert not same(training.model, baseline.model)
    assert torch.equal(training.recipe.dataset.inputs, before)


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="changes images"):
        randaugment.apply(vectors(), {})
    for options in ({"operations": -1}, {"magnitude": 1.1}):
        with pytest.raises(InvalidTechnique, match=f"{next(iter(options))} is"):
            randaugment.apply(images(), options)
