import math

import numpy as np
import pytest
import torch
from torch import nn

from effbench.errors import InvalidTechnique, NotApplicable
from effbench.techniques import compose
from effbench.terms import cross_entropy
from effbench_techniques.data_centric.regularization.mixup import mixup
from effbench_techniques.optimization_centric.objective.label_smoothing import label_smoothing
from toy import CLASSES, begun, first_batch, run, same, texts, tokens, vectors


def mixed(alpha: float, recipe=None):
    """A mixed batch, the batch that it was made of, and the (share, partner) that a twin draws."""
    recipe = recipe or vectors()
    training = begun(recipe)
    twin = torch.Generator()
    twin.set_state(training.rng.get_state())
    share = np.random.default_rng(int(torch.randint(2**63 - 1, (), generator=twin))).beta(alpha, alpha)
    partner = torch.randperm(8, generator=twin)
    return first_batch(mixup.apply(recipe, {"alpha": alpha}), training), first_batch(recipe, training), share, partner


def test_inputs_and_labels_are_convex_combinations_as_in_the_paper() -> None:
    batch, clean, share, partner = mixed(1.0)
    for i, j in enumerate(partner.tolist()):
        expected = share * clean.inputs[i] + (1 - share) * clean.inputs[j]
        torch.testing.assert_close(batch.inputs[i], expected.float())
        label = torch.zeros(CLASSES)
        label[clean.targets[i]] += share
        label[clean.targets[j]] += 1 - share
        torch.testing.assert_close(batch.targets[i], label)
    assert torch.equal(batch.index, clean.index)


def test_its_loss_is_that_of_both_labels_by_their_share() -> None:
    batch, clean, share, partner = mixed(1.0)
    logits = torch.randn(8, CLASSES, generator=torch.Generator().manual_seed(3))
    one = nn.functional.cross_entropy(logits, clean.targets, reduction="none")
    other = nn.functional.cross_entropy(logits, clean.targets[partner], reduction="none")
    torch.testing.assert_close(cross_entropy(logits, batch), share * one + (1 - share) * other, rtol=0, atol=1e-6)


@pytest.mark.parametrize("alpha", [0.2, 1.0, 8.0])
def test_shares_have_the_variance_of_the_beta_distribution(alpha: float) -> None:
    inputs = torch.tensor([[0.0] * 6, [1.0] * 6])
    recipe = mixup.apply(vectors(), {"alpha": alpha})
    training = begun(recipe)
    clean = first_batch(vectors(), training, 2).replace(inputs=inputs)
    recipe = mixup.apply(vectors(loader=lambda positions, training: clean), {"alpha": alpha})
    drawn = [first_batch(recipe, training, 2).inputs[:, 0] for _ in range(1000)]
    shares = torch.stack([pair[0] for pair in drawn if not torch.equal(pair, inputs[:, 0])])
    assert len(shares) > 400  # in half of the draws each example is its own partner
    assert float(shares.mean()) == pytest.approx(0.5, abs=0.05)
    assert float(shares.std()) == pytest.approx(math.sqrt(1 / (4 * (2 * alpha + 1))), rel=0.1)


def test_weights_are_mixed_too() -> None:
    heavy = vectors(transform=lambda batch, training: batch.replace(weight=torch.arange(8.0)))
    batch, clean, share, partner = mixed(1.0, heavy)
    torch.testing.assert_close(batch.weight, (share * clean.weight + (1 - share) * clean.weight[partner]).float())


def test_without_alpha_it_is_the_baseline_and_with_it_is_not() -> None:
    baseline = run(vectors())
    assert same(run(mixup.apply(vectors(), {"alpha": 0.0})).model, baseline.model)
    assert not same(run(mixup.apply(vectors(), {})).model, baseline.model)


def test_it_mixes_what_is_mixed_already_and_goes_with_smoothed_labels() -> None:
    twice = mixup.apply(mixup.apply(vectors(), {"alpha": 1.0}), {"alpha": 1.0})
    batch = first_batch(twice, begun(twice))
    torch.testing.assert_close(batch.targets.sum(1), torch.ones(8))
    known = {"mixup": mixup, "label_smoothing": label_smoothing}
    both, order = compose(vectors(), {"label_smoothing": {}, "mixup": {}}, known)
    assert order == ["mixup", "label_smoothing"]
    batch = first_batch(both, begun(both))
    logits = torch.randn(8, CLASSES, generator=torch.Generator().manual_seed(3))
    smooth = 0.9 * batch.targets + 0.1 / CLASSES
    torch.testing.assert_close(both.loss(logits, batch), -(smooth * logits.log_softmax(1)).sum(1))


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="class labels"):
        mixup.apply(tokens(), {})
    with pytest.raises(NotApplicable, match="token ids"):
        mixup.apply(texts(), {})
    for alpha in (-0.1, math.nan, math.inf):
        with pytest.raises(InvalidTechnique, match="alpha is"):
            mixup.apply(vectors(), {"alpha": alpha})
