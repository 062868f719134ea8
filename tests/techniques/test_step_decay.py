import pytest
import torch

from effbench.errors import InvalidTechnique
from effbench_techniques.optimization_centric.learning_rate.step_decay import step_decay
from schedule import PEAK, factors, progresses
from toy import vectors


def test_the_rate_is_the_formula_at_every_step() -> None:
    found = factors(step_decay.apply(vectors(), {"drops": [0.5, 0.75], "factor": 0.2, "warmup": 0.2}), 20)
    expected = [
        (p + 0.004) / 0.204 if p < 0.2 else 1.0 if p <= 0.5 else 0.2 if p <= 0.75 else 0.04 for p in progresses(20)
    ]
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("steps", [9, 12, 30])
def test_it_is_torchs_multi_step_rate(steps: int) -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=PEAK)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [steps // 3, 2 * steps // 3], gamma=0.1)
    expected = []
    for _ in range(steps):
        expected.append(scheduler.get_last_lr()[0] / PEAK)
        optimizer.step()
        scheduler.step()
    found = factors(step_decay.apply(vectors(), {"warmup": 0.0}), steps)
    assert found == pytest.approx(expected, rel=1e-9)
    assert found[-1] == pytest.approx(0.01)


def test_without_drops_or_with_a_factor_of_one_the_rate_stays() -> None:
    for off in ({"drops": []}, {"factor": 1.0}):
        assert factors(step_decay.apply(vectors(), {"warmup": 0.0, **off}), 10) == pytest.approx([1.0] * 10)


@pytest.mark.parametrize(
    "options",
    [
        {"drops": [0.6, 0.5]},
        {"drops": [0.0]},
        {"drops": [1.0]},
        {"drops": ["half"]},
        {"factor": 0.0},
        {"factor": 1.5},
        {"warmup": 0.4},
        {"warmup": -0.1},
    ],
)
def test_it_refuses_what_is_no_schedule(options: dict[str, object]) -> None:
    option = next(iter(options))
    with pytest.raises(InvalidTechnique, match=f"step_decay: {option} is"):
        step_decay.apply(vectors(), options)
