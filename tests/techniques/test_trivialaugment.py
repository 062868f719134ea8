import pytest
import torch

from effbench.errors import NotApplicable
from effbench_techniques.data_centric.regularization import trivialaugment as module
from effbench_techniques.data_centric.regularization.randaugment import operated
from effbench_techniques.data_centric.regularization.trivialaugment import trivialaugment
from toy import begun, first_batch, images, run, same, vectors


def test_each_image_has_one_operation_all_as_often_and_every_strength(monkeypatch) -> None:
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []

    def watched(images, which, strengths):
        seen.append((which, strengths))
        return operated(images, which, strengths)

    monkeypatch.setattr(module, "operated", watched)
    recipe = trivialaugment.apply(images(), {})
    training = begun(recipe)
    for _ in range(100):
        first_batch(recipe, training, 32)
    assert len(seen) == 100
    which, strengths = (torch.cat(each) for each in zip(*seen, strict=True))
    for counts, degrees in (
        (torch.bincount(which, minlength=11), 29.6),
        (torch.histc(strengths, bins=11, min=-1.0, max=1.0), 29.6),
    ):
        expected = 3200 / 11
        assert float(((counts - expected) ** 2 / expected).sum()) < degrees  # chi square of 10 degrees, 0.1 %


def test_labels_stay_and_images_change_anew_each_time() -> None:
    recipe = trivialaugment.apply(images(), {})
    training = begun(recipe)
    clean, one, other = (first_batch(each, training, 32) for each in (images(), recipe, recipe))
    assert torch.equal(one.targets, clean.targets)
    changed = (one.inputs != clean.inputs).flatten(1).any(1)
    assert 20 < int(changed.sum()) <= 32  # "nothing" is one of eleven
    assert not torch.equal(one.inputs, other.inputs)


def test_two_runs_are_alike_and_not_the_baseline() -> None:
    once, again = (run(trivialaugment.apply(images(), {}), 3) for _ in range(2))
    assert same(once.model, again.model)
    assert not same(once.model, run(images(), 3).model)


def test_it_refuses_what_is_no_image() -> None:
    with pytest.raises(NotApplicable, match="changes images"):
        trivialaugment.apply(vectors(), {})
