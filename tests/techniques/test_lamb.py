import pytest
import torch

from effbench.errors import InvalidTechnique
from effbench.optimizers import WeightByWeight
from effbench_techniques.optimization_centric.large_batch.lamb import lamb, lamb_step
from own_optimizer import keeps_the_groups, steps, trains_and_excludes_others
from toy import begun, vectors


def optimizer(parameters, decay: float, **settings) -> WeightByWeight:
    return WeightByWeight([{"params": parameters, "weight_decay": decay}], lamb_step, eps=1e-6, **settings)


def test_it_equals_the_paper_line_by_line() -> None:
    def make(parameters):
        return optimizer(parameters, 0.3, lr=0.1, betas=(0.9, 0.99), limit=2.0)

    x, m, v = None, 0.0, 0.0
    for t, (before, gradient, eta, weight, _) in enumerate(steps(make, 3, 4), 1):
        x = before.double() if x is None else x
        g = gradient.double()
        m = 0.9 * m + 0.1 * g
        v = 0.99 * v + 0.01 * g**2
        r = m / (1 - 0.9**t) / ((v / (1 - 0.99**t)).sqrt() + 1e-6)
        u = r + 0.3 * x
        x = x - eta * min(float(x.norm()), 2.0) / float(u.norm()) * u
        torch.testing.assert_close(weight.detach().double(), x, rtol=0, atol=1e-5)


def test_where_the_ratio_is_one_it_is_adamw() -> None:
    ours = torch.nn.Parameter(torch.randn(50))  # one dimension
    theirs = torch.nn.Parameter(ours.detach().clone())
    mine = optimizer([ours], 0.1, lr=0.01, betas=(0.9, 0.999), limit=10.0)
    adamw = torch.optim.AdamW([theirs], lr=0.01, weight_decay=0.1, eps=1e-6)
    for _ in range(20):
        ours.grad = torch.randn(50)
        theirs.grad = ours.grad.clone()
        mine.step()
        adamw.step()
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)


def test_a_layer_moves_by_the_rate_times_its_norm_and_one_of_zeros_as_by_adam() -> None:
    recipe = lamb.apply(vectors(), {"lr": 0.01, "limit": 1e6})
    training = begun(recipe)
    with torch.no_grad():
        training.model.head.weight.zero_()
    before = {weight: weight.detach().clone() for weight in training.model.parameters()}
    for weight in before:
        weight.grad = torch.randn_like(weight)
    training.optimizer.step()
    for weight, old in before.items():
        moved = float((weight.detach() - old).norm())
        if weight.ndim > 1 and weight is not training.model.head.weight:
            assert moved == pytest.approx(0.01 * float(old.norm()), rel=1e-4)
        else:
            assert moved == pytest.approx(0.01 * weight.numel() ** 0.5, rel=1e-3)


def test_groups_are_the_baselines_and_it_trains_and_excludes_other_optimizers() -> None:
    keeps_the_groups(lamb)
    trains_and_excludes_others(lamb)


@pytest.mark.parametrize("options", [{"lr": 0.0}, {"beta1": 1.0}, {"beta2": -0.1}, {"limit": 0.0}])
def test_wrong_options_are_refused(options) -> None:
    with pytest.raises(InvalidTechnique, match=next(iter(options))):
        lamb.apply(vectors(), options)
