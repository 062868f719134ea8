import math

import pytest
import torch

from effbench.errors import InvalidTechnique
from effbench_techniques.optimization_centric.learning_rate.wsd import wsd
from schedule import ends_decayed, factors, progresses
from toy import flat, run, vectors


def test_the_rate_is_a_trapezoid_at_every_step() -> None:
    found = factors(wsd.apply(vectors(), {"warmup": 0.2, "decay": 0.4}), 20)
    expected = [(p + 0.004) / 0.204 if p < 0.2 else min(1.0, (1 - p) / 0.4) for p in progresses(20)]
    assert found == pytest.approx(expected, abs=1e-12)
    assert sum(factor > 1.0 - 1e-9 for factor in found) == 9  # from 0.2 to 0.6 of the budget


def test_the_decay_may_be_one_minus_the_root() -> None:
    found = factors(wsd.apply(vectors(), {"warmup": 0.0, "decay": 0.5, "shape": "sqrt"}), 20)
    assert found == pytest.approx([1 - math.sqrt(max(0.0, (p - 0.5) / 0.5)) for p in progresses(20)], abs=1e-7)


def test_two_budgets_share_the_plateau_bit_by_bit() -> None:
    def weights(steps: int) -> list[torch.Tensor]:
        seen: list[torch.Tensor] = []
        run(wsd.apply(vectors(), {"warmup": 0.0}), steps, look=lambda training: seen.append(flat(training.model)))
        return seen

    short, long = weights(20), weights(40)
    shared = [torch.equal(one, other) for one, other in zip(short, long, strict=False)]
    assert shared == [True] * 12 + [False] * 8  # the last two fifths of 20 steps decay


def test_the_last_rate_is_at_most_a_hundredth_of_the_peak() -> None:
    assert ends_decayed(lambda: wsd.apply(vectors(), {}))
    assert ends_decayed(lambda: wsd.apply(vectors(), {"shape": "sqrt"}))


@pytest.mark.parametrize(
    "options", [{"warmup": 1.0}, {"warmup": -0.1}, {"decay": 0.0}, {"decay": 0.99}, {"shape": "cosine"}]
)
def test_it_refuses_what_is_no_trapezoid(options: dict[str, object]) -> None:
    option = next(iter(options))
    with pytest.raises(InvalidTechnique, match=f"wsd: {option} is"):
        wsd.apply(vectors(), options)
