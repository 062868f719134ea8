import pytest
import torch

from effbench import optimizers
from effbench.errors import InvalidTechnique
from effbench_techniques.optimization_centric.learning_rate.soap import Soap, soap
from own_optimizer import keeps_the_groups, steps, trains_and_excludes_others
from toy import flat, images, run, tokens, vectors


def test_it_equals_the_paper_line_by_line() -> None:
    beta1, beta2, f = 0.9, 0.8, 3

    def make(parameters):
        return Soap([{"params": parameters, "weight_decay": 0.3}], 0.1, (beta1, beta2), interval=f, largest=10)

    for t, (before, gradient, eta, weight, _) in enumerate(steps(make, 3, 5)):
        g = gradient.double()
        if t == 0:
            assert torch.equal(weight.detach(), before)
            w, m, v = before.double(), torch.zeros(3, 5).double(), torch.zeros(3, 5).double()
            left, right = g @ g.T, g.T @ g
            # which vectors span what the gradient lacks is for rounding to choose, so they are found in its type
            ql, qr = (
                torch.linalg.eigh(square).eigenvectors.flip(1).double()
                for square in (gradient @ gradient.T, gradient.T @ gradient)
            )
            continue
        turned = ql.T @ g @ qr
        m = beta1 * m + (1 - beta1) * g
        m_turned = ql.T @ m @ qr
        v = beta2 * v + (1 - beta2) * turned**2
        n = m_turned / (1 - beta1**t) / ((v / (1 - beta2**t)).sqrt() + 1e-8)
        w = w - eta * (ql @ n @ qr.T + 0.3 * w)
        left = beta2 * left + (1 - beta2) * g @ g.T
        right = beta2 * right + (1 - beta2) * g.T @ g
        if t % f == 0:
            ql, qr = torch.linalg.qr(left @ ql).Q, torch.linalg.qr(right @ qr).Q
        torch.testing.assert_close(weight.detach().double(), w, rtol=0, atol=1e-4)


def test_where_nothing_is_turned_it_is_adamw() -> None:
    options = {"lr": 3e-3, "beta1": 0.9, "beta2": 0.999, "largest": 0}
    ours = run(soap.apply(vectors(), options), 20)
    torch.testing.assert_close(flat(ours.model), flat(run(vectors(), 20).model), rtol=0, atol=1e-5)
    turned = run(soap.apply(vectors(), {**options, "largest": 512}), 20)
    assert float((flat(turned.model) - flat(ours.model)).abs().max()) > 1e-3


@pytest.mark.parametrize("make", [images, tokens])
def test_the_bases_are_orthogonal_and_of_each_side_that_is_not_too_long(make) -> None:
    training = run(soap.apply(make(), {"interval": 2, "largest": 36}), 5)
    turned = 0
    for weight, state in training.optimizer.state.items():
        assert state["square"].shape == (len(weight), weight[0].numel())
        lengths = [len(weight), weight[0].numel()] if weight.ndim > 1 else [0, 0]
        for basis, length in zip(state["basis"], lengths, strict=True):
            assert (basis is not None) == (1 < length <= 36)
            if basis is not None:
                torch.testing.assert_close(basis.T @ basis, torch.eye(length), rtol=0, atol=1e-5)
                turned += 1
    assert turned > 5


def test_in_the_eigenbasis_the_spread_becomes_diagonal() -> None:
    taken = list(steps(lambda p: Soap([{"params": p}], 0.01, (0.9, 0.99), interval=1, largest=10), 4, 4))
    optimizer = taken[-1][-1]
    (state,) = optimizer.state.values()
    for spread, basis in zip(state["spread"], state["basis"], strict=True):
        inside = basis.T @ spread @ basis
        off = inside - torch.diag(inside.diagonal())
        assert float(off.norm() / inside.norm()) < 0.1


def test_without_decay_of_the_baseline_there_is_none() -> None:
    bare = vectors(optimizer=optimizers.adamw(3e-3, weight_decay=0.0))
    groups = run(soap.apply(bare, {}), 1).optimizer.param_groups
    assert [group["weight_decay"] for group in groups] == [0.0, 0.0]


def test_groups_are_the_baselines_and_it_trains_and_excludes_other_optimizers() -> None:
    keeps_the_groups(soap)
    trains_and_excludes_others(soap)


@pytest.mark.parametrize("options", [{"lr": 0.0}, {"beta1": 1.0}, {"beta2": -0.1}, {"interval": 0}, {"largest": -1}])
def test_wrong_options_are_refused(options) -> None:
    with pytest.raises(InvalidTechnique, match=next(iter(options))):
        soap.apply(vectors(), options)
