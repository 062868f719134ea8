import pytest
import torch

from effbench.errors import NotApplicable
from effbench.models import residuals
from effbench.techniques import compose
from effbench.train import start
from effbench_techniques.model_centric.compression.low_rank_factorization import low_rank_factorization
from effbench_techniques.model_centric.initialization.zero_init_residual import zero_init_residual
from toy import images, masked_tokens, random_numbers, run, state, tokens, vectors


@pytest.mark.parametrize("toy", [images, tokens, masked_tokens])
def test_every_branch_is_its_shortcut_at_the_beginning(toy) -> None:
    branches = residuals(start(zero_init_residual.apply(toy(), {}), 0).model)
    assert branches
    for branch in branches.values():
        x = random_numbers(2, *((8, 5) if toy is not images else (branch.first.in_channels, 8, 8)))
        x = x.transpose(1, 2) if toy is not images else x
        assert torch.equal(branch(x), branch.shortcut(x))


def test_a_transformer_begins_without_its_blocks() -> None:
    training = start(zero_init_residual.apply(tokens(), {}), 0)
    model, inputs = training.model, training.recipe.dataset.inputs[:4]
    assert torch.equal(model(inputs), model.head(model.embed(inputs)))


def test_the_other_weights_are_the_baselines() -> None:
    plain, zero = state(start(images(), 0).model), state(start(zero_init_residual.apply(images(), {}), 0).model)
    changed = {name for name in plain if not torch.equal(plain[name], zero[name])}
    assert changed == {f"blocks.{block}.last.weight" for block in range(3)}


def test_all_weights_learn() -> None:
    begun = start(zero_init_residual.apply(tokens(), {}), 0)
    before = state(begun.model)
    after = state(run(zero_init_residual.apply(tokens(), {}), 6).model)
    assert not [name for name in before if torch.equal(before[name], after[name])]


def test_of_two_factors_only_the_last_is_zero() -> None:
    known = {technique.name: technique for technique in (zero_init_residual, low_rank_factorization)}
    both, order = compose(tokens(), {"zero_init_residual": {}, "low_rank_factorization": {"start": 0.0}}, known)
    assert order == ["low_rank_factorization", "zero_init_residual"]
    last = next(iter(residuals(start(both, 0).model).values())).last
    assert last[0].weight.abs().max() > 0
    assert last[1].weight.abs().max() == 0
    trained = next(iter(residuals(run(both, 6).model).values())).last
    assert trained[1].weight.abs().max() > 0


def test_it_refuses_a_model_without_branches() -> None:
    with pytest.raises(NotApplicable, match="this model has none"):
        zero_init_residual.apply(vectors(), {})
