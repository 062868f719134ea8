import pytest

from effbench.errors import Conflict, InvalidTechnique
from effbench.techniques import compose
from effbench_techniques.budgeted_training.training.budget_linear_decay import budget_linear_decay
from effbench_techniques.budgeted_training.training.rex import rex
from schedule import ends_decayed, factors, progresses
from toy import vectors


def test_it_is_the_papers_profile() -> None:
    schedule = rex.apply(vectors(), {"warmup": 0.0}).lr_schedule
    for z in (0.0, 0.1, 0.25, 0.5, 0.9, 1.0):
        assert schedule(z) == pytest.approx((1 - z) / (0.5 + 0.5 * (1 - z)), abs=1e-12)
    assert schedule(0.5) == pytest.approx(2 / 3)
    assert schedule(1.0) == 0.0


def test_it_lies_above_the_linear_decay_and_begins_when_the_warm_up_ends() -> None:
    schedule = rex.apply(vectors(), {"warmup": 0.2}).lr_schedule
    assert 0.0 < schedule(0.0) < schedule(0.1) < schedule(0.2) == 1.0
    assert schedule(0.6) == pytest.approx(2 / 3)
    assert all(schedule(p) > (1 - p) / 0.8 for p in (0.3, 0.5, 0.7, 0.9))


def test_a_run_follows_it() -> None:
    recipe = rex.apply(vectors(), {})
    assert factors(recipe, 20) == pytest.approx([recipe.lr_schedule(p) for p in progresses(20)], abs=1e-12)


def test_the_last_rate_is_at_most_a_hundredth_of_the_peak() -> None:
    assert ends_decayed(lambda: rex.apply(vectors(), {}))


def test_it_excludes_other_schedules() -> None:
    known = {"rex": rex, "budget_linear_decay": budget_linear_decay}
    with pytest.raises(Conflict, match="rex replaces the lr_schedule that budget_linear_decay changed"):
        compose(vectors(), {"rex": {}, "budget_linear_decay": {}}, known)


@pytest.mark.parametrize("warmup", [-0.1, 1.0])
def test_wrong_options_are_refused(warmup: float) -> None:
    with pytest.raises(InvalidTechnique, match="rex: warmup is"):
        rex.apply(vectors(), {"warmup": warmup})
