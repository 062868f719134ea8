"""Rate factor: every learning rate is multiplied, and plain gradient descent moves so much farther."""

from __future__ import annotations

import pytest
import torch

from effbench import toys
from effbench.budget import Budget
from effbench.clock import StepClock
from effbench.errors import InvalidTechnique
from effbench.plugins import load
from effbench.techniques import compose
from effbench.train import start, train
from effbench_techniques.optimization_centric.learning_rate.rate_factor import rate_factor

torch.set_num_threads(1)


def rates(factor: float) -> list[float]:
    training = start(rate_factor.apply(toys.vectors(), {"factor": factor}), seed=0)
    seen = []
    for _ in train(training, Budget(6, "steps"), StepClock()):
        seen += [group["lr"] for group in training.optimizer.param_groups]
    return seen


def test_every_rate_of_every_step_is_multiplied() -> None:
    assert rates(3.0) == pytest.approx([3.0 * rate for rate in rates(1.0)])


def peaks(techniques: dict[str, dict[str, float]]) -> list[float]:
    recipe = compose(toys.vectors(), techniques, load().techniques)[0]
    return [group["lr"] for group in start(recipe, seed=0).optimizer.param_groups]


def test_by_default_rates_double() -> None:
    assert peaks({"rate_factor": {}}) == [2.0 * rate for rate in peaks({})]


@pytest.mark.parametrize(
    "other", ["adafactor", "adan", "lamb", "lars", "lion", "muon", "schedule_free", "sgd_nesterov", "soap", "sophia"]
)
def test_it_goes_on_top_of_another_optimizer(other: str) -> None:
    assert peaks({other: {}, "rate_factor": {"factor": 0.5}}) == [0.5 * rate for rate in peaks({other: {}})]


@pytest.mark.parametrize("factor", [0.0, -1.0])
def test_a_rate_is_above_zero(factor: float) -> None:
    with pytest.raises(InvalidTechnique, match="above 0"):
        rate_factor.apply(toys.vectors(), {"factor": factor})
