import copy

import pytest
import torch

from effbench.errors import Conflict, InvalidTechnique
from effbench.surgery import operate
from effbench.techniques import compose
from effbench_techniques.optimization_centric.averaged_weights.ema import ema
from effbench_techniques.optimization_centric.averaged_weights.swa import swa
from effbench_techniques.optimization_centric.learning_rate.wsd import wsd
from schedule import factors, progresses
from toy import begun, flat, images, run, same, tokens, vectors


def test_what_is_evaluated_is_the_mean_of_all_weights_since_the_start() -> None:
    seen = []
    training = run(swa.apply(vectors(), {"start": 0.5}), 20, look=lambda t: seen.append(flat(t.model)))
    expected = torch.stack(seen[10:]).mean(0)  # the weights after the steps that begin at 0.5 or later
    torch.testing.assert_close(flat(training.recipe.eval_model(training)), expected, rtol=0, atol=1e-6)
    assert float((flat(training.model) - expected).abs().max()) > 1e-4
    assert training.kept["swa"]["count"] == 10
    assert training.ledger.wall["extra"] > 0.0


def test_the_mean_of_one_is_the_model() -> None:
    training = run(swa.apply(vectors(), {"start": 0.94}), 20)
    assert training.kept["swa"]["count"] == 1
    assert same(training.recipe.eval_model(training), training.model)
    assert training.recipe.eval_model(training) is not training.model
    before = begun(swa.apply(vectors(), {}))
    assert before.recipe.eval_model(before) is before.model


def test_from_the_start_on_the_rate_stays_up() -> None:
    found = factors(swa.apply(vectors(), {"start": 0.5, "floor": 0.3}), 20)
    plain = vectors().lr_schedule
    expected = [plain(p) if p <= 0.5 else max(0.3, plain(p)) for p in progresses(20)]
    assert found == pytest.approx(expected, abs=1e-12)
    assert found[-1] == pytest.approx(0.3)


def test_it_keeps_up_the_rate_of_a_schedule_of_another_technique() -> None:
    recipe, order = compose(vectors(), {"swa": {"floor": 0.3}, "wsd": {}}, {"swa": swa, "wsd": wsd})
    assert order == ["wsd", "swa"]
    assert recipe.lr_schedule(0.5) == 1.0
    assert recipe.lr_schedule(1.0) == 0.3


@pytest.mark.parametrize("make", [images, tokens])
def test_looking_changes_nothing(make) -> None:
    def look(training) -> None:
        random = torch.get_rng_state()
        assert same(training.recipe.eval_model(training), training.recipe.eval_model(training))
        assert torch.equal(random, torch.get_rng_state())

    recipe = swa.apply(make(), {"start": 0.3})
    assert same(run(recipe, 6, look=look).model, run(recipe, 6).model)


def test_batchnorm_statistics_are_those_of_the_mean() -> None:
    training = run(swa.apply(images(), {"start": 0.2, "floor": 1.0}), 30)
    evaluated = training.recipe.eval_model(training)
    norm, entering = evaluated.blocks[0].first_norm, []
    norm.register_forward_hook(lambda module, arguments, output: entering.append(arguments[0]))
    evaluated.eval()(training.recipe.dataset.inputs)  # 4 batches are all examples
    expected = entering[0].detach().mean((0, 2, 3))
    torch.testing.assert_close(norm.running_mean, expected, rtol=0, atol=1e-4)
    assert float((training.model.blocks[0].first_norm.running_mean - expected).abs().max()) > 1e-3


def test_the_mean_starts_anew_when_the_model_grows() -> None:
    def grow(training) -> None:
        operate(training, lambda model: model.blocks.append(copy.deepcopy(model.blocks[0])) and None)

    training = run(swa.apply(tokens().at(0.8, grow), {"start": 0.5}), 10)
    assert training.kept["swa"]["count"] == 2
    assert len(training.recipe.eval_model(training).blocks) == 3


def test_it_is_the_baseline_where_it_is_off_and_excludes_another_average() -> None:
    assert same(run(swa.apply(vectors(), {"start": 1.0}), 5).model, run(vectors(), 5).model)
    with pytest.raises(Conflict, match="which average"):
        compose(vectors(), {"ema": {}, "swa": {}}, {"ema": ema, "swa": swa})


@pytest.mark.parametrize("options", [{"start": -0.1}, {"start": 1.1}, {"floor": 1.1}, {"floor": -0.1}])
def test_wrong_options_are_refused(options) -> None:
    with pytest.raises(InvalidTechnique, match=next(iter(options))):
        swa.apply(vectors(), options)
