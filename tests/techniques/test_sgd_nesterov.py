import pytest
import torch

from effbench.errors import InvalidTechnique
from effbench_techniques.optimization_centric.learning_rate.sgd_nesterov import sgd_nesterov
from own_optimizer import trains_and_excludes_others
from toy import begun, flat, images, run, same, vectors


def recurrence(lr: float, momentum: float, steps: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The weights after some steps with random gradients: ours, and those of the recurrence in the paper."""
    recipe = sgd_nesterov.apply(vectors(), {"lr": lr, "momentum": momentum})
    training = begun(recipe)
    random = torch.Generator().manual_seed(0)
    parameters = list(training.model.parameters())
    decay = {p: group["weight_decay"] for group in training.optimizer.param_groups for p in group["params"]}
    twins = [p.detach().double() for p in parameters]  # the point where the gradient is taken: already ahead
    velocities = [torch.zeros_like(twin) for twin in twins]
    for _ in range(steps):
        for i, parameter in enumerate(parameters):
            parameter.grad = torch.randn(parameter.shape, generator=random)
            slope = parameter.grad.double() + decay[parameter] * twins[i]
            behind = twins[i] - momentum * velocities[i]
            velocities[i] = momentum * velocities[i] - lr * slope  # v <- mu v - lr * slope(w + mu v)
            twins[i] = behind + velocities[i] + momentum * velocities[i]
        training.optimizer.step()
    return flat(training.model), torch.cat([twin.flatten() for twin in twins])


@pytest.mark.parametrize("momentum", [0.9, 0.5, 0.0])
def test_it_is_the_recurrence_of_the_paper_seen_from_the_point_ahead(momentum: float) -> None:
    ours, papers = recurrence(0.01, momentum, 20)
    torch.testing.assert_close(ours, papers, rtol=0, atol=1e-6)


def test_without_momentum_it_is_plain_gradient_descent() -> None:
    training = begun(sgd_nesterov.apply(vectors(), {"lr": 0.5, "momentum": 0.0}))
    before = flat(training.model)
    for group in training.optimizer.param_groups:
        group["weight_decay"] = 0.0
        for parameter in group["params"]:
            parameter.grad = torch.ones_like(parameter)
    training.optimizer.step()
    torch.testing.assert_close(flat(training.model), before - 0.5, rtol=0, atol=1e-7)


def test_with_the_options_of_a_baseline_of_sgd_it_is_the_baseline() -> None:
    ours = run(sgd_nesterov.apply(images(), {"lr": 0.05}), 5)
    torch.testing.assert_close(flat(ours.model), flat(run(images(), 5).model), rtol=0, atol=1e-6)
    assert not same(run(sgd_nesterov.apply(images(), {}), 5).model, ours.model)


def test_in_the_long_run_decay_takes_as_much_as_the_baselines_does() -> None:
    shares = []
    for recipe in (vectors(), sgd_nesterov.apply(vectors(), {"lr": 0.01})):
        training = begun(recipe)
        before = training.model.head.weight.norm().item()
        for _ in range(200):
            for parameter in training.model.parameters():
                parameter.grad = torch.zeros_like(parameter)
            training.optimizer.step()
        shares.append(training.model.head.weight.norm().item() / before)
    assert shares[0] == pytest.approx((1 - 3e-4) ** 200, rel=1e-5)
    assert shares[1] == pytest.approx(shares[0], rel=5e-3)


def test_it_trains_from_the_same_start_and_excludes_other_optimizers() -> None:
    trains_and_excludes_others(sgd_nesterov)


@pytest.mark.parametrize("options", [{"lr": 0.0}, {"lr": float("inf")}, {"momentum": 1.0}, {"momentum": -0.1}])
def test_wrong_options_are_refused(options) -> None:
    with pytest.raises(InvalidTechnique, match=next(iter(options))):
        sgd_nesterov.apply(vectors(), options)
