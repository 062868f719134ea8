import pytest
import torch

from effbench.errors import InvalidTechnique
from effbench.optimizers import WeightByWeight
from effbench_techniques.optimization_centric.learning_rate.lion import lion, lion_step
from own_optimizer import keeps_the_groups, trains_and_excludes_others
from toy import begun, flat, vectors


def test_it_equals_the_paper_line_by_line() -> None:
    random = torch.Generator().manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(3, 4, generator=random))
    w, m = weight.detach().clone(), torch.zeros(3, 4)
    groups = [{"params": [weight], "weight_decay": 0.3}]
    optimizer = WeightByWeight(groups, lion_step, lr=0.01, betas=(0.9, 0.99))
    for step in range(30):
        g = torch.randn(3, 4, generator=random)
        lr = 0.01 / (step + 1)
        optimizer.param_groups[0]["lr"] = lr
        weight.grad = g.clone()
        optimizer.step()
        update = torch.sign(0.9 * m + 0.1 * g)
        m = 0.99 * m + 0.01 * g
        w = w - lr * (update + 0.3 * w)
        torch.testing.assert_close(weight.detach(), w, rtol=0, atol=1e-6)
    assert torch.equal(weight.grad, g)


def test_every_weight_moves_by_the_rate() -> None:
    recipe = lion.apply(vectors(lr_schedule=lambda progress: 1.0), {"lr": 0.01})
    training = begun(recipe)
    for group in training.optimizer.param_groups:
        group["weight_decay"] = 0.0
    before = flat(training.model)
    for weight in training.model.parameters():
        weight.grad = torch.randn_like(weight)
    recipe.update(training)
    torch.testing.assert_close((flat(training.model) - before).abs(), torch.full_like(before, 0.01), rtol=0, atol=1e-7)


def test_groups_are_the_baselines_and_it_trains_and_excludes_other_optimizers() -> None:
    keeps_the_groups(lion)
    trains_and_excludes_others(lion)


@pytest.mark.parametrize("options", [{"lr": 0.0}, {"lr": float("inf")}, {"beta1": 1.0}, {"beta2": -0.1}])
def test_wrong_options_are_refused(options) -> None:
    with pytest.raises(InvalidTechnique, match=next(iter(options))):
        lion.apply(vectors(), options)
