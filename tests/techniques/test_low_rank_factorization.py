import pytest
import torch
from torch import nn

from effbench.errors import InvalidTechnique, NotApplicable
from effbench.train import start
from effbench_techniques.model_centric.compression.low_rank_factorization import (
    factorizable,
    factorized,
    low_rank_factorization,
)
from toy import images, random_numbers, run, tokens, vectors

LAYERS = [
    (lambda: nn.Linear(12, 20), (5, 12)),
    (lambda: nn.Linear(20, 12, bias=False), (5, 7, 20)),
    (lambda: nn.Conv2d(6, 10, 3, stride=2, padding=1, dilation=2), (2, 6, 9, 9)),
    (lambda: nn.Conv1d(6, 10, 5, padding=2, padding_mode="circular"), (2, 6, 12)),
]


@pytest.mark.parametrize(("make", "shape"), LAYERS)
def test_at_full_rank_the_outputs_are_those_of_the_layer(make, shape) -> None:
    layer, x = make(), random_numbers(*shape)
    thin = factorized(layer, min(layer.weight.flatten(1).shape))
    torch.testing.assert_close(thin(x), layer(x), rtol=0, atol=1e-5)


@pytest.mark.parametrize(("make", "shape"), LAYERS)
def test_it_is_the_best_approximation_of_its_rank_and_has_as_many_weights_as_the_formula_says(make, shape) -> None:
    layer = make()
    outputs, inputs = layer.weight.flatten(1).shape
    thin = factorized(layer, 3)
    product = thin[1].weight.flatten(1) @ thin[0].weight.flatten(1)
    lost = torch.linalg.svdvals(layer.weight.flatten(1))[3:].norm()  # Eckart and Young
    torch.testing.assert_close((product - layer.weight.flatten(1)).norm(), lost)
    biases = 0 if layer.bias is None else outputs
    assert sum(weight.numel() for weight in thin.parameters()) == 3 * (outputs + inputs) + biases


def test_factors_share_the_singular_values_evenly() -> None:
    thin = factorized(nn.Linear(12, 20), 3)
    values = torch.linalg.svdvals(thin[1].weight @ thin[0].weight)[:3].detach()
    torch.testing.assert_close(thin[0].weight.detach().norm(dim=1), values.sqrt())
    torch.testing.assert_close(thin[1].weight.detach().norm(dim=0), values.sqrt())


def test_only_blocks_are_factorized_and_only_where_that_saves_weights() -> None:
    model = tokens().model()
    expected = {
        f"blocks.{block}.{layer}"
        for block in range(2)
        for layer in ("attention.qkv", "attention.last", "feed_forward.first", "feed_forward.last")
    }
    assert set(factorizable(model, 0.25)) == expected
    assert factorizable(model, 0.9) == {}
    assert set(factorizable(images().model(), 0.25)) >= {"blocks.0.first", "blocks.2.last", "blocks.2.projection"}


def test_weights_that_are_shared_keep_their_rank() -> None:
    model = tokens().model()
    model.blocks[1].attention.last.weight = model.blocks[0].attention.last.weight
    assert not {"blocks.0.attention.last", "blocks.1.attention.last"} & set(factorizable(model, 0.25))


def test_a_layer_that_is_used_twice_stays_one() -> None:
    model = tokens().model()
    model.blocks[1] = model.blocks[0]
    recipe = low_rank_factorization.apply(tokens(model=lambda: model), {"start": 0.0})
    made = start(recipe, 0).model
    assert isinstance(made.blocks[0].attention.qkv, nn.Sequential)
    assert made.blocks[1].attention.qkv is made.blocks[0].attention.qkv


def test_after_the_warm_up_the_rank_falls_and_what_stays_goes_on() -> None:
    sizes, optimizers = [], []

    def look(training) -> None:
        sizes.append(sum(weight.numel() for weight in training.model.parameters()))
        bias = training.model.blocks[0].linear
        bias = bias[1].bias if isinstance(bias, nn.Sequential) else bias.bias
        optimizers.append(int(training.optimizer.state[bias]["step"]))

    run(low_rank_factorization.apply(vectors(), {"start": 0.5}), 10, look=look)
    full, thin = sizes[0], sizes[-1]
    assert sizes == [full] * 5 + [thin] * 5
    assert full - thin == 8 * 8 - 2 * (8 + 8)  # one hidden layer of 8 x 8 at rank 2
    assert optimizers == list(range(1, 11))  # the bias keeps its moments


def test_it_starts_thin_where_it_is_told_to_and_draws_no_random_number() -> None:
    thin = start(low_rank_factorization.apply(tokens(), {"start": 0.0}), 0).model
    plain = start(tokens(), 0).model
    assert torch.equal(thin.embed.tokens.weight, plain.embed.tokens.weight)
    before = torch.get_rng_state()
    factorized(nn.Linear(4, 4, device="meta").to_empty(device="cpu"), 1)
    assert torch.equal(torch.get_rng_state(), before)


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="fewer weights"):
        low_rank_factorization.apply(vectors(model=lambda: nn.Linear(6, 4)), {})
    for options in ({"rank": 0.0}, {"rank": 1.5}, {"start": 1.0}, {"start": -0.1}):
        option, value = next(iter(options.items()))
        with pytest.raises(InvalidTechnique, match=f"{option} is {value}"):
            low_rank_factorization.apply(vectors(), options)
