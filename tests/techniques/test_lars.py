import pytest
import torch

from effbench.errors import InvalidTechnique
from effbench.optimizers import WeightByWeight
from effbench_techniques.optimization_centric.large_batch.lars import lars, lars_step
from own_optimizer import steps, trains_and_excludes_others
from toy import begun, images, vectors


def optimizer(parameters, decay: float, lr: float) -> WeightByWeight:
    groups = [{"params": parameters, "weight_decay": decay}]
    return WeightByWeight(groups, lars_step, lr=lr, momentum=0.9, trust=0.02)


def test_it_equals_the_paper_line_by_line() -> None:
    def make(parameters):
        return optimizer(parameters, 0.3, lr=0.5)

    w, v = None, 0.0
    for before, gradient, rate, weight, _ in steps(make, 3, 4):
        w = before.double() if w is None else w
        g = gradient.double()
        local = 0.02 * w.norm() / (g.norm() + 0.3 * w.norm())
        v = 0.9 * v + local * (g + 0.3 * w)
        w = w - rate * v
        torch.testing.assert_close(weight.detach().double(), w, rtol=0, atol=1e-5)


def test_where_the_ratio_is_one_it_is_sgd() -> None:
    ours = torch.nn.Parameter(torch.randn(50))  # one dimension
    theirs = torch.nn.Parameter(ours.detach().clone())
    mine = optimizer([ours], 0.1, lr=0.1)
    sgd = torch.optim.SGD([theirs], lr=0.1, momentum=0.9, weight_decay=0.1)
    for _ in range(20):
        ours.grad = torch.randn(50)
        theirs.grad = ours.grad.clone()
        mine.step()
        sgd.step()
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)


def test_a_layer_moves_by_rate_times_trust_times_its_norm_however_large_its_gradient() -> None:
    for size in (1e-3, 1e3):
        training = begun(lars.apply(vectors(), {"lr": 0.5, "trust": 0.02}))
        for group in training.optimizer.param_groups:
            group["weight_decay"] = 0.0
        before = {weight: weight.detach().clone() for weight in training.model.parameters()}
        for weight in before:
            weight.grad = size * torch.randn_like(weight)
        training.optimizer.step()
        for weight, old in before.items():
            expected = 0.01 * float(old.norm()) if weight.ndim > 1 else 0.5 * float(weight.grad.norm())
            assert float((weight.detach() - old).norm()) == pytest.approx(expected, rel=1e-3)


def test_where_the_ratio_is_one_decay_is_that_of_the_baseline() -> None:
    for group, baseline in zip(
        begun(lars.apply(images(), {"lr": 0.5})).optimizer.param_groups,
        begun(images()).optimizer.param_groups,
        strict=True,
    ):
        assert group["momentum"] == baseline["momentum"] == 0.9
        assert group["lr"] * group["weight_decay"] == pytest.approx(baseline["lr"] * baseline["weight_decay"])


def test_it_trains_from_the_same_start_and_excludes_other_optimizers() -> None:
    trains_and_excludes_others(lars)


@pytest.mark.parametrize("options", [{"lr": 0.0}, {"momentum": 1.0}, {"trust": 0.0}])
def test_wrong_options_are_refused(options) -> None:
    with pytest.raises(InvalidTechnique, match=next(iter(options))):
        lars.apply(vectors(), options)
