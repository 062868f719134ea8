import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from effbench.distributed.sharing import share
from effbench.errors import InvalidTechnique, NotApplicable
from effbench.models import residuals
from effbench.train import start
from effbench_techniques.model_centric.curriculum.stochastic_depth import scaled, stochastic_depth, thinned
from toy import begun, first_batch, images, random_numbers, run, same, state, tokens, vectors


def test_the_expectation_of_a_branch_is_its_output() -> None:
    branch = next(iter(residuals(tokens().model()).values()))
    x, rate = random_numbers(3, 5, 8), 0.3
    kept, dropped = scaled(branch, 1 / (1 - rate))(x), branch.shortcut(x)
    torch.testing.assert_close((1 - rate) * kept + rate * dropped, branch(x))


def test_each_example_drops_its_own_branches_and_a_second_pass_drops_the_same() -> None:
    branch = next(iter(residuals(tokens().model()).values()))
    x, rate = random_numbers(1, 5, 8).expand(4000, 5, 8), 0.3
    with torch.no_grad():
        out = thinned(branch, rate, seed=5)(x)
        assert torch.equal(out, thinned(branch, rate, seed=5)(x))
        dropped = (out == branch.shortcut(x)).flatten(1).all(1)
        kept = scaled(branch, 1 / (1 - rate))(x[:1])
        torch.testing.assert_close(out[~dropped], kept.expand(int((~dropped).sum()), 5, 8))
    assert float(dropped.float().mean()) == pytest.approx(rate, abs=0.03)
    assert not torch.equal(out, thinned(branch, rate, seed=6)(x))


def counts_of_drops(options, draws: int = 600) -> list[float]:
    """How often each branch was dropped."""
    recipe = stochastic_depth.apply(tokens(gradient=lambda training, batch: seen(training)), options)
    training = begun(recipe)
    names = list(residuals(training.model))
    dropped = dict.fromkeys(names, 0)

    def seen(training):
        for name, branch in residuals(training.model).items():
            dropped[name] += branch.forward == branch.shortcut
        return torch.zeros(1)

    batch = first_batch(recipe, training)
    for _ in range(draws):
        recipe.gradient(training, batch)
    return [count / draws for count in dropped.values()]


def test_the_probability_rises_linearly_with_depth_or_is_the_same_everywhere() -> None:
    assert counts_of_drops({"rate": 0.4}) == pytest.approx([0.1, 0.2, 0.3, 0.4], abs=0.06)
    assert counts_of_drops({"rate": 0.4, "linear": False}) == pytest.approx([0.4] * 4, abs=0.06)


def flop(options, steps: int = 10) -> float:
    recipe = stochastic_depth.apply(tokens(), options) if options else tokens()
    training = begun(recipe)
    batch = share(first_batch(recipe, training), training)
    with FlopCounterMode(display=False) as counter:
        for _ in range(steps):
            recipe.gradient(training, batch)
    return float(counter.get_total_flops())


def test_whole_branches_save_compute_and_single_examples_do_not() -> None:
    whole = flop(None)
    assert flop({"rate": 0.9, "linear": False}) < 0.6 * whole
    assert flop({"rate": 0.9, "linear": False, "mode": "sample"}) == whole


def test_a_dropped_branch_gets_no_gradient_and_its_weights_stay() -> None:
    recipe = stochastic_depth.apply(tokens(), {"rate": 0.999999, "linear": False})
    before = state(start(recipe, 0).model)
    after = state(run(recipe).model)
    unchanged = {name for name in before if torch.equal(before[name], after[name])}
    assert unchanged == {name for name in before if name.startswith("blocks.")}


@pytest.mark.parametrize("mode", ["block", "sample"])
def test_outside_the_gradient_the_model_is_whole(mode: str) -> None:
    training = run(stochastic_depth.apply(images(), {"rate": 0.9, "mode": mode}))
    twin = images().model()
    twin.load_state_dict(training.model.state_dict())
    inputs = training.recipe.dataset.inputs[:4]
    assert torch.equal(training.recipe.eval_model(training).eval()(inputs), twin.eval()(inputs))
    assert not any("forward" in vars(module) for module in training.model.modules())


def test_a_rate_of_zero_is_the_baseline_and_the_default_is_not() -> None:
    assert same(run(stochastic_depth.apply(tokens(), {"rate": 0.0})).model, run(tokens()).model)
    assert not same(run(stochastic_depth.apply(tokens(), {})).model, run(tokens()).model)


def test_only_whole_branches_leave_parameters_unused() -> None:
    assert "unused_parameters" in stochastic_depth.apply(tokens(), {}).traits
    assert "unused_parameters" not in stochastic_depth.apply(tokens(), {"mode": "sample"}).traits
    assert "text" in stochastic_depth.apply(tokens(), {}).traits


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="this model has none"):
        stochastic_depth.apply(vectors(), {})
    with pytest.raises(InvalidTechnique, match="mode is 'token'"):
        stochastic_depth.apply(tokens(), {"mode": "token"})
    for rate in (-0.1, 1.0):
        with pytest.raises(InvalidTechnique, match=f"rate is {rate}"):
            stochastic_depth.apply(tokens(), {"rate": rate})
