import pytest
import torch

from effbench.errors import InvalidTechnique, NotApplicable
from effbench.models.hidden import hidden_weights
from effbench.optimizers import WeightByWeight
from effbench_techniques.model_centric.compression.galore import galore, galore_step, largest_directions
from own_optimizer import steps, trains_and_excludes_others
from toy import CLASSES, begun, flat, images, random_numbers, run, tokens, vectors


def optimizer(parameters, rank: int, interval: int, decay: float = 0.0) -> WeightByWeight:
    settings = {"lr": 0.1, "betas": (0.9, 0.8), "eps": 1e-8, "scale": 0.5, "interval": interval}
    return WeightByWeight([{"params": parameters, "weight_decay": decay, "rank": rank}], galore_step, **settings)


@pytest.mark.parametrize("shape", [(4, 7), (7, 4)])
def test_it_equals_the_papers_algorithm_line_by_line(shape) -> None:
    r, T = 2, 4
    W, M, V = None, 0.0, 0.0
    for t, (before, gradient, eta, weight, made) in enumerate(steps(lambda p: optimizer(p, r, T, 0.3), *shape)):
        W = before.double() if W is None else W
        G = gradient.double()
        if t % T == 0:
            U, _, Vh = torch.linalg.svd(G, full_matrices=False)
            P = U[:, :r] if shape[0] <= shape[1] else Vh[:r].T
            # the sign of a singular vector is for rounding to choose; as the means stay, it should be the same choice
            P = P * (made.state[weight]["directions"].double() * P).sum(0).sign()
        R = P.T @ G if shape[0] <= shape[1] else G @ P
        M = 0.9 * M + 0.1 * R
        V = 0.8 * V + 0.2 * R**2
        N = (M / (1 - 0.9 ** (t + 1))) / ((V / (1 - 0.8 ** (t + 1))).sqrt() + 1e-8)
        W = W - eta * 0.3 * W
        W = W - eta * 0.5 * (P @ N if shape[0] <= shape[1] else N @ P.T)
        torch.testing.assert_close(weight.detach().double(), W, rtol=0, atol=1e-4)


def test_with_all_directions_it_is_adamw() -> None:
    full = run(galore.apply(vectors(), {"rank": 8, "lr": 3e-3}), 20)
    torch.testing.assert_close(flat(full.model), flat(run(vectors(), 20).model), rtol=0, atol=1e-5)
    few = run(galore.apply(vectors(), {"rank": 7, "lr": 3e-3}), 20)
    assert float((flat(few.model) - flat(full.model)).abs().max()) > 1e-3


def test_the_optimizer_keeps_few_numbers_of_each_hidden_matrix() -> None:
    training = run(galore.apply(images(), {"rank": 3}), 2)
    hidden, counts = hidden_weights(training.model), {}
    for weight in training.model.parameters():
        state = training.optimizer.state[weight]
        counts[weight] = sum(value.numel() for value in state.values() if isinstance(value, torch.Tensor))
    for weight in hidden:
        n, m = sorted(weight.flatten(1).shape)
        assert n > 3
        assert counts[weight] == 3 * (n + 2 * m)
        assert counts[weight] < 2 * n * m
    assert all(counts[weight] == 2 * weight.numel() for weight in counts if weight not in set(hidden))


def test_a_matrix_moves_in_few_directions_until_they_are_chosen_anew() -> None:
    moved = []
    for before, _, _, weight, _ in steps(lambda p: optimizer(p, rank=2, interval=10), 6, 9):
        moved.append(weight.detach() - before)
    ranks = [int(torch.linalg.matrix_rank(change, rtol=1e-4)) for change in moved]
    assert ranks[:10] == [2] * 10
    assert ranks[10:20] == [4] * 10
    assert ranks[-1] == 6


def test_directions_are_those_of_the_largest_singular_values() -> None:
    gradient = random_numbers(5, 8) * torch.tensor([9.0, 1.0, 5.0, 0.1, 3.0])[:, None]
    found, expected = largest_directions(gradient, 3), torch.linalg.svd(gradient).U[:, :3]
    torch.testing.assert_close((found.T @ expected).abs(), torch.eye(3), rtol=0, atol=1e-5)
    assert largest_directions(torch.zeros(4, 6), 2).isfinite().all()


def test_groups_are_the_baselines_with_hidden_matrices_apart() -> None:
    for make in (vectors, images, tokens):
        training, theirs = begun(galore.apply(make(), {"lr": 0.01})), begun(make()).optimizer
        hidden = set(hidden_weights(training.model))
        seen = 0
        for group in training.optimizer.param_groups:
            assert all((weight in hidden) == (group["rank"] == 16) for weight in group["params"])
            seen += len(group["params"])
            decays = {g["lr"] * g["weight_decay"] * (10.0 if make is images else 1.0) for g in theirs.param_groups}
            assert any(group["lr"] * group["weight_decay"] == pytest.approx(decay) for decay in decays)
        assert seen == len(list(training.model.parameters()))


def test_it_trains_and_excludes_other_optimizers() -> None:
    trains_and_excludes_others(galore)


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="there are none"):
        galore.apply(vectors(model=lambda: torch.nn.Linear(6, CLASSES)), {})
    for options in ({"rank": 0}, {"lr": 0.0}, {"scale": 0.0}, {"interval": 0}, {"beta1": 1.0}, {"beta2": -0.1}):
        with pytest.raises(InvalidTechnique, match=f"{next(iter(options))} is"):
            galore.apply(vectors(), options)
