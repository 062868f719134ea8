import copy

import pytest
import torch
from torch import nn

from effbench.errors import Conflict, InvalidTechnique
from effbench.surgery import operate
from effbench.techniques import compose
from effbench_techniques.optimization_centric.averaged_weights.ema import ema
from effbench_techniques.optimization_centric.learning_rate.schedule_free import schedule_free
from toy import CLASSES, begun, flat, images, recipe, run, same, state, tokens, vectors


@pytest.mark.parametrize("make", [vectors, images, tokens])
def test_training_goes_on_as_if_it_were_not_there(make) -> None:
    steps = 5
    weights = []
    baseline = run(make(), steps, look=lambda training: weights.append(state(training.model)))

    def look(training) -> None:
        before, random = state(training.model), torch.get_rng_state()
        evaluated = training.recipe.eval_model(training)
        evaluated.eval()
        evaluated(training.recipe.dataset.inputs)
        assert evaluated is not training.model
        assert torch.equal(random, torch.get_rng_state())
        for name, tensor in training.model.state_dict().items():
            assert torch.equal(tensor, before[name])
            assert torch.equal(tensor, weights[training.step - 1][name])

    training = run(ema.apply(make(), {}), steps, look=look)
    assert same(training.model, baseline.model)


def test_the_average_is_the_weighted_sum_of_all_weights() -> None:
    seen = []
    training = run(ema.apply(vectors(), {"half_life": 0.2}), 10, look=lambda t: seen.append(flat(t.model)))
    decay = 0.5 ** (0.1 / 0.2)  # a step takes a tenth of the budget
    expected = seen[0]
    for weights in seen[1:]:
        expected = decay * expected + (1 - decay) * weights
    torch.testing.assert_close(flat(training.recipe.eval_model(training)), expected, rtol=0, atol=1e-6)
    assert training.ledger.wall["extra"] > 0.0


def test_one_half_life_suits_every_budget() -> None:
    shares = []
    for steps in (20, 80):
        training = run(ema.apply(vectors(lr_schedule=lambda progress: 0.0), {"half_life": 0.25}), steps)
        training.kept["ema"]["tensors"]["head.weight"].zero_()  # what is remembered of this at the end?
        again = training.kept["ema"]["progress"]
        training.progress = again + 0.25
        training.recipe.update(training)
        average, present = training.recipe.eval_model(training).head.weight, training.model.head.weight
        shares.append(float((average / present).detach().mean()))
    assert shares == pytest.approx([0.5, 0.5], abs=1e-5)


def test_without_memory_it_is_the_present_weights_bit_by_bit() -> None:
    for make in (vectors, images):
        training = run(ema.apply(make(), {"half_life": 1e-9}), 4)
        assert same(training.recipe.eval_model(training), training.model)
        assert training.recipe.eval_model(training) is not training.model
        neutral = run(ema.apply(make(), {"half_life": 0.0}), 4)
        assert neutral.recipe.eval_model(neutral) is neutral.model
        assert not neutral.kept


def test_before_the_first_step_the_weights_are_evaluated() -> None:
    training = begun(ema.apply(vectors(), {}))
    assert same(training.recipe.eval_model(training), begun(vectors()).model)


def normed():
    """Two classes of vectors around 5, spread 3, told apart by their first number; a network with BatchNorm."""
    inputs = 5.0 + 3.0 * torch.randn(256, 6, generator=torch.Generator().manual_seed(0))
    targets = (inputs[:, 0] > 5.0).long()

    def model() -> nn.Module:
        return nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, CLASSES))

    return recipe(inputs, targets, model=model, classes=CLASSES)


def test_batchnorm_statistics_are_averaged_and_counters_copied() -> None:
    training = run(ema.apply(normed(), {"half_life": 0.1}), 200)
    evaluated = training.recipe.eval_model(training)
    norm = evaluated[0]
    assert norm.running_mean.tolist() == pytest.approx([5.0] * 6, rel=0.1)
    assert norm.running_var.tolist() == pytest.approx([9.0] * 6, rel=0.25)
    assert not torch.equal(norm.running_mean, training.model[0].running_mean)
    assert norm.num_batches_tracked == training.model[0].num_batches_tracked == 200

    def accuracy(model) -> float:
        model = copy.deepcopy(model).eval()
        dataset = training.recipe.dataset
        return float((model(dataset.inputs).argmax(1) == dataset.targets).float().mean())

    assert accuracy(training.model) > 0.9
    assert accuracy(evaluated) == pytest.approx(accuracy(training.model), abs=0.02)


def test_the_average_starts_anew_when_the_model_grows() -> None:
    def grow(training) -> None:
        def edit(model) -> None:
            model.blocks.append(copy.deepcopy(model.blocks[0]))

        operate(training, edit)

    def look(training) -> None:
        evaluated = training.recipe.eval_model(training)
        assert len(evaluated.blocks) == len(training.model.blocks)

    training = run(ema.apply(tokens().at(0.5, grow), {"half_life": 0.5}), 10, look=look)
    assert len(training.model.blocks) == 3
    first = run(ema.apply(tokens().at(0.85, grow), {"half_life": 0.5}), 10)  # grows before the last step
    assert same(first.recipe.eval_model(first), first.model)


def test_it_excludes_another_average() -> None:
    known = {"ema": ema, "schedule_free": schedule_free}
    with pytest.raises(Conflict, match="which average"):
        compose(vectors(), {"ema": {}, "schedule_free": {}}, known)


@pytest.mark.parametrize("half_life", [-0.1, 1.1, float("nan")])
def test_wrong_options_are_refused(half_life: float) -> None:
    with pytest.raises(InvalidTechnique, match="half_life is"):
        ema.apply(vectors(), {"half_life": half_life})
