import pytest
import torch

from effbench import optimizers
from effbench.errors import InvalidTechnique
from effbench_techniques.optimization_centric.learning_rate.adamw import adamw
from own_optimizer import keeps_the_groups, trains_and_excludes_others
from toy import begun, flat, run, same, vectors


def test_without_decay_it_is_adam() -> None:
    bare = vectors(optimizer=optimizers.adamw(3e-3, weight_decay=0.0))
    adam = vectors(optimizer=lambda model: torch.optim.Adam(model.parameters(), lr=0.01, betas=(0.8, 0.99)))
    ours = run(adamw.apply(bare, {"lr": 0.01, "beta1": 0.8, "beta2": 0.99}), 20)
    torch.testing.assert_close(flat(ours.model), flat(run(adam, 20).model), rtol=0, atol=1e-6)


def test_the_first_step_moves_every_weight_by_the_rate() -> None:
    training = begun(adamw.apply(vectors(), {"lr": 0.01}))
    for group in training.optimizer.param_groups:
        group["weight_decay"] = 0.0
    before = flat(training.model)
    for weight in training.model.parameters():
        weight.grad = torch.randn_like(weight)
    training.optimizer.step()
    torch.testing.assert_close((flat(training.model) - before).abs(), torch.full_like(before, 0.01), rtol=0, atol=1e-6)


def test_decay_is_a_share_of_the_weight_and_not_of_the_gradient() -> None:
    training = begun(adamw.apply(vectors(), {"lr": 0.01}))
    before = training.model.head.weight.detach().clone()
    for weight in training.model.parameters():
        weight.grad = torch.zeros_like(weight)
    training.optimizer.step()
    torch.testing.assert_close(training.model.head.weight.detach(), before * (1 - 3e-3 * 0.1), rtol=0, atol=1e-7)


def test_with_the_options_of_the_baseline_it_is_the_baseline() -> None:
    assert same(run(adamw.apply(vectors(), {"lr": 3e-3}), 5).model, run(vectors(), 5).model)
    assert not same(run(adamw.apply(vectors(), {"lr": 2e-3}), 5).model, run(vectors(), 5).model)


def test_groups_and_strength_of_decay_are_the_baselines() -> None:
    keeps_the_groups(adamw)


def test_it_trains_from_the_same_start_and_excludes_other_optimizers() -> None:
    trains_and_excludes_others(adamw)


@pytest.mark.parametrize("options", [{"lr": 0.0}, {"lr": float("inf")}, {"beta1": 1.0}, {"beta2": -0.1}])
def test_wrong_options_are_refused(options) -> None:
    with pytest.raises(InvalidTechnique, match=next(iter(options))):
        adamw.apply(vectors(), options)
