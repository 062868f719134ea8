"""What optimizers are made of: rules for one weight, Adam's direction, eigenvectors."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from effbench.optimizers import (
    WeightByWeight,
    adam_direction,
    eigenvectors,
)

torch.set_num_threads(1)


def sparse_square(seed: int) -> torch.Tensor:
    """G' G of kernels of 3x3 that saw images of one pixel: 16 of 144 rows and columns are not zero."""
    gradient = torch.zeros(32, 16, 9)
    gradient[:, :, 4] = torch.randn(32, 16, generator=torch.Generator().manual_seed(seed))
    return gradient.flatten(1).T @ gradient.flatten(1)


def test_eigenvectors_are_found_where_most_of_a_matrix_is_zero() -> None:
    for seed in range(20):
        spread = sparse_square(seed)
        basis = eigenvectors(spread)
        torch.testing.assert_close(basis.T @ basis, torch.eye(144), rtol=0, atol=1e-6)
        inside = basis.T @ spread @ basis
        values = inside.diagonal()
        assert float((inside - torch.diag(values)).abs().max() / values[0]) < 1e-6
        assert torch.equal(values[:16].argsort(descending=True), torch.arange(16))


def stubborn(failures: int, tried: list[torch.Tensor]):
    """A solver that fails to converge so many times, and notes what it was given."""

    def solve(matrix: torch.Tensor):
        tried.append(matrix)
        if len(tried) <= failures:
            raise torch.linalg.LinAlgError("failed to converge")
        return torch.linalg.eigh(matrix)

    return solve


def test_where_the_solver_fails_a_ridge_is_added_and_no_eigenvector_changes() -> None:
    spread = torch.diag(torch.tensor([3.0, 2.0, 1.0, 0.5]))
    spread[0, 1] = spread[1, 0] = 0.7
    for failures, ridge in enumerate((0.0, 1e-12, 1e-9, 1e-6)):
        tried: list[torch.Tensor] = []
        found = eigenvectors(spread, stubborn(failures, tried))
        assert [matrix.dtype for matrix in tried] == [torch.float64] * (failures + 1)
        added = tried[-1] - spread.double()
        torch.testing.assert_close(added, 3.0 * ridge * torch.eye(4).double(), rtol=1e-3, atol=0)
        torch.testing.assert_close(found.abs(), eigenvectors(spread).abs(), rtol=0, atol=1e-6)
    tried = []
    with pytest.raises(torch.linalg.LinAlgError, match="failed to converge"):
        eigenvectors(spread, stubborn(99, tried))
    assert len(tried) == 4


def test_what_is_not_finite_has_no_eigenvectors() -> None:
    for fault in (torch.nan, torch.inf):
        square = torch.eye(3)
        square[0, 1] = fault
        assert eigenvectors(square).isnan().all()


def doubling(weight: nn.Parameter, state: dict, group: dict) -> None:
    """A rule: add the gradient, twice as much each time."""
    state["times"] = 2 * state.get("times", 0.5)
    weight.add_(weight.grad, alpha=group["lr"] * state["times"])


def test_weight_by_weight_steps_those_that_have_a_gradient_by_its_rule_and_survives_a_copy() -> None:
    one, other = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.ones(2))
    optimizer = WeightByWeight([{"params": [one]}, {"params": [other], "lr": 0.5}], doubling, lr=1.0)
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.0, 0.0]
    one.grad = torch.ones(2)

    def loss() -> float:
        assert torch.is_grad_enabled()
        return 7.0

    assert optimizer.step(loss) == 7.0
    assert (one.tolist(), other.tolist()) == ([1.0, 1.0], [1.0, 1.0])
    assert other not in optimizer.state
    other.grad = torch.ones(2)
    optimizer.step()
    assert (one.tolist(), other.tolist()) == ([3.0, 3.0], [1.5, 1.5])
    copied = copy.deepcopy(optimizer)
    weight = copied.param_groups[0]["params"][0]
    weight.grad = torch.ones(2)  # which no copy has
    copied.step()
    assert (weight.tolist(), one.tolist()) == ([7.0, 7.0], [3.0, 3.0])


def test_adams_direction_is_torchs() -> None:
    ours, state = torch.zeros(5), {}
    theirs = nn.Parameter(torch.zeros(5))
    adam = torch.optim.Adam([theirs], lr=0.1, betas=(0.8, 0.9), eps=1e-3)
    for _ in range(10):
        theirs.grad = torch.randn(5)
        ours -= 0.1 * adam_direction(theirs.grad, state, (0.8, 0.9), 1e-3)
        adam.step()
        torch.testing.assert_close(ours, theirs.detach(), rtol=1e-5, atol=1e-6)
