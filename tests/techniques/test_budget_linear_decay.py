import pytest
import torch
from torch import Tensor, nn

from effbench.errors import InvalidTechnique
from effbench.optimizers import sgd
from effbench.recipe import Recipe
from effbench.techniques import Technique
from effbench_techniques.budgeted_training.training.budget_linear_decay import budget_linear_decay
from effbench_techniques.optimization_centric.learning_rate.step_decay import step_decay
from schedule import SlowSteps, ends_decayed, factors, progresses
from toy import CLASSES, random_numbers, recipe, run, spend, vectors


@pytest.mark.parametrize("steps", [10, 40])
def test_the_rate_is_what_is_left_of_the_budget_at_every_step(steps: int) -> None:
    found = factors(budget_linear_decay.apply(vectors(), {}), steps)
    assert found == pytest.approx([1 - p for p in progresses(steps)], abs=1e-12)
    assert found[-1] == 0.0


def test_with_a_warm_up_it_falls_from_its_end() -> None:
    found = factors(budget_linear_decay.apply(vectors(), {"warmup": 0.2}), 20)
    expected = [(p + 0.004) / 0.204 if p < 0.2 else (1 - p) / 0.8 for p in progresses(20)]
    assert found == pytest.approx(expected, abs=1e-12)


def test_the_last_rate_is_at_most_a_hundredth_of_the_peak() -> None:
    assert ends_decayed(lambda: budget_linear_decay.apply(vectors(), {}))


def test_it_never_rises_however_long_steps_take() -> None:
    class Hiccups(SlowSteps):
        def spent(self, training) -> float:
            return super().spent(training) + 0.5 * (training.step > 7)

    rates = []
    recipe = budget_linear_decay.apply(vectors(), {})
    spend(recipe, "3s", Hiccups(), look=lambda training: rates.append(training.optimizer.param_groups[0]["lr"]))
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] == pytest.approx(0.0, abs=1e-9)


def noisy(examples: int = 512) -> Recipe:
    """A linear classifier whose labels are random in one case of four: the noise of the steps is what is left."""
    inputs = random_numbers(examples, CLASSES)
    noise = random_numbers(examples, CLASSES + 1)[:, CLASSES] > 0.67
    targets = torch.where(noise, torch.arange(examples) % CLASSES, inputs.argmax(1))
    return recipe(
        inputs,
        targets,
        model=lambda: nn.Linear(CLASSES, CLASSES),
        classes=CLASSES,
        optimizer=sgd(0.5, momentum=0.0, weight_decay=0.0, nesterov=False),
    )


def full_loss(technique: Technique, steps: int, seed: int) -> float:
    made = technique.apply(noisy(), {"warmup": 0.0})
    model = run(made, steps, seed).model
    with torch.no_grad():
        return float(nn.functional.cross_entropy(model(made.dataset.inputs), made.dataset.targets))


def test_at_a_small_budget_it_beats_step_decay() -> None:
    for seed in range(5):
        assert full_loss(budget_linear_decay, 32, seed) < full_loss(step_decay, 32, seed) - 0.02


def test_the_full_gradient_vanishes_towards_the_end_of_the_budget() -> None:
    norms: list[Tensor] = []

    def look(training) -> None:
        dataset = training.recipe.dataset
        loss = nn.functional.cross_entropy(training.model(dataset.inputs), dataset.targets)
        norms.append(torch.cat([g.flatten() for g in torch.autograd.grad(loss, training.model.parameters())]).norm())

    run(budget_linear_decay.apply(noisy(), {}), 512, look=look)
    middle, end = torch.stack(norms[246:266]).mean(), torch.stack(norms[-5:]).mean()
    assert end < 0.3 * middle


@pytest.mark.parametrize("warmup", [1.0, -0.1])
def test_it_refuses_a_warm_up_that_is_no_share(warmup: float) -> None:
    with pytest.raises(InvalidTechnique, match=f"budget_linear_decay: warmup is {warmup}"):
        budget_linear_decay.apply(vectors(), {"warmup": warmup})
