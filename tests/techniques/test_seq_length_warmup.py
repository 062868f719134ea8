import pytest
import torch

from effbench.clock import TokenClock
from effbench.errors import InvalidTechnique, NotApplicable
from effbench.terms import valid_targets
from effbench_techniques.data_centric.curriculum.seq_length_warmup import seq_length_warmup
from toy import begun, first_batch, masked_tokens, run, same, spend, texts, tokens, vectors


def lengths(options=None, full: int = 16, steps: int = 100) -> list[int]:
    recipe = seq_length_warmup.apply(tokens(full), options or {})
    training = begun(recipe)
    found = []
    for step in range(steps):
        training.progress = step / steps
        found.append(first_batch(recipe, training).inputs.shape[1])
    return found


def test_sequences_grow_in_few_equal_steps_to_full_length() -> None:
    assert lengths() == [4] * 10 + [8] * 10 + [12] * 10 + [16] * 70
    assert lengths({"stages": 2, "duration": 0.5, "initial_scale": 0.5}) == [8] * 50 + [16] * 50


def test_inputs_targets_and_weights_are_cut_alike() -> None:
    recipe = seq_length_warmup.apply(tokens(), {"initial_scale": 0.75, "stages": 2})
    training = begun(recipe)
    clean, short = first_batch(tokens(), training), first_batch(recipe, training)
    assert torch.equal(short.inputs, clean.inputs[:, :12])
    assert torch.equal(short.targets, clean.targets[:, :12])
    assert torch.equal(short.weight, valid_targets(short.targets))
    assert short.weight.tolist() == [8.0, 12.0] * 4  # of 8 and 16
    assert torch.equal(short.index, clean.index)


def test_importance_stays_and_texts_without_targets_weigh_nothing() -> None:
    heavy = tokens(transform=lambda batch, training: batch.replace(weight=batch.weight * 3.0))
    recipe = seq_length_warmup.apply(heavy, {})
    assert first_batch(recipe, begun(recipe)).weight.tolist() == [12.0] * 8

    recipe = seq_length_warmup.apply(masked_tokens(), {"initial_scale": 0.07})
    batch = first_batch(recipe, begun(recipe))
    assert batch.inputs.shape[1] == 1
    assert batch.weight.tolist() == (batch.targets[:, 0] >= 0).float().tolist()
    assert 0.0 in batch.weight


def test_tokens_are_counted_at_the_length_trained_on() -> None:
    training = run(seq_length_warmup.apply(tokens(), {}), 10)
    assert training.tokens == 8 * (4 + 8 + 12 + 7 * 16)
    training = spend(seq_length_warmup.apply(tokens(), {"duration": 0.5}), "1280 tokens", TokenClock())
    assert training.step > 10  # whole sequences make 10 steps
    assert 1280 <= training.tokens < 1280 + 8 * 16


def test_full_length_is_the_baseline_and_a_quarter_is_not() -> None:
    baseline = run(tokens())
    assert same(run(seq_length_warmup.apply(tokens(), {"initial_scale": 1.0})).model, baseline.model)
    assert not same(run(seq_length_warmup.apply(tokens(), {})).model, baseline.model)


@pytest.mark.parametrize("make", [vectors, texts])
def test_it_says_why_it_does_not_apply(make) -> None:
    with pytest.raises(NotApplicable, match="target for each token"):
        seq_length_warmup.apply(make(), {})


@pytest.mark.parametrize("options", [{"initial_scale": 0.0}, {"duration": 0.0}, {"duration": 1.0}, {"stages": 1}])
def test_wrong_options_are_refused(options) -> None:
    with pytest.raises(InvalidTechnique, match=next(iter(options))):
        seq_length_warmup.apply(tokens(), options)
