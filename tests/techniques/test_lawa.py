import copy

import pytest
import torch

from effbench.errors import Conflict, InvalidTechnique
from effbench.surgery import operate
from effbench.techniques import compose
from effbench_techniques.optimization_centric.averaged_weights.lawa import lawa
from effbench_techniques.optimization_centric.averaged_weights.swa import swa
from effbench_techniques.optimization_centric.learning_rate.schedule_free import schedule_free
from toy import begun, flat, images, run, same, tokens, vectors


def test_what_is_evaluated_is_the_mean_of_the_present_and_of_the_latest_checkpoints() -> None:
    seen = []

    def look(training) -> None:
        seen.append(flat(training.model))
        done = len(seen)
        kept = [step for step in range(1, done) if (step - 1) % 4 == 0]  # after the steps 1, 5, 9, ...
        at = [*kept[-2:], done]
        expected = torch.stack([seen[step - 1] for step in at]).mean(0)
        torch.testing.assert_close(flat(training.recipe.eval_model(training)), expected, rtol=0, atol=1e-6)

    training = run(lawa.apply(vectors(), {"checkpoints": 3, "interval": 0.2}), 20, look=look)
    assert same(training.model, run(vectors(), 20).model)
    assert training.ledger.wall["extra"] > 0.0
    assert len(training.kept["lawa"]["checkpoints"]) == 3


def test_with_an_interval_of_nothing_the_window_is_the_last_steps() -> None:
    seen = []
    training = run(
        lawa.apply(vectors(), {"checkpoints": 4, "interval": 0.0}), 9, look=lambda t: seen.append(flat(t.model))
    )
    expected = torch.stack(seen[-4:]).mean(0)
    torch.testing.assert_close(flat(training.recipe.eval_model(training)), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("make", [vectors, images])
def test_one_checkpoint_is_the_model_and_training_goes_on_as_if_it_were_not_there(make) -> None:
    off = run(lawa.apply(make(), {"checkpoints": 1}), 4)
    assert off.recipe.eval_model(off) is off.model
    assert not off.kept
    on = lawa.apply(make(), {"interval": 0.1})
    assert same(run(on, 8, look=on.eval_model).model, run(make(), 8).model)
    before = begun(on)
    assert before.recipe.eval_model(before) is before.model


def test_batchnorm_statistics_are_averaged_and_counters_copied() -> None:
    means = []
    training = run(
        lawa.apply(images(), {"checkpoints": 3, "interval": 0.0}),
        6,
        look=lambda t: means.append(t.model.head.norm.running_mean.clone()),
    )
    norm = training.recipe.eval_model(training).head.norm
    torch.testing.assert_close(norm.running_mean, torch.stack(means[-3:]).mean(0), rtol=0, atol=1e-6)
    assert int(norm.num_batches_tracked) == 6


def test_the_checkpoints_start_anew_when_the_model_grows() -> None:
    def grow(training) -> None:
        operate(training, lambda model: model.blocks.append(copy.deepcopy(model.blocks[0])) and None)

    def look(training) -> None:
        assert len(training.recipe.eval_model(training).blocks) == len(training.model.blocks)

    training = run(lawa.apply(tokens().at(0.5, grow), {"interval": 0.0}), 10, look=look)
    assert len(training.kept["lawa"]["checkpoints"]) == 5


@pytest.mark.parametrize("other", [swa, schedule_free])
def test_it_excludes_another_average(other) -> None:
    with pytest.raises(Conflict, match="which average"):
        compose(vectors(), {"lawa": {}, other.name: {}}, {"lawa": lawa, other.name: other})


@pytest.mark.parametrize("options", [{"checkpoints": 0}, {"interval": -0.1}, {"interval": 1.0}])
def test_wrong_options_are_refused(options) -> None:
    with pytest.raises(InvalidTechnique, match=next(iter(options))):
        lawa.apply(vectors(), options)
