import copy

import pytest
import torch
from torch import nn

from effbench.errors import Conflict, InvalidTechnique
from effbench.surgery import operate
from effbench.techniques import compose
from effbench_techniques.optimization_centric.learning_rate.lion import lion
from effbench_techniques.optimization_centric.learning_rate.muon import muon
from effbench_techniques.optimization_centric.learning_rate.schedule_free import schedule_free
from own_optimizer import keeps_the_groups
from toy import CLASSES, begun, flat, images, recipe, run, same, state, tokens, vectors


def test_what_is_evaluated_is_the_weighted_mean_of_z_and_training_holds_a_point_between() -> None:
    z, weights = [], []

    def look(training) -> None:
        group = training.optimizer.param_groups[0]
        z.append(torch.cat([training.optimizer.state[p]["z"].flatten().double() for p in training.model.parameters()]))
        weights.append(group["lr_max"] ** 2)
        mean = sum(w * each for w, each in zip(weights, z, strict=True)) / sum(weights)
        x = flat(training.recipe.eval_model(training))
        torch.testing.assert_close(x, mean, rtol=0, atol=1e-6)
        torch.testing.assert_close(flat(training.model), 0.8 * x + 0.2 * z[-1], rtol=0, atol=1e-6)

    run(schedule_free.apply(vectors(), {"momentum": 0.8, "warmup": 0.3}), 12, look=look)
    assert len(set(weights)) > 3  # the rate rises first


def test_the_rate_rises_and_stays() -> None:
    rates = []
    run(
        schedule_free.apply(vectors(), {"lr": 0.01, "warmup": 0.5}),
        10,
        look=lambda training: rates.append(training.optimizer.param_groups[0]["lr"]),
    )
    assert rates[:5] == sorted(rates[:5])
    assert 0.0 < rates[0] < 0.01
    assert rates[5:] == [0.01] * 5
    assert schedule_free.apply(vectors(), {"warmup": 0.0}).lr_schedule(0.0) == 1.0


@pytest.mark.parametrize("make", [vectors, images, tokens])
def test_looking_at_any_time_leaves_training_as_it_was_bit_by_bit(make) -> None:
    def look(training) -> None:
        before, random = state(training.model), torch.get_rng_state()
        generators = [training.rng.get_state(), training.order.get_state()]
        evaluated = training.recipe.eval_model(training)
        again = training.recipe.eval_model(training)
        assert same(evaluated, again)
        assert all(torch.equal(before[name], tensor) for name, tensor in training.model.state_dict().items())
        assert torch.equal(random, torch.get_rng_state())
        assert torch.equal(generators[0], training.rng.get_state())
        assert torch.equal(generators[1], training.order.get_state())

    watched = run(schedule_free.apply(make(), {}), 5, look=look)
    assert same(watched.model, run(schedule_free.apply(make(), {}), 5).model)
    assert not same(watched.model, watched.recipe.eval_model(watched))


def test_before_the_first_step_the_initial_weights_are_evaluated() -> None:
    training = begun(schedule_free.apply(vectors(), {}))
    assert same(training.recipe.eval_model(training), begun(vectors()).model)


def normed():
    """Vectors around 5, spread 3; a network with BatchNorm behind a layer whose weights move, and dropout."""
    inputs = 5.0 + 3.0 * torch.randn(256, 6, generator=torch.Generator().manual_seed(0))
    targets = (inputs[:, 0] > 5.0).long()

    def model() -> nn.Module:
        return nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Dropout(0.2), nn.Linear(5, CLASSES))

    return recipe(inputs, targets, model=model, classes=CLASSES, batch_size=lambda progress: 32)


def test_batchnorm_statistics_are_those_of_the_weights_that_are_evaluated() -> None:
    averaged = schedule_free.apply(normed(), {"lr": 0.05})
    watched = run(averaged, 20, look=averaged.eval_model)
    assert same(watched.model, run(averaged, 20).model)  # dropout was not disturbed
    evaluated = watched.recipe.eval_model(watched)
    before_norm = evaluated[0](watched.recipe.dataset.inputs).detach()
    spread = before_norm.std(0)
    error = (evaluated[1].running_mean - before_norm.mean(0)).abs() / spread
    stale = (watched.model[1].running_mean - before_norm.mean(0)).abs() / spread
    assert error.max() < 1e-4  # 8 batches are all examples
    assert stale.max() > 0.02


def test_the_average_goes_on_when_the_model_grows() -> None:
    counts = []

    def grow(training) -> None:
        operate(training, lambda model: model.blocks.append(copy.deepcopy(model.blocks[0])) and None)
        born.extend(weight.detach().clone() for weight in training.model.blocks[-1].parameters())

    def look(training) -> None:
        group = training.optimizer.param_groups[0]
        counts.append((group["k"], group["weight_sum"], len(training.recipe.eval_model(training).blocks)))
        if training.step == 21:
            states = [training.optimizer.state[weight] for weight in training.model.blocks[-1].parameters()]
            first_steps.append(max(float((s["z"] - w).abs().max()) for s, w in zip(states, born, strict=True)))

    born, first_steps = [], []
    training = run(schedule_free.apply(tokens().at(0.5, grow), {"lr": 1e-3, "warmup": 0.0}), 40, look=look)
    assert [count for count, _, _ in counts] == list(range(1, 41))
    assert [weight for _, weight, _ in counts] == pytest.approx([1e-6 * k for k in range(1, 41)])
    assert [blocks for _, _, blocks in counts] == [2] * 20 + [3] * 20
    assert first_steps[0] == pytest.approx(1e-3, rel=0.5)  # as Adam's first step, by the rate; decay comes on top
    assert torch.isfinite(flat(training.recipe.eval_model(training))).all()


def test_groups_and_strength_of_decay_are_the_baselines() -> None:
    keeps_the_groups(schedule_free)


@pytest.mark.parametrize("other", [lion, muon])
def test_it_excludes_other_optimizers(other) -> None:
    known = {"schedule_free": schedule_free, other.name: other}
    with pytest.raises(Conflict, match=f"schedule_free replaces the optimizer that {other.name} changed"):
        compose(tokens(), {"schedule_free": {}, other.name: {}}, known)


@pytest.mark.parametrize("options", [{"lr": 0.0}, {"momentum": 0.0}, {"momentum": 1.0}, {"warmup": 1.0}])
def test_wrong_options_are_refused(options) -> None:
    with pytest.raises(InvalidTechnique, match=next(iter(options))):
        schedule_free.apply(vectors(), options)
