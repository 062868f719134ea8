import math

import pytest

from effbench.clock import ExampleClock
from effbench.errors import Conflict, InvalidTechnique
from effbench.techniques import compose, technique
from effbench.terms import warmup_then_linear
from effbench_techniques.optimization_centric.large_batch.batch_size_schedule import batch_size_schedule
from toy import images, run, same, spend, vectors

GRID = [i / 997 for i in range(998)]


def cosine(progress: float) -> float:
    return 0.5 * (1.0 + math.cos(math.pi * progress))


@pytest.mark.parametrize("decay", [warmup_then_linear(0.05), warmup_then_linear(0.1237), cosine])
def test_rate_over_batch_size_follows_the_decay_that_it_replaces(decay) -> None:
    recipe = batch_size_schedule.apply(vectors(lr_schedule=decay), {"max_growth": 8})
    for progress in GRID:
        noise = recipe.lr_schedule(progress) / recipe.batch_size(progress)
        assert noise == pytest.approx(decay(progress) / 8, rel=1e-12)


def test_the_batch_doubles_and_the_rate_stays_near_its_peak_while_it_does() -> None:
    decay = warmup_then_linear(0.1)
    recipe = batch_size_schedule.apply(vectors(lr_schedule=decay), {"max_growth": 4})
    sizes = [recipe.batch_size(progress) for progress in GRID]
    assert list(dict.fromkeys(sizes)) == [8, 16, 32]
    assert sizes == sorted(sizes)
    rates = [recipe.lr_schedule(progress) for progress in GRID if 0.1 <= progress <= 0.775]  # until a quarter is left
    assert all(0.5 - 1e-9 <= rate <= 1.0 for rate in rates)
    assert recipe.batch_size(0.55) == 16  # where the rate is a half, exactly
    assert recipe.batch_size(0.05) == 8  # warming up is no decay
    assert recipe.lr_schedule(0.05) == decay(0.05)
    assert recipe.lr_schedule(1.0) == 0.0


def test_examples_are_counted_and_there_are_fewer_steps() -> None:
    grown = spend(batch_size_schedule.apply(vectors(), {}), "800 examples", ExampleClock())
    plain = spend(vectors(), "800 examples", ExampleClock())
    assert plain.examples == 800
    assert 800 <= grown.examples < 800 + 64
    assert grown.step < 0.8 * plain.step


def test_it_replaces_the_schedule_and_excludes_others_that_do() -> None:
    def a_schedule(recipe):
        return recipe.swap(lr_schedule=lambda progress: 1.0)

    def the_schedule(recipe):
        return recipe.swap(lr_schedule=lambda progress: 1.0)

    ours = {"batch_size_schedule": batch_size_schedule}
    for function, first, second in (
        (a_schedule, "a_schedule", "batch_size_schedule"),
        (the_schedule, "batch_size_schedule", "the_schedule"),
    ):
        other = technique("optimization_centric/learning_rate", paper="-", claim="-")(function)
        with pytest.raises(Conflict, match=f"{second} replaces the lr_schedule that {first} changed"):
            compose(vectors(), {first: {}, second: {}}, {**ours, other.name: other})


def test_it_multiplies_the_batch_size_that_is_there() -> None:
    recipe = batch_size_schedule.apply(vectors(batch_size=lambda progress: 4 if progress < 0.5 else 6), {})
    assert [recipe.batch_size(progress) for progress in (0.0, 0.6, 1.0)] == [4, 12, 48]


def test_growth_of_one_is_the_baseline_and_of_eight_is_not() -> None:
    for make in (vectors, images):
        baseline = run(make(), 5)
        assert same(run(batch_size_schedule.apply(make(), {"max_growth": 1}), 5).model, baseline.model)
        assert not same(run(batch_size_schedule.apply(make(), {}), 5).model, baseline.model)


@pytest.mark.parametrize("max_growth", [0, 3, -2])
def test_wrong_options_are_refused(max_growth: int) -> None:
    with pytest.raises(InvalidTechnique, match="max_growth is"):
        batch_size_schedule.apply(vectors(), {"max_growth": max_growth})
