import math

import pytest
import torch

from effbench.errors import InvalidTechnique, NotApplicable
from effbench.optimizers import adamw
from effbench.techniques import compose
from effbench_techniques.optimization_centric.averaged_weights.ema import ema
from effbench_techniques.optimization_centric.learning_rate.lr_range_test import (
    lr_range_test,
    put_back,
    steepest,
    sweep,
)
from effbench_techniques.optimization_centric.learning_rate.muon import muon
from toy import begun, images, masked_tokens, run, same, state, tokens, vectors

KNOWN = {each.name: each for each in (ema, lr_range_test, muon)}


@pytest.mark.parametrize("make", [vectors, images, tokens, masked_tokens])
def test_after_the_sweep_everything_is_as_before_bit_by_bit(make) -> None:
    others = {"ema": {}, "muon": {}} if make is tokens else {"ema": {}}
    training = begun(compose(make(), others, KNOWN)[0])
    weights, random = state(training.model), torch.get_rng_state()
    generators = [training.rng.get_state(), training.order.get_state()]
    groups = [{k: v for k, v in group.items() if k != "params"} for group in training.optimizer.param_groups]
    with put_back(training):
        sweep(training, [1.0] * 5)
        assert any(not torch.equal(tensor, weights[name]) for name, tensor in training.model.state_dict().items())
        assert training.optimizer.state
        assert training.kept
    assert all(torch.equal(tensor, weights[name]) for name, tensor in training.model.state_dict().items())
    assert not training.optimizer.state
    assert not training.kept
    assert [{k: v for k, v in g.items() if k != "params"} for g in training.optimizer.param_groups] == groups
    assert torch.equal(random, torch.get_rng_state())
    assert torch.equal(generators[0], training.rng.get_state())
    assert torch.equal(generators[1], training.order.get_state())
    assert all(weight.grad is None for weight in training.model.parameters())


def test_the_run_after_it_is_the_baselines_at_the_rate_that_was_found() -> None:
    training = run(lr_range_test.apply(images(), {"steps": 30}), 8)
    factor = training.kept["lr_range_test"]["factor"]
    assert 0.01 < factor < 100.0

    def scaled(model):
        made = images().optimizer(model)
        for group in made.param_groups:
            group["lr"] *= factor
        return made

    assert same(training.model, run(images(optimizer=scaled), 8).model)
    assert training.ledger.wall["extra"] > 0.0


def test_it_finds_about_the_same_rate_from_wherever_it_begins() -> None:
    found = []
    for rate in (1e-4, 1e-2):
        training = run(lr_range_test.apply(vectors(optimizer=adamw(rate, 0.0)), {"high": 1e4, "low": 1e-3}), 1)
        found.append(training.optimizer.param_groups[0]["initial_lr"])
        losses = training.kept["lr_range_test"]["losses"]
        assert len(losses) <= 60
    assert min(found) > 1e-3
    assert max(found) < 1.0
    assert max(found) / min(found) < 5.0


def test_the_steepest_fall_is_that_of_the_curve() -> None:
    curve = [1.0 - 1.0 / (1.0 + math.exp(-(step - 12.0))) for step in range(30)]
    assert steepest(curve) == 12
    assert steepest([5.0, 1.0, 0.9, 0.88, 0.8, 0.6, 0.59]) == 4  # the first losses are those of single batches
    for flat in ([1.0] * 20, [1.0, 2.0]):
        with pytest.raises(NotApplicable, match="does not fall"):
            steepest(flat)


def test_the_sweep_ends_where_the_loss_diverges() -> None:
    training = begun(vectors())
    with put_back(training):
        losses = sweep(training, [1e-3] * 10 + [1e6] * 20)
    assert 10 <= len(losses) < 25
    assert all(math.isfinite(loss) for loss in losses)


def test_the_sweep_takes_the_mean_of_the_losses_that_it_has_seen_until_it_is_four_times_its_lowest() -> None:
    """Each loss counts 0.9 times as much as the one after it: written out, where the technique goes step by step."""
    told = [1.0, 0.5, 2.0, 0.25, 1.0, 30.0, 30.0, 30.0]
    rates = []

    def gradient(training, batch):
        rates.append(training.optimizer.param_groups[0]["lr"] / training.optimizer.param_groups[0]["initial_lr"])
        vectors().gradient(training, batch)
        return torch.full((len(batch),), told[len(rates) - 1])

    factors = [10.0**step for step in range(-4, 4)]
    training = begun(vectors(gradient=gradient))
    with put_back(training):
        found = sweep(training, factors)
    weights = [[0.9 ** (last - step) for step in range(last + 1)] for last in range(len(told))]
    expected = [sum(w * loss for w, loss in zip(ws, told, strict=False)) / sum(ws) for ws in weights]
    assert expected[4] < 4.0 * min(expected) < expected[5]
    assert found == pytest.approx(expected[:5])
    assert rates == pytest.approx(factors[:6])


def test_rates_rise_exponentially_from_the_lowest_to_the_highest() -> None:
    rates = []

    def gradient(training, batch):
        rates.append(training.optimizer.param_groups[0]["lr"] / 3e-3)
        vectors().gradient(training, batch)
        return torch.full((len(batch),), 1.0 - 0.01 * len(rates))  # which falls at any rate

    run(lr_range_test.apply(vectors(gradient=gradient), {"steps": 11, "low": 1e-3, "high": 10.0}), 1)
    assert rates[:11] == pytest.approx([10.0 ** (-3.0 + 0.4 * step) for step in range(11)])


@pytest.mark.parametrize("options", [{"steps": 5}, {"low": 0.0}, {"high": 0.001}])
def test_wrong_options_are_refused(options) -> None:
    with pytest.raises(InvalidTechnique, match=next(iter(options))):
        lr_range_test.apply(vectors(), options)
