import contextlib

import pytest
import torch
from torch import nn

from effbench.distributed.sharing import share
from effbench.errors import InvalidTechnique
from effbench.recipe import Batch
from effbench.terms import IGNORED
from effbench_techniques.optimization_centric.large_batch.gradient_accumulation import cut, gradient_accumulation
from toy import begun, first_batch, images, random_numbers, run, same, tokens, vectors


def gradients(model) -> torch.Tensor:
    return torch.cat([weight.grad.flatten().double() for weight in model.parameters()])


@pytest.mark.parametrize("make", [vectors, tokens])
@pytest.mark.parametrize("micro_batches", [2, 3, 4, 100])
def test_the_gradient_is_that_of_the_whole_batch(make, micro_batches: int) -> None:
    whole = begun(make())
    parts = begun(gradient_accumulation.apply(make(), {"micro_batches": micro_batches}))
    batch = share(first_batch(make(), whole), whole)
    losses = whole.recipe.gradient(whole, batch)
    torch.testing.assert_close(parts.recipe.gradient(parts, batch), losses, rtol=0, atol=1e-6)
    torch.testing.assert_close(gradients(parts.model), gradients(whole.model), rtol=0, atol=1e-6)


class OneWeight(nn.Module):
    """Says its only weight, 1, for every example."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))

    def forward(self, inputs):
        return self.weight.expand(len(inputs))


def test_parts_count_by_their_valid_tokens() -> None:
    """A part of one token with loss 4 and a part of three with loss 0 make a step of loss 1, not of 2."""
    per_example = torch.tensor([4.0, 4.0, 0.0, 0.0])
    recipe = tokens(model=OneWeight, loss=lambda outputs, batch: outputs * per_example[batch.index])
    training = begun(gradient_accumulation.apply(recipe, {"micro_batches": 2}))
    batch = first_batch(recipe, training, 4).replace(weight=torch.tensor([0.5, 0.5, 1.5, 1.5]))
    losses = training.recipe.gradient(training, share(batch, training))
    assert losses.tolist() == per_example.tolist()
    assert float(training.model.weight.grad) == 1.0


def test_a_step_without_a_valid_token_has_no_gradient() -> None:
    def transform(batch, training):
        return batch.replace(targets=torch.full_like(batch.targets, IGNORED), weight=torch.zeros_like(batch.weight))

    training = begun(gradient_accumulation.apply(tokens(transform=transform), {}))
    training.recipe.gradient(training, share(first_batch(training.recipe, training), training))
    assert torch.equal(gradients(training.model), torch.zeros_like(gradients(training.model)))


def test_rates_change_once_per_update() -> None:
    rates, plain, passes = [], [], []

    def gradient(training, batch):
        passes.append(len(batch))
        return vectors().gradient(training, batch)

    recipe = gradient_accumulation.apply(vectors(gradient=gradient), {"micro_batches": 4})
    training = run(recipe, 10, look=lambda training: rates.append(training.optimizer.param_groups[0]["lr"]))
    run(vectors(), 10, look=lambda training: plain.append(training.optimizer.param_groups[0]["lr"]))
    assert passes == [2] * 40
    assert rates == plain
    assert training.examples == 80
    assert training.losses.shape == (8,)


@pytest.mark.parametrize(
    ("count", "micro_batches", "sizes"),
    [(8, 4, [2, 2, 2, 2]), (8, 3, [2, 3, 3]), (10, 4, [2, 3, 2, 3]), (7, 4, [2, 2, 3]), (3, 2, [3]), (1, 4, [1])],
)
def test_parts_are_even_and_never_single(count: int, micro_batches: int, sizes: list[int]) -> None:
    numbers = random_numbers(count, 2)
    batch = Batch(numbers, torch.arange(count), torch.arange(count), torch.ones(count))
    parts = cut(batch, micro_batches)
    assert [len(part) for part in parts] == sizes
    assert torch.cat([part.index for part in parts]).tolist() == list(range(count))


def test_batchnorm_survives_a_batch_that_is_no_multiple() -> None:
    recipe = images(8, 8, batch_size=lambda progress: 5)
    training = run(gradient_accumulation.apply(recipe, {"micro_batches": 4}), 3)
    assert int(training.model.head.norm.num_batches_tracked) == 6


def test_only_the_last_part_synchronises() -> None:
    calls, apart = [], []

    class Placed:
        def __init__(self, model) -> None:
            self.model = model

        def __call__(self, inputs):
            calls.append(bool(apart))
            return self.model(inputs)

        @contextlib.contextmanager
        def no_sync(self):
            apart.append(True)
            yield
            apart.pop()

    run(gradient_accumulation.apply(vectors(placement=Placed), {}), 1)
    assert calls == [True, True, True, False]


def test_one_part_is_the_baseline() -> None:
    assert same(run(gradient_accumulation.apply(vectors(), {"micro_batches": 1})).model, run(vectors()).model)
    with pytest.raises(InvalidTechnique, match="micro_batches is 0"):
        gradient_accumulation.apply(vectors(), {"micro_batches": 0})
