import pytest
import torch
from torch import nn

from effbench.errors import InvalidTechnique, NotApplicable
from effbench_techniques.model_centric.compression.lora import Corrected, lora
from toy import begun, images, random_numbers, run, same, state, tokens, vectors


def corrected(rank: int = 3) -> Corrected:
    return Corrected(nn.Linear(12, 20), rank, torch.Generator().manual_seed(0))


def test_it_begins_as_the_model_was_bit_by_bit() -> None:
    recipe = lora.apply(tokens(), {"start": 0.0, "restarts": 0})
    training = begun(recipe)
    ids = recipe.dataset.inputs[:4]
    before = training.model(ids)
    recipe.milestones[0].action(training)
    assert torch.equal(training.model(ids), before)
    assert sum(isinstance(module, Corrected) for module in training.model.modules()) == 8


def test_merging_does_not_change_what_is_computed() -> None:
    layer, x = corrected(), random_numbers(5, 12)
    nn.init.normal_(layer.up.weight)
    before, weight = layer(x), layer.weight
    torch.testing.assert_close(x @ weight.T + layer.layer.bias, before, rtol=0, atol=1e-5)
    layer.merge()
    layer.begin(torch.Generator().manual_seed(1))
    torch.testing.assert_close(layer(x), before, rtol=0, atol=1e-5)
    assert torch.linalg.matrix_rank(layer.layer.weight - (layer.layer.weight - weight)) == 12


def test_the_matrix_is_frozen_and_the_corrections_the_biases_and_all_else_learn() -> None:
    states: list[dict[str, torch.Tensor]] = []
    run(lora.apply(tokens(), {"start": 0.5, "restarts": 0}), 8, look=lambda t: states.append(state(t.model)))
    first, last = states[4], states[7]
    for name, tensor in first.items():
        assert torch.equal(tensor, last[name]) == name.endswith(".layer.weight"), name
    dense, thin = (sum(tensor.numel() for tensor in each.values()) for each in (states[0], first))
    assert thin - dense == 2 * (8 * (8 + 24) + 8 * (8 + 8) + 2 * 8 * (8 + 32))  # rank 8 in two blocks


def test_optimizer_state_is_that_of_what_learns() -> None:
    training = run(lora.apply(tokens(), {"rank": 2, "start": 0.5, "restarts": 1}), 8)
    layer = training.model.blocks[0].attention.qkv
    states = training.optimizer.state
    assert layer.layer.weight not in states or layer.layer.weight.grad is None
    assert int(states[layer.up.weight]["step"]) == 2  # since the restart, at 0.75
    assert int(states[layer.layer.bias]["step"]) == 8


def test_restarts_sum_up_to_a_higher_rank() -> None:
    ranks = []
    for restarts in (0, 2):
        before: list[torch.Tensor] = []
        recipe = lora.apply(tokens(), {"rank": 1, "start": 0.0, "restarts": restarts})
        recipe = recipe.at(0.0, lambda t, kept=before: kept.append(t.model.blocks[0].attention.qkv.weight.detach()))
        training = run(recipe, 12)
        change = training.model.blocks[0].attention.qkv.weight.detach() - before[0]
        ranks.append(int((torch.linalg.svdvals(change) > 1e-6).sum()))
    assert ranks == [1, 3]


def test_it_draws_its_own_random_numbers_alone() -> None:
    before = torch.get_rng_state()
    corrected().begin(torch.Generator())
    layer = nn.Linear(12, 20, device="meta").to_empty(device="cpu")
    after = torch.get_rng_state()
    Corrected(layer, 2, torch.Generator())
    assert torch.equal(after, torch.get_rng_state())
    assert not torch.equal(before, after)  # nn.Linear's own


def test_rank_zero_is_the_baseline_and_eight_is_not() -> None:
    baseline = run(vectors(), 6)
    assert same(run(lora.apply(vectors(), {"rank": 0}), 6).model, baseline.model)
    assert run(lora.apply(vectors(), {}), 6).model.state_dict().keys() != baseline.model.state_dict().keys()


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="no linear layer"):
        lora.apply(images(), {})
    for options in ({"rank": -1}, {"start": 1.0}, {"restarts": -1}):
        with pytest.raises(InvalidTechnique, match=f"{next(iter(options))} is"):
            lora.apply(vectors(), options)
