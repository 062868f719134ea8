import pytest
import torch

from effbench.clock import EpochClock
from effbench.errors import InvalidTechnique
from effbench.optimizers import sgd
from effbench.techniques import compose
from effbench_techniques.budgeted_training.training.rex import rex
from effbench_techniques.optimization_centric.large_batch.linear_scaling_warmup import linear_scaling_warmup
from toy import run, same, spend, vectors


def test_the_batch_grows_by_the_factor_and_the_rate_in_a_line_to_it() -> None:
    plain = vectors(optimizer=sgd(0.1, 0.9, 0.0))
    recipe = linear_scaling_warmup.apply(plain, {"factor": 8, "warmup": 0.2})
    assert [recipe.batch_size(progress) for progress in (0.0, 0.5, 1.0)] == [64, 64, 64]
    scale = {p: recipe.lr_schedule(p) / plain.lr_schedule(p) for p in (0.0, 0.05, 0.1, 0.2, 0.5, 0.9)}
    assert scale == pytest.approx({0.0: 1.0, 0.05: 2.75, 0.1: 4.5, 0.2: 8.0, 0.5: 8.0, 0.9: 8.0})
    assert recipe.lr_schedule(1.0) == 0.0


@pytest.mark.parametrize(("rule", "scale"), [("auto", 3.0), ("sqrt", 3.0), ("linear", 9.0)])
def test_adam_takes_the_root_unless_told_otherwise(rule: str, scale: float) -> None:
    recipe = linear_scaling_warmup.apply(vectors(), {"factor": 9, "rule": rule, "warmup": 0.0})
    assert recipe.lr_schedule(0.5) / vectors().lr_schedule(0.5) == pytest.approx(scale)


def test_a_step_of_plain_sgd_stands_for_as_many_small_steps_where_the_gradient_hardly_changes() -> None:
    rate = 1e-4  # so small that it does not
    flat = {"optimizer": sgd(rate, 0.0, 0.0, nesterov=False), "lr_schedule": lambda progress: 1.0}
    start = run(vectors(**flat), 1).model  # after one step: what both share is left out by the difference of ends
    small = spend(vectors(**flat), "1 epochs", EpochClock())
    options = {"factor": 4, "warmup": 0.0}
    large = spend(linear_scaling_warmup.apply(vectors(**flat), options), "1 epochs", EpochClock())
    assert (small.step, large.step) == (8, 2)
    for ours, theirs, early in zip(large.model.parameters(), small.model.parameters(), start.parameters(), strict=True):
        moved = (theirs - early).norm() + 1e-9
        assert (ours - theirs).norm() < 0.01 * moved + 1e-8


def test_it_scales_other_schedules() -> None:
    known = {"linear_scaling_warmup": linear_scaling_warmup, "rex": rex}
    both, order = compose(vectors(), {"linear_scaling_warmup": {}, "rex": {}}, known)
    assert order == ["rex", "linear_scaling_warmup"]
    assert both.lr_schedule(0.5) == pytest.approx(2.0 * rex.apply(vectors(), {}).lr_schedule(0.5))


def test_a_factor_of_one_is_the_baseline() -> None:
    assert same(run(linear_scaling_warmup.apply(vectors(), {"factor": 1})).model, run(vectors()).model)


def test_looking_at_the_optimizer_draws_no_random_numbers() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    linear_scaling_warmup.apply(vectors(), {})
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("options", [{"factor": 0}, {"rule": "cubic"}, {"warmup": 1.0}])
def test_wrong_options_are_refused(options: dict) -> None:
    with pytest.raises(InvalidTechnique, match=f"linear_scaling_warmup: {next(iter(options))} is"):
        linear_scaling_warmup.apply(vectors(), options)
