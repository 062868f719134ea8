import pytest
import torch
from torch import nn

from effbench.errors import InvalidTechnique, NotApplicable
from effbench.terms import IGNORED
from effbench_techniques.optimization_centric.objective.label_smoothing import label_smoothing
from toy import (
    CLASSES,
    VOCABULARY,
    begun,
    first_batch,
    masked_tokens,
    random_numbers,
    run,
    same,
    texts,
    tokens,
    vectors,
)


def test_it_is_the_closed_form_for_classes_and_for_probabilities() -> None:
    recipe = label_smoothing.apply(vectors(), {"smoothing": 0.2})
    batch = first_batch(recipe, begun(recipe))
    logits = random_numbers(8, CLASSES)
    expected = nn.functional.cross_entropy(logits, batch.targets, reduction="none", label_smoothing=0.2)
    torch.testing.assert_close(recipe.loss(logits, batch), expected, rtol=0, atol=1e-6)
    probabilities = random_numbers(8, CLASSES).softmax(1)
    soft = 0.8 * probabilities + 0.2 / CLASSES
    torch.testing.assert_close(
        recipe.loss(logits, batch.replace(targets=probabilities)), -(soft * logits.log_softmax(1)).sum(1)
    )


@pytest.mark.parametrize("make", [tokens, masked_tokens])
def test_tokens_without_a_target_do_not_count(make) -> None:
    recipe = label_smoothing.apply(make(), {"smoothing": 0.3})
    batch = first_batch(recipe, begun(recipe))
    targets = batch.targets.clone()
    targets[3] = IGNORED
    batch = batch.replace(targets=targets)
    logits = random_numbers(8, targets.shape[1], VOCABULARY)
    losses = recipe.loss(logits, batch)
    assert losses[3] == 0.0
    for i in (0, 1, 2, 4):
        valid = targets[i] != IGNORED
        expected = nn.functional.cross_entropy(logits[i][valid], targets[i][valid], label_smoothing=0.3)
        torch.testing.assert_close(losses[i], expected, rtol=0, atol=1e-6)


def test_it_calls_the_loss_that_was_there() -> None:
    recipe = label_smoothing.apply(vectors(loss=lambda outputs, batch: torch.full((len(batch),), 10.0)), {})
    batch = first_batch(recipe, begun(recipe))
    losses = recipe.loss(torch.zeros(8, CLASSES), batch)
    torch.testing.assert_close(losses, torch.full((8,), 9.0) + 0.1 * torch.tensor(float(CLASSES)).log())


@pytest.mark.parametrize("make", [vectors, tokens])
def test_without_smoothing_it_is_the_baseline_and_with_it_is_not(make) -> None:
    baseline = run(make())
    assert same(run(label_smoothing.apply(make(), {"smoothing": 0.0})).model, baseline.model)
    assert not same(run(label_smoothing.apply(make(), {})).model, baseline.model)


def test_it_says_why_it_does_not_apply() -> None:
    label_smoothing.apply(texts(), {})
    with pytest.raises(NotApplicable, match="classes or tokens"):
        label_smoothing.apply(vectors(classes=None), {})
    for smoothing in (-0.1, 1.0):
        with pytest.raises(InvalidTechnique, match="smoothing is"):
            label_smoothing.apply(vectors(), {"smoothing": smoothing})
