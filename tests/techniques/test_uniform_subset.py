import itertools

import pytest
import torch

from effbench.errors import InvalidTechnique
from effbench_techniques.data_centric.sampling.uniform_subset import uniform_subset
from toy import begun, run, same, vectors


def epochs(options, count: int, seed: int = 0, kept=None):
    recipe = uniform_subset.apply(vectors(), options)
    training = begun(recipe, seed)
    training.kept.update(kept or {})
    return list(itertools.islice(recipe.sampler(training), count)), training


def test_fresh_subsets_are_the_beginnings_of_the_baselines_epochs() -> None:
    baseline = list(itertools.islice(vectors().sampler(begun(vectors())), 12))
    drawn, _ = epochs({"fraction": 0.4}, 12)
    for whole, part in zip(baseline, drawn, strict=True):
        assert part.tolist() == whole[:26].tolist()  # ceil(0.4 * 64)
    assert set(torch.cat(drawn).tolist()) == set(range(64))  # missed by chance: 64 * 0.6**12 = 0.14 examples


def test_a_fixed_subset_stays_in_the_baselines_order() -> None:
    baseline = list(itertools.islice(vectors().sampler(begun(vectors())), 5))
    drawn, training = epochs({"fraction": 0.25, "fresh": False}, 5)
    chosen = set(drawn[0].tolist())
    assert len(chosen) == 16
    for whole, part in zip(baseline, drawn, strict=True):
        assert part.tolist() == [position for position in whole.tolist() if position in chosen]
    assert set(epochs({"fraction": 0.25, "fresh": False}, 1, seed=1)[0][0].tolist()) != chosen
    again, _ = epochs({"fraction": 0.25, "fresh": False}, 1, seed=1, kept=training.kept)
    assert set(again[0].tolist()) == chosen  # as when a run goes on from what was kept


def test_batches_are_full_all_the_same() -> None:
    seen = []
    run(uniform_subset.apply(vectors(), {"fraction": 0.1, "fresh": False}), 5, look=lambda t: seen.append(t.examples))
    assert seen == [8, 16, 24, 32, 40]


def test_the_whole_is_the_baseline_and_a_half_is_not() -> None:
    baseline = run(vectors(), 9)
    for fresh in (True, False):
        assert same(run(uniform_subset.apply(vectors(), {"fraction": 1.0, "fresh": fresh}), 9).model, baseline.model)
        assert not same(run(uniform_subset.apply(vectors(), {"fresh": fresh}), 9).model, baseline.model)


@pytest.mark.parametrize("fraction", [0.0, -0.5, 1.1])
def test_wrong_options_are_refused(fraction: float) -> None:
    with pytest.raises(InvalidTechnique, match="fraction is"):
        uniform_subset.apply(vectors(), {"fraction": fraction})
