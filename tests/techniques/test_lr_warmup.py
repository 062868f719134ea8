import pytest

from effbench.errors import InvalidTechnique
from effbench.techniques import compose
from effbench_techniques.budgeted_training.training.rex import rex
from effbench_techniques.optimization_centric.learning_rate.lr_warmup import lr_warmup
from effbench_techniques.optimization_centric.learning_rate.one_cycle import one_cycle
from effbench_techniques.optimization_centric.learning_rate.step_decay import step_decay
from schedule import ends_decayed, factors, progresses
from toy import run, same, vectors

KNOWN = {each.name: each for each in (lr_warmup, one_cycle, rex, step_decay)}


def test_the_rate_rises_in_a_line_to_where_the_schedule_stands_when_the_warm_up_ends() -> None:
    schedule = lr_warmup.apply(vectors(lr_schedule=lambda progress: 1.0), {"share": 0.2}).lr_schedule
    assert schedule(0.0) == pytest.approx(0.02 / 1.02)
    assert schedule(0.1) == pytest.approx((0.1 + 0.004) / 0.204)
    rises = [schedule((i + 1) / 100) - schedule(i / 100) for i in range(20)]
    assert rises == pytest.approx([rises[0]] * 20)
    assert schedule(0.2) == schedule(0.7) == 1.0


def test_the_schedule_is_exact_from_the_end_of_the_warm_up_on_and_never_exceeded() -> None:
    plain = vectors().lr_schedule
    schedule = lr_warmup.apply(vectors(), {"share": 0.3}).lr_schedule
    for progress in (0.3, 0.31, 0.65, 1.0):
        assert schedule(progress) == plain(progress)
    assert all(0.0 < schedule(p / 100) <= plain(p / 100) for p in range(30))
    assert schedule(0.1) == pytest.approx(plain(0.3) * (0.1 + 0.006) / 0.306)


def test_it_does_not_shorten_the_warm_up_that_is_there() -> None:
    plain = vectors().lr_schedule  # warms up over a tenth
    schedule = lr_warmup.apply(vectors(), {"share": 0.05}).lr_schedule
    assert all(schedule(p / 100) <= plain(p / 100) for p in range(101))
    assert schedule(0.07) == plain(0.07)


@pytest.mark.parametrize("other", ["one_cycle", "rex", "step_decay"])
def test_it_warms_up_schedules_of_the_same_set(other: str) -> None:
    both, order = compose(vectors(), {"lr_warmup": {"share": 0.2}, other: {}}, KNOWN)
    alone = compose(vectors(), {other: {}}, KNOWN)[0]
    assert order[-1] == "lr_warmup"
    assert both.lr_schedule(0.2) == alone.lr_schedule(0.2)
    assert both.lr_schedule(0.05) < alone.lr_schedule(0.2) / 3


def test_a_run_follows_it_and_ends_decayed() -> None:
    recipe = lr_warmup.apply(vectors(), {})
    assert factors(recipe, 20) == pytest.approx([recipe.lr_schedule(p) for p in progresses(20)], abs=1e-12)
    assert ends_decayed(lambda: lr_warmup.apply(vectors(), {}))


def test_a_share_of_nothing_is_the_baseline_and_a_fifth_is_not() -> None:
    plain = run(vectors()).model
    assert same(run(lr_warmup.apply(vectors(), {"share": 0.0})).model, plain)
    assert not same(run(lr_warmup.apply(vectors(), {})).model, plain)


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_wrong_options_are_refused(share: float) -> None:
    with pytest.raises(InvalidTechnique, match="lr_warmup: share is"):
        lr_warmup.apply(vectors(), {"share": share})
