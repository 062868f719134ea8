from itertools import pairwise

import pytest
import torch
from torch import nn

from effbench.errors import InvalidTechnique, NotApplicable
from effbench.models.hidden import hidden_weights
from effbench.techniques import compose
from effbench_techniques.model_centric.compression.gradual_magnitude_pruning import (
    gradual_magnitude_pruning,
    sparsity_at,
)
from effbench_techniques.model_centric.curriculum.progressive_stacking import progressive_stacking
from toy import images, run, same, tokens, vectors


def zeros(model) -> list[float]:
    return [float((weight == 0).float().mean()) for weight in hidden_weights(model)]


def test_the_share_of_zeros_follows_the_cubic() -> None:
    for k in range(10):
        t = 0.2 + 0.6 * k / 10
        assert sparsity_at(t + 1e-9, 0.8, 0.2, 0.8, 10) == pytest.approx(0.8 + (0.0 - 0.8) * (1 - (k + 1) / 10) ** 3)
    assert sparsity_at(0.19, 0.8, 0.2, 0.8, 10) == 0.0
    assert {sparsity_at(t, 0.8, 0.2, 0.8, 10) for t in (0.8, 0.9, 1.0)} == {0.8}


@pytest.mark.parametrize("make", [vectors, images, tokens])
def test_each_matrix_has_as_many_zeros_as_the_formula_says_and_they_stay(make) -> None:
    recipe = gradual_magnitude_pruning.apply(make(), {"sparsity": 0.75, "times": 5})
    shares: list[list[float]] = []
    gone: list[list[torch.Tensor]] = []

    def look(training) -> None:
        shares.append(zeros(training.model))
        gone.append([weight == 0 for weight in hidden_weights(training.model)])

    training = run(recipe, 20, look=look)
    for step, found in enumerate(shares):
        target = sparsity_at(step / 20, 0.75, 0.2, 0.8, 5)
        for share, weight in zip(found, hidden_weights(training.model), strict=True):
            assert share * weight.numel() == pytest.approx(round(target * weight.numel()))
    for before, after in pairwise(gone):
        assert all((later | ~earlier).all() for earlier, later in zip(before, after, strict=True))


def test_the_smallest_weights_go_first() -> None:
    sizes: list[torch.Tensor] = []

    def update(training) -> None:
        tokens().update(training)
        sizes.append(hidden_weights(training.model)[0].detach().abs().flatten().clone())

    training = run(gradual_magnitude_pruning.apply(tokens(update=update), {"start": 0.0, "end": 0.9, "times": 1}), 1)
    weight = hidden_weights(training.model)[0].flatten()
    initial = hidden_weights(run(tokens(), 1).model)[0].numel()
    cut = sizes[0][weight != 0]
    assert len(cut) == initial - round(0.8 * initial)
    assert cut.median() > 2 * sizes[0].median()


def test_the_first_and_the_last_layer_stay_dense() -> None:
    training = run(gradual_magnitude_pruning.apply(tokens(), {}), 20)
    assert (training.model.embed.tokens.weight != 0).all()
    assert zeros(training.model) == pytest.approx([0.8] * 8, abs=0.01)


def test_it_begins_anew_where_the_model_grows() -> None:
    known = {each.name: each for each in (gradual_magnitude_pruning, progressive_stacking)}
    training = run(compose(tokens(), {name: {} for name in known}, known)[0], 20)
    assert zeros(training.model) == pytest.approx([0.8] * 8, abs=0.01)


def test_no_zeros_are_the_baseline_and_many_are_not() -> None:
    baseline = run(images(), 6)
    assert same(run(gradual_magnitude_pruning.apply(images(), {"sparsity": 0.0}), 6).model, baseline.model)
    assert not same(run(gradual_magnitude_pruning.apply(images(), {}), 6).model, baseline.model)


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="no matrix"):
        gradual_magnitude_pruning.apply(vectors(model=lambda: nn.Linear(6, 4)), {})
    for options in ({"sparsity": 1.0}, {"start": 0.9}, {"end": 1.0}, {"times": 0}):
        with pytest.raises(InvalidTechnique, match=f"{next(iter(options))} is"):
            gradual_magnitude_pruning.apply(vectors(), options)
