import math

import pytest
import torch

from effbench.distributed.data_parallel import UNUSED_PARAMETERS
from effbench.distributed.sharing import share
from effbench.errors import Conflict, InvalidTechnique, NotApplicable
from effbench.models import gpt, residuals
from effbench.techniques import compose
from effbench_techniques.model_centric.curriculum.progressive_layer_dropping import (
    dropping_rates,
    progressive_layer_dropping,
)
from effbench_techniques.model_centric.curriculum.stochastic_depth import stochastic_depth
from toy import VOCABULARY, begun, first_batch, images, run, same, tokens, vectors


def deep():
    return tokens(model=lambda: gpt(VOCABULARY, length=16, width=8, depth=4, heads=2))


def branches_run(progress: float, options, steps: int) -> float:
    """Mean number of the 8 branches that are computed in a step."""
    recipe = progressive_layer_dropping.apply(deep(), options)
    training = begun(recipe, progress=progress)
    ran = []
    for branch in residuals(training.model).values():
        branch.last.register_forward_hook(lambda *_: ran.append(1))
    batch = share(first_batch(recipe, training, 2), training)
    for _ in range(steps):
        recipe.gradient(training, batch)
    return len(ran) / steps


def test_rates_are_those_of_the_paper() -> None:
    for t in (0.0, 0.01, 0.1, 1.0):
        theta = (1 - 0.5) * math.exp(-100 * t) + 0.5
        expected = [1 - (1 - i / 4 * (1 - theta)) for i in range(1, 5)]
        assert dropping_rates(t, 4, 0.5, 100.0) == pytest.approx(expected)
    assert dropping_rates(0.0, 4, 0.5, 100.0) == [0.0] * 4


@pytest.mark.parametrize(("progress", "theta"), [(0.0, 0.5), (0.01, 0.5), (0.5, 0.5), (0.5, 0.2)])
def test_the_expected_depth_follows_the_schedule(progress: float, theta: float) -> None:
    rates = dropping_rates(progress, 8, theta, 100.0)
    expected, variance = sum(1 - rate for rate in rates), sum(rate * (1 - rate) for rate in rates)
    found = branches_run(progress, {"theta": theta}, 150)
    assert abs(found - expected) <= 4 * math.sqrt(variance / 150) + 1e-9


def test_all_branches_are_evaluated_as_they_are() -> None:
    training = run(progressive_layer_dropping.apply(deep(), {}), 4)
    plain = deep().model()
    plain.load_state_dict(training.model.state_dict())
    ids = deep().dataset.inputs[:3]
    assert torch.equal(training.model(ids), plain(ids))


def test_the_expected_output_of_a_branch_is_that_of_the_whole() -> None:
    recipe = progressive_layer_dropping.apply(deep(), {"theta": 0.5})
    training = begun(recipe, progress=0.5)
    (*_, (_, last)) = residuals(training.model).items()
    outputs, inputs = [], []
    watched = last.norm
    watched.register_forward_pre_hook(lambda m, args: inputs.append(args[0].detach()))
    last.register_forward_hook(lambda m, args, output: outputs.append((args[0].detach(), output.detach())))
    batch = share(first_batch(recipe, training, 2), training)
    for _ in range(60):
        recipe.gradient(training, batch)
    scales = set()
    for x, y in outputs:
        whole = last.residual(x).detach()
        scales.add(round(float(((y - x) * whole).sum() / (whole * whole).sum()), 3))
    assert scales == {0.0, 2.0}  # dropped, or 1 / 0.5


def test_prices_are_taken_where_the_cost_has_fallen() -> None:
    recipe = progressive_layer_dropping.apply(deep(), {"gamma": 10.0})
    assert recipe.phases == pytest.approx([0.025, 0.1, 0.3])
    assert UNUSED_PARAMETERS in recipe.traits


def test_theta_one_is_the_baseline_and_a_half_is_not() -> None:
    baseline = run(images(), 6)
    assert same(run(progressive_layer_dropping.apply(images(), {"theta": 1.0}), 6).model, baseline.model)
    assert not same(run(progressive_layer_dropping.apply(images(), {}), 6).model, baseline.model)


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="residual branches"):
        progressive_layer_dropping.apply(vectors(), {})
    known = {each.name: each for each in (progressive_layer_dropping, stochastic_depth)}
    with pytest.raises(Conflict, match="exclude each other"):
        compose(deep(), {name: {} for name in known}, known)
    for options in ({"theta": 0.0}, {"gamma": 0.0}):
        option, value = next(iter(options.items()))
        with pytest.raises(InvalidTechnique, match=f"{option} is {value}"):
            progressive_layer_dropping.apply(deep(), options)
