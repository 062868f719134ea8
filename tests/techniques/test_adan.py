import pytest
import torch

from effbench.errors import InvalidTechnique
from effbench.optimizers import WeightByWeight
from effbench_techniques.optimization_centric.learning_rate.adan import adan, adan_step
from own_optimizer import keeps_the_groups, steps, trains_and_excludes_others
from toy import vectors

B1, B2, B3 = 0.02, 0.08, 0.01  # as the paper writes them: shares that are new


def make_adan(parameters, lr: float, betas: tuple[float, float, float], decay: float = 0.0) -> WeightByWeight:
    groups = [{"params": parameters, "weight_decay": decay}]
    return WeightByWeight(groups, adan_step, lr=lr, betas=betas, eps=1e-8)


def test_it_equals_the_paper_line_by_line() -> None:
    def make(parameters):
        return make_adan(parameters, 0.1, (1 - B1, 1 - B2, 1 - B3), 0.3)

    theta = former = None
    m = v = n = 0.0
    for k, (before, gradient, eta, weight, _) in enumerate(steps(make, 3, 4), 1):
        g = gradient.double()
        if theta is None:
            theta, former = before.double(), g
        m = (1 - B1) * m + B1 * g
        v = (1 - B2) * v + B2 * (g - former)
        n = (1 - B3) * n + B3 * (g + (1 - B2) * (g - former)) ** 2
        m_hat, v_hat, n_hat = (x / (1 - (1 - b) ** k) for x, b in ((m, B1), (v, B2), (n, B3)))
        theta = (theta - eta / (n_hat.sqrt() + 1e-8) * (m_hat + (1 - B2) * v_hat)) / (1 + 0.3 * eta)
        former = g
        torch.testing.assert_close(weight.detach().double(), theta, rtol=0, atol=1e-5)


def test_the_first_step_moves_every_weight_by_the_rate() -> None:
    weight = torch.nn.Parameter(torch.zeros(5))
    weight.grad = torch.randn(5)
    make_adan([weight], 0.01, (0.98, 0.92, 0.99)).step()
    torch.testing.assert_close(weight.detach(), -0.01 * weight.grad.sign(), rtol=0, atol=1e-7)


def test_it_agrees_with_another_implementation() -> None:
    theirs = pytest.importorskip(
        "pytorch_optimizer", reason="a twin to hold against: pip install pytorch_optimizer"
    ).Adan
    other = None
    for before, gradient, rate, weight, _ in steps(lambda p: make_adan(p, 0.1, (0.98, 0.92, 0.99)), 3, 4):
        if other is None:
            other = torch.nn.Parameter(before.clone())
            optimizer = theirs([other], lr=0.1)
        other.grad = gradient.clone()
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
        torch.testing.assert_close(weight.detach(), other.detach(), rtol=0, atol=1e-4)


def test_groups_and_strength_of_decay_are_the_baselines() -> None:
    keeps_the_groups(adan)


def test_it_trains_from_the_same_start_and_excludes_other_optimizers() -> None:
    trains_and_excludes_others(adan)


@pytest.mark.parametrize("options", [{"lr": 0.0}, {"beta1": 1.0}, {"beta2": -0.1}, {"beta3": 1.0}])
def test_wrong_options_are_refused(options) -> None:
    with pytest.raises(InvalidTechnique, match=next(iter(options))):
        adan.apply(vectors(), options)
