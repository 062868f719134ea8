import itertools

import pytest
import torch

from effbench.errors import InvalidTechnique, NotApplicable
from effbench_techniques.data_centric.curriculum.curriculum_pacing import curriculum_pacing
from toy import begun, images, masked_tokens, run, same, tokens, vectors


def ranked(options, make=vectors):
    """A recipe, and a training that has done what is due at the beginning."""
    recipe = curriculum_pacing.apply(make(), options)
    training = begun(recipe)
    recipe.milestones[0].action(training)
    return recipe, training


def shown(recipe, training, progress: float) -> set[int]:
    training.progress = progress
    pieces = [*itertools.islice(recipe.sampler(training), 2)]
    return set(torch.cat(pieces).tolist())


@pytest.mark.parametrize("order", ["easy", "hard", "random"])
def test_more_and_more_examples_are_shown_and_none_is_taken_back(order: str) -> None:
    recipe, training = ranked({"order": order})
    sets = [shown(recipe, training, step / 10) for step in range(10)]
    assert [len(found) for found in sets] == [16, 26, 35, 45, 54] + [64] * 5
    assert all(earlier <= later for earlier, later in itertools.pairwise(sets))


def test_easy_is_what_has_a_low_loss_by_the_scout() -> None:
    wrong = vectors().dataset.targets.clone()
    wrong[:16] = (wrong[:16] + 1) % 4  # hard to learn, and known to be

    def noisy():
        recipe = vectors()
        recipe.dataset.targets.copy_(wrong)
        return recipe

    first = {}
    for order in ("easy", "hard"):
        recipe, training = ranked({"order": order, "scoring_steps": 150}, noisy)
        first[order] = sum(position < 16 for position in shown(recipe, training, 0.0))
    assert first["easy"] + 4 <= first["hard"]


def test_easy_and_hard_are_opposites() -> None:
    ranks = [ranked({"order": order})[1].kept["curriculum_pacing"] for order in ("easy", "hard")]
    assert torch.equal(ranks[0], 63 - ranks[1])
    assert sorted(ranks[0].tolist()) == list(range(64))


def test_the_order_among_what_is_shown_is_the_baselines() -> None:
    recipe, training = ranked({})
    few = shown(recipe, training, 0.0)
    epoch = next(vectors().sampler(begun(vectors()))).tolist()
    found = torch.cat([*itertools.islice(recipe.sampler(training), 2)]).tolist()
    assert found == [position for position in epoch if position in few]


def test_scoring_is_on_the_clock_and_a_random_order_needs_none() -> None:
    assert run(curriculum_pacing.apply(vectors(), {}), 2).ledger.wall["extra"] > 0.0
    seen = []

    def loader(positions, training):
        seen.append(len(positions))
        return vectors().loader(positions, training)

    for order, passes in (("random", 2), ("easy", 2 + 20 + 1)):
        seen.clear()
        run(curriculum_pacing.apply(vectors(loader=loader), {"order": order, "scoring_steps": 20}), 2)
        assert len(seen) == passes


def test_showing_all_is_the_baseline_and_showing_a_quarter_is_not() -> None:
    baseline = run(images(), 4)
    assert same(run(curriculum_pacing.apply(images(), {"initial": 1.0}), 4).model, baseline.model)
    assert not same(run(curriculum_pacing.apply(images(), {}), 4).model, baseline.model)


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="masks make other examples"):
        curriculum_pacing.apply(masked_tokens(), {})
    run(curriculum_pacing.apply(masked_tokens(), {"order": "random"}), 2)
    for options in ({"order": "best"}, {"initial": 0.0}, {"full": 0.0}, {"scoring_steps": 0}):
        with pytest.raises(InvalidTechnique, match=f"{next(iter(options))} is"):
            curriculum_pacing.apply(tokens(), options)
