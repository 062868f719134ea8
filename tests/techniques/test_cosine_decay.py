import math

import pytest
import torch

from effbench.errors import Conflict, InvalidTechnique
from effbench.techniques import compose
from effbench_techniques.budgeted_training.training.budget_linear_decay import budget_linear_decay
from effbench_techniques.optimization_centric.learning_rate.cosine_decay import cosine_decay
from schedule import PEAK, ends_decayed, factors, progresses
from toy import vectors


def test_the_rate_is_the_closed_form_at_every_step() -> None:
    found = factors(cosine_decay.apply(vectors(), {"warmup": 0.25, "floor": 0.1}), 20)
    expected = [
        (p + 0.005) / 0.255 if p < 0.25 else 0.1 + 0.9 * (1 + math.cos(math.pi * (p - 0.25) / 0.75)) / 2
        for p in progresses(20)
    ]
    assert found == pytest.approx(expected, abs=1e-12)
    assert found[-1] == pytest.approx(0.1)  # eta_min


def test_it_is_torchs_cosine() -> None:
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=PEAK)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
    expected = []
    for _ in range(20):
        optimizer.step()
        scheduler.step()
        expected.append(scheduler.get_last_lr()[0] / PEAK)
    found = factors(cosine_decay.apply(vectors(), {"warmup": 0.0}), 20)
    assert found[1:] == pytest.approx(expected[1:], abs=1e-9)


def test_each_cycle_falls_from_the_peak_to_the_floor() -> None:
    found = factors(cosine_decay.apply(vectors(), {"warmup": 0.0, "cycles": 3}), 30)
    for end in (9, 19, 29):
        assert found[end] == pytest.approx(0.0, abs=1e-12)
    for begin in (10, 20):
        assert found[begin] == pytest.approx((1 + math.cos(math.pi / 10)) / 2)
        assert found[begin : begin + 10] == sorted(found[begin : begin + 10], reverse=True)


def test_the_last_rate_is_at_most_a_hundredth_of_the_peak() -> None:
    assert ends_decayed(lambda: cosine_decay.apply(vectors(), {}))
    assert ends_decayed(lambda: cosine_decay.apply(vectors(), {"cycles": 3}))


def test_two_schedules_conflict_and_the_error_names_both() -> None:
    known = {technique.name: technique for technique in (cosine_decay, budget_linear_decay)}
    with pytest.raises(Conflict, match="budget_linear_decay replaces the lr_schedule that cosine_decay changed"):
        compose(vectors(), {"budget_linear_decay": {}, "cosine_decay": {}}, known)


@pytest.mark.parametrize("options", [{"warmup": 1.0}, {"warmup": -0.1}, {"floor": 1.0}, {"floor": -0.1}, {"cycles": 0}])
def test_it_refuses_what_is_no_schedule(options: dict[str, float]) -> None:
    option = next(iter(options))
    with pytest.raises(InvalidTechnique, match=f"cosine_decay: {option} is {options[option]}"):
        cosine_decay.apply(vectors(), options)
