import pytest
import torch
from torch import nn

from effbench import optimizers
from effbench.errors import InvalidTechnique
from effbench.surgery import operate
from effbench.techniques import compose
from effbench.train import Positions, take_step
from effbench_techniques.optimization_centric.large_batch.gradient_accumulation import gradient_accumulation
from effbench_techniques.optimization_centric.large_batch.gradient_noise_scale import (
    estimate,
    gradient_noise_scale,
    growth,
)
from effbench_techniques.system_centric.model.ddp import ddp
from ranks import distance
from toy import begun, flat, recipe, run, tokens, vectors

MEAN, SPREAD = torch.tensor([0.5, -0.25, 0.0]), torch.tensor([1.0, 2.0, 0.5])
TRACE, SQUARE = float((SPREAD**2).sum()), float((MEAN**2).sum())


class Product(nn.Module):
    """(B, 3) -> (B,): the product with a weight, whose gradient is the input."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs @ self.weight


def gaussian(count: int = 12_800, batch: int = 128, **changes):
    """A recipe whose gradient at each example is Gaussian, of known mean and covariance, wherever the weight is."""
    noise = torch.randn(count, 3, generator=torch.Generator().manual_seed(0))
    inputs = MEAN + SPREAD * (noise - noise.mean(0)) / noise.std(0)
    plain = {
        "model": Product,
        "loss": lambda outputs, batch: outputs,
        "optimizer": optimizers.sgd(0.1, momentum=0.0, weight_decay=0.0, nesterov=False),
        "batch_size": lambda progress: batch,
    }
    return recipe(inputs, torch.zeros(count, dtype=torch.long), **{**plain, **changes})


def kept(training) -> dict:
    return training.kept["gradient_noise_scale"]


def test_the_estimate_is_that_of_a_gaussian_gradient_without_bias() -> None:
    found = []
    ours = gradient_noise_scale.apply(gaussian(), {"interval": 1, "memory": 0.0})
    run(ours, 400, look=lambda training: found.append((kept(training)["noise"], kept(training)["slope"])))
    values = torch.tensor(found)
    error = values.std(0) / len(found) ** 0.5
    assert abs(float((values.mean(0)[0] - TRACE) / error[0])) < 3.0
    assert abs(float((values.mean(0)[1] - SQUARE) / error[1])) < 3.0
    scale = float(values.mean(0)[0] / values.mean(0)[1])
    assert scale == pytest.approx(TRACE / SQUARE, rel=0.15)


def test_parts_of_any_size_give_the_same() -> None:
    def squares(size: float) -> float:
        return SQUARE + TRACE / size  # what it is on average

    for sizes in ([8.0, 8.0], [7.0, 8.0], [2.0, 30.0]):
        noise, slope = estimate([squares(size) for size in sizes], sizes, squares(sum(sizes)))
        assert (noise, slope) == (pytest.approx(TRACE), pytest.approx(SQUARE))


def test_an_update_waits_for_as_many_batches_as_make_up_the_noise_scale() -> None:
    training = begun(gradient_noise_scale.apply(gaussian(batch=4), {"interval": 1, "memory": 0.95}))
    positions = Positions(training.recipe.sampler(training))
    waited, expected, found, steps = 0, 1, [], 100  # nothing is known when it begins
    for _ in range(steps):
        before = flat(training.model)
        take_step(training, positions)
        waited += 1
        if not torch.equal(flat(training.model), before):
            found.append((waited, expected))
            waited, expected = 0, growth(kept(training), 8)
    assert all(waited == expected for waited, expected in found)
    assert {1, 2, 8} < {waited for waited, _ in found}
    assert training.examples == steps * 4


def test_it_grows_from_one_to_the_most() -> None:
    def batches(noise: float, slope: float) -> int:
        return growth({"noise": noise, "slope": slope, "examples": 10.0}, 8)

    assert [batches(noise, 1.0) for noise in (0.0, -3.0, 4.0, 24.0, 36.0, 1e9)] == [1, 1, 1, 2, 4, 8]
    assert [batches(5.0, slope) for slope in (0.0, -1.0)] == [8, 8]


def test_an_update_takes_the_mean_gradient_at_a_higher_rate() -> None:
    ours = gradient_noise_scale.apply(gaussian(lr_schedule=lambda progress: 1.0), {"interval": 1000, "power": 0.5})
    training = begun(ours)
    positions = Positions(training.recipe.sampler(training))
    take_step(training, positions)
    kept(training)["awaited"] = 4
    drawn = []

    def loader(positions, training):
        drawn.append(positions)
        return gaussian().loader(positions, training)

    training.recipe = ours.wrap(loader=loader)
    before = training.model.weight.detach().clone()
    for _ in range(4):
        take_step(training, positions)
    mean = ours.dataset.inputs[torch.cat(drawn)].mean(0)
    torch.testing.assert_close(training.model.weight.detach(), before - 0.1 * 2.0 * mean)
    assert kept(training)["gathered"] == 0
    assert training.optimizer.param_groups[0]["lr"] == 0.1


def test_measuring_changes_no_gradient() -> None:
    for make in (vectors, tokens):
        measured, plain = run(gradient_noise_scale.apply(make(), {}), 1), run(make(), 1)
        assert kept(measured)["noise"] > 0.0
        torch.testing.assert_close(flat(measured.model), flat(plain.model), rtol=0, atol=1e-5)
        torch.testing.assert_close(measured.losses, plain.losses)


def test_a_model_that_grows_gathers_anew() -> None:
    training = begun(gradient_noise_scale.apply(tokens(), {"interval": 1000}))
    positions = Positions(training.recipe.sampler(training))
    take_step(training, positions)
    kept(training)["awaited"] = 3
    take_step(training, positions)
    assert kept(training)["gathered"] == 1
    operate(training, lambda model: None)
    take_step(training, positions)
    assert kept(training)["gathered"] == 1
    take_step(training, positions)
    assert kept(training)["gathered"] == 2


def test_several_processes_measure_and_train_the_same() -> None:
    known = {each.name: each for each in (gradient_noise_scale, gradient_accumulation, ddp)}
    options = {"gradient_noise_scale": {"interval": 1}}
    alone, _ = compose(vectors(), options, known)
    together, _ = compose(vectors(), {**options, "ddp": {}}, known)
    assert distance(together, alone, steps=12) < 1e-5
    parted, order = compose(vectors(), {**options, "gradient_accumulation": {"micro_batches": 2}}, known)
    assert order == ["gradient_accumulation", "gradient_noise_scale"]
    torch.testing.assert_close(flat(run(parted, 12).model), flat(run(alone, 12).model), rtol=0, atol=1e-5)


@pytest.mark.parametrize("options", [{"max_growth": 0}, {"interval": 0}, {"memory": 1.0}, {"power": 1.1}])
def test_wrong_options_are_refused(options) -> None:
    with pytest.raises(InvalidTechnique, match=f"{next(iter(options))} is"):
        gradient_noise_scale.apply(vectors(), options)
