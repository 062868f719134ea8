import copy

import pytest
import torch

from effbench.errors import InvalidTechnique
from effbench.surgery import operate
from effbench_techniques.optimization_centric.learning_rate.prodigy import Prodigy, prodigy
from own_optimizer import keeps_the_groups, steps, trains_and_excludes_others
from toy import begun, flat, run, tokens, vectors


def test_it_equals_the_paper_line_by_line() -> None:
    x = None
    d, beta1, beta2 = 1e-2, 0.9, 0.99
    m = v = s = torch.zeros(3, 4).double()
    r, distances = 0.0, []
    for before, gradient, gamma, weight, optimizer in steps(
        lambda p: Prodigy([{"params": p}], 1.0, (beta1, beta2), first=1e-2), 3, 4, drift=1.0
    ):
        x0 = before.double()
        x = x0 if x is None else x
        g = gradient.double()
        m = beta1 * m + (1 - beta1) * d * g
        v = beta2 * v + (1 - beta2) * d**2 * g**2
        r = beta2**0.5 * r + (1 - beta2**0.5) * gamma * d**2 * float((g * (x0 - x)).sum())
        s = beta2**0.5 * s + (1 - beta2**0.5) * gamma * d**2 * g
        x = x - gamma * d * m / (v.sqrt() + d * 1e-8)
        d = max(d, r / float(s.abs().sum()))
        torch.testing.assert_close(weight.detach().double(), x, rtol=0, atol=1e-5)
        assert optimizer.distance == pytest.approx(d, rel=1e-4)
        distances.append(d)
    assert len(set(distances)) > 5


@pytest.mark.parametrize("far", [0.1, 10.0])
def test_the_distance_never_falls_and_finds_the_scale_of_the_solution(far: float) -> None:
    solution = far * torch.tensor([1.0, -1.0, 1.0, -1.0])
    weight = torch.nn.Parameter(torch.zeros(4))
    optimizer = Prodigy([{"params": [weight]}], 1.0, (0.9, 0.999))
    distances = []
    for _ in range(1000):
        optimizer.zero_grad()
        (weight - solution).abs().sum().backward()
        optimizer.step()
        distances.append(optimizer.distance)
    assert distances == sorted(distances)
    assert 0.1 * far < distances[-1] < far  # a lower bound
    assert float((weight.detach() - solution).abs().max()) < 0.3 * far


def test_one_distance_serves_the_whole_model_and_outlives_its_growth() -> None:
    seen = []

    def grow(training) -> None:
        operate(training, lambda model: model.blocks.append(copy.deepcopy(model.blocks[0])) and None)

    def look(training) -> None:
        seen.append({state["distance"] for state in training.optimizer.state.values()})

    training = run(prodigy.apply(tokens().at(0.5, grow), {"first": 1e-4}), 40, look=look)
    assert all(len(distances) == 1 for distances in seen)
    found = [distances.pop() for distances in seen]
    assert found == sorted(found)
    assert found[19] > 1e-4
    assert torch.isfinite(flat(training.model)).all()


def test_decay_does_not_depend_on_the_distance() -> None:
    training = begun(prodigy.apply(vectors(), {}))
    before = training.model.head.weight.detach().clone()
    for weight in training.model.parameters():
        weight.grad = torch.zeros_like(weight)
    training.optimizer.step()
    torch.testing.assert_close(training.model.head.weight.detach(), before * (1 - 3e-3 * 0.1), rtol=0, atol=1e-7)


def test_groups_are_the_baselines_and_it_trains_and_excludes_other_optimizers() -> None:
    trains_and_excludes_others(prodigy)
    keeps_the_groups(prodigy, "scale")


@pytest.mark.parametrize("options", [{"scale": 0.0}, {"first": float("inf")}, {"beta1": 1.0}, {"beta2": 0.0}])
def test_wrong_options_are_refused(options) -> None:
    with pytest.raises(InvalidTechnique, match=next(iter(options))):
        prodigy.apply(vectors(), options)
