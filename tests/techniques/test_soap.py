import pytest
import torch

from effbench import optimizers
from effbench.errors import InvalidTechnique
from effbench.optimizers import WeightByWeight
from effbench.techniques import compose
from effbench_techniques.data_centric.curriculum.progressive_resizing import progressive_resizing
from effbench_techniques.optimization_centric.learning_rate.soap import refresh, soap, soap_step
from own_optimizer import keeps_the_groups, steps, trains_and_excludes_others
from toy import flat, images, run, tokens, vectors


def optimizer(parameters, lr: float, betas: tuple[float, float], interval: int, decay: float = 0.0) -> WeightByWeight:
    settings = {"lr": lr, "betas": betas, "eps": 1e-8, "interval": interval, "largest": 10}
    return WeightByWeight([{"params": parameters, "weight_decay": decay}], soap_step, **settings)


def test_it_equals_the_paper_line_by_line() -> None:
    beta1, beta2, f = 0.9, 0.8, 3

    def make(parameters):
        return optimizer(parameters, 0.1, (beta1, beta2), f, decay=0.3)

    for t, (before, gradient, eta, weight, _) in enumerate(steps(make, 3, 5)):
        g = gradient.double()
        if t == 0:
            assert torch.equal(weight.detach(), before)
            w, m, v = before.double(), torch.zeros(3, 5).double(), torch.zeros(3, 5).double()
            left, right = g @ g.T, g.T @ g
            # which vectors span what the gradient lacks is for rounding to choose, so they are those of its own type
            ql, qr = (
                torch.linalg.eigh(square.double()).eigenvectors.flip(1)
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
            by_rows = (ql.T @ left @ ql).diagonal().argsort(descending=True)
            by_columns = (qr.T @ right @ qr).diagonal().argsort(descending=True)
            ql, qr = torch.linalg.qr(left @ ql[:, by_rows]).Q, torch.linalg.qr(right @ qr[:, by_columns]).Q
            v = v[by_rows][:, by_columns]
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
    taken = list(steps(lambda p: optimizer(p, 0.01, (0.9, 0.99), 1), 4, 4))
    (state,) = taken[-1][-1].state.values()
    for spread, basis in zip(state["spread"], state["basis"], strict=True):
        inside = basis.T @ spread @ basis
        off = inside - torch.diag(inside.diagonal())
        assert float(off.norm() / inside.norm()) < 0.1


def test_a_gradient_that_is_not_finite_makes_the_weights_so() -> None:
    for fault in (torch.nan, torch.inf):
        weight = torch.nn.Parameter(torch.ones(3, 4))
        ours = optimizer([weight], 0.1, (0.9, 0.9), 1)
        for _ in range(2):
            weight.grad = torch.ones(3, 4)
            weight.grad[1, 2] = fault
            ours.step()
        assert weight.isnan().all()


def test_the_mean_squares_follow_when_directions_change_their_order() -> None:
    state = {
        "spread": [torch.diag(torch.tensor([1.0, 3.0, 2.0])), None],
        "basis": [torch.eye(3), None],
        "square": torch.tensor([[1.0, 1.5], [3.0, 3.5], [2.0, 2.5]]),
    }
    refresh(state, 0)
    assert torch.equal(state["basis"][0].abs(), torch.tensor([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))
    assert state["square"].tolist() == [[3.0, 3.5], [2.0, 2.5], [1.0, 1.5]]


def test_images_may_shrink_to_a_pixel() -> None:
    known = {each.name: each for each in (soap, progressive_resizing)}
    recipe, _ = compose(images(), {name: {} for name in known}, known)
    assert torch.isfinite(flat(run(recipe, 12).model)).all()


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
