import pytest
import torch
from torch import nn

from effbench.distributed.sharing import share
from effbench.errors import InvalidTechnique, NotApplicable
from effbench.techniques import compose
from effbench.terms import IGNORED
from effbench_techniques.optimization_centric.learning_rate.sophia import Sophia, look_at_curvature, sophia
from effbench_techniques.optimization_centric.objective.sparse_mlm_head import sparse_mlm_head
from own_optimizer import keeps_the_groups, steps, trains_and_excludes_others
from toy import CLASSES, begun, first_batch, images, masked_tokens, run, same, state, tokens, vectors


def test_it_equals_the_paper_line_by_line() -> None:
    beta1, beta2, gamma, k = 0.9, 0.8, 0.5, 3

    def make(parameters):
        return Sophia([{"params": parameters, "weight_decay": 0.3}], 0.1, (beta1, beta2), gamma)

    random = torch.Generator().manual_seed(1)
    theta, m, h = None, 0.0, 0.0
    for t, (before, gradient, eta, weight, optimizer) in enumerate(steps(make, 3, 4)):
        theta = before.double() if theta is None else theta
        m = beta1 * m + (1 - beta1) * gradient.double()
        theta = theta - eta * 0.3 * theta
        curvature = torch.as_tensor(gamma * h).double()
        theta = theta - eta * (m / curvature.clamp_min(1e-12)).clamp(-1, 1)
        torch.testing.assert_close(weight.detach().double(), theta, rtol=0, atol=1e-5)
        if t % k == 0:
            seen = torch.rand(3, 4, generator=random)
            optimizer.see({weight: seen})
            h = beta2 * h + (1 - beta2) * seen.double()


def linear(**changes):
    return vectors(model=lambda: nn.Linear(6, CLASSES), **changes)


def test_the_estimate_is_that_of_the_hessian_without_bias() -> None:
    training = begun(sophia.apply(linear(), {"beta2": 0.0}))
    batch = share(first_batch(training.recipe, training), training)
    chances = training.model(batch.inputs).detach().softmax(1)
    exact = (chances * (1 - chances)).T @ batch.inputs.square() / 8  # of the cross-entropy of a linear model
    draws = []
    for _ in range(1500):
        look_at_curvature(training, linear(), batch)
        draws.append(training.optimizer.state[training.model.weight]["curvature"].clone())
    found = torch.stack(draws)
    error = found.std(0) / len(draws) ** 0.5
    assert float(((found.mean(0) - exact) / error).abs().max()) < 4.0
    assert float((found.mean(0) - exact).abs().max() / exact.max()) < 0.15


def test_every_interval_has_an_estimate_and_it_leaves_gradients_and_buffers_alone() -> None:
    training, plain = begun(sophia.apply(images(), {})), begun(images())
    batch = share(first_batch(images(), plain), plain)
    assert torch.equal(training.recipe.gradient(training, batch), plain.recipe.gradient(plain, batch))
    for one, other in zip(training.model.parameters(), plain.model.parameters(), strict=True):
        assert torch.equal(one.grad, other.grad)
    assert all(torch.equal(state(plain.model)[name], tensor) for name, tensor in state(training.model).items())

    passes = []

    def gradient(training, batch):
        passes.append(training.step)
        return vectors().gradient(training, batch)

    run(sophia.apply(vectors(gradient=gradient), {"interval": 3}), 7)
    assert passes == [0, 0, 1, 2, 3, 3, 4, 5, 6, 6]


def test_no_weight_moves_by_more_than_the_rate() -> None:
    training = begun(sophia.apply(vectors(lr_schedule=lambda progress: 1.0), {"lr": 0.01}))
    for group in training.optimizer.param_groups:
        group["weight_decay"] = 0.0
    batch = share(first_batch(training.recipe, training), training)
    before = {weight: weight.detach().clone() for weight in training.model.parameters()}
    training.recipe.gradient(training, batch)
    training.recipe.update(training)
    moved = torch.cat([(weight.detach() - old).abs().flatten() for weight, old in before.items()])
    assert float(moved.max()) <= 0.01 + 1e-7
    assert float(moved.min()) < 0.009


@pytest.mark.parametrize("make", [tokens, masked_tokens])
def test_tokens_without_a_target_get_none(make) -> None:
    drawn = []

    def gradient(training, batch):
        drawn.append(batch.targets)
        return make().gradient(training, batch)

    run(sophia.apply(make(gradient=gradient), {}), 1)
    own, sampled = drawn
    assert torch.equal(own == IGNORED, sampled == IGNORED)
    assert not torch.equal(own, sampled)


def test_the_sparse_head_goes_inside() -> None:
    known = {"sophia": sophia, "sparse_mlm_head": sparse_mlm_head}
    both, order = compose(masked_tokens(), {"sophia": {}, "sparse_mlm_head": {}}, known)
    assert order == ["sparse_mlm_head", "sophia"]
    alone = run(sophia.apply(masked_tokens(), {}))
    torch.testing.assert_close(run(both).losses, alone.losses, rtol=0, atol=1e-4)


def test_groups_are_the_baselines_and_it_trains_and_excludes_other_optimizers() -> None:
    keeps_the_groups(sophia)
    trains_and_excludes_others(sophia)
    recipe = sophia.apply(vectors(), {})
    assert same(run(recipe).model, run(recipe).model)


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="has neither"):
        sophia.apply(vectors(classes=None), {})
    for options in ({"lr": 0.0}, {"beta1": 1.0}, {"beta2": -0.1}, {"gamma": 0.0}, {"interval": 0}):
        with pytest.raises(InvalidTechnique, match=next(iter(options))):
            sophia.apply(vectors(), options)
