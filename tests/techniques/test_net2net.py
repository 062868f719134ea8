import pytest
import torch

from effbench.errors import InvalidTechnique, NotApplicable
from effbench.techniques import compose
from effbench_techniques.model_centric.architecture.glu_ffn import glu_ffn
from effbench_techniques.model_centric.curriculum.net2net import duplicate, inner, net2net, units
from effbench_techniques.model_centric.curriculum.progressive_stacking import progressive_stacking
from effbench_techniques.system_centric.model.activation_checkpointing import activation_checkpointing
from toy import begun, images, masked_tokens, run, same, tokens, vectors


@pytest.mark.parametrize("make", [images, tokens, masked_tokens])
def test_widening_does_not_change_what_is_computed(make) -> None:
    recipe = net2net.apply(make(), {"noise": 0.0})
    (milestone,) = recipe.milestones
    training = begun(recipe)
    for _ in range(3):  # so that weights and statistics are no longer the first ones
        recipe.gradient(training, recipe.loader(torch.arange(8), training))
        recipe.update(training)
    training.model.eval()
    inputs = recipe.dataset.inputs[:8]
    with torch.no_grad():
        before = training.model(inputs)
        milestone.action(training)
        after = training.model.eval()(inputs)
    torch.testing.assert_close(after, before, rtol=0, atol=1e-6)
    plain = make().model().state_dict()
    assert {name: tensor.shape for name, tensor in training.model.state_dict().items()} == {
        name: tensor.shape for name, tensor in plain.items()
    }


def test_the_narrow_network_has_the_first_of_the_baselines_units() -> None:
    ours, plain = begun(net2net.apply(images(), {"scale": 0.25})).model, begun(images()).model
    for narrow, wide in zip(inner(ours), inner(plain), strict=True):
        count = units(wide) // 4
        assert units(narrow) == count
        assert torch.equal(narrow.first.weight, wide.first.weight[:count])
        assert torch.equal(narrow.last.weight, wide.last.weight[:, :count])
        assert narrow.last_norm.num_features == count


def test_noise_lets_copies_part_and_equal_ones_stay_equal() -> None:
    for noise, apart in ((0.1, True), (0.0, False)):
        training = run(net2net.apply(tokens(), {"noise": noise, "full": 0.3}), 12)
        weight = training.model.blocks[0].feed_forward.first.weight
        distances = torch.cdist(weight, weight) + 9.0 * torch.eye(len(weight))
        assert bool(distances.min() > 1e-4) == apart


def test_noise_is_as_large_as_is_said() -> None:
    torch.manual_seed(0)
    branch = begun(tokens()).model.blocks[0].feed_forward
    before, std = branch.first.weight.detach().clone(), float(branch.first.weight.detach().std())
    duplicate(branch, 1000, 0.5, torch.Generator().manual_seed(0))
    added = torch.cdist(branch.first.weight[32:], before).min(1).values
    assert torch.equal(branch.first.weight[:32], before)
    assert 0.3 * std < float(added.detach().mean()) / 8**0.5 < 0.6 * std


def test_it_is_narrow_before_and_as_wide_as_usual_afterwards() -> None:
    widths: list[list[int]] = []
    training = run(
        net2net.apply(tokens(), {"full": 0.4}), 10, look=lambda t: widths.append([units(b) for b in inner(t.model)])
    )
    assert widths == [[16, 16]] * 4 + [[32, 32]] * 6
    optimized = {weight for group in training.optimizer.param_groups for weight in group["params"]}
    assert optimized == set(training.model.parameters())
    assert training.generation == 1


def test_it_goes_with_what_wraps_and_stacks_blocks() -> None:
    known = {each.name: each for each in (net2net, activation_checkpointing, progressive_stacking)}
    recipe, _ = compose(tokens(), {name: {} for name in known}, known)
    training = run(recipe, 8)
    assert [units(branch) for branch in inner(training.model)] == [32, 32]


def test_scale_one_is_the_baseline_and_a_half_is_not() -> None:
    baseline = run(images(), 6)
    assert same(run(net2net.apply(images(), {"scale": 1.0}), 6).model, baseline.model)
    assert not same(run(net2net.apply(images(), {}), 6).model, baseline.model)


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="this model has none"):
        net2net.apply(vectors(), {})
    known = {each.name: each for each in (net2net, glu_ffn)}
    with pytest.raises(NotApplicable, match="this model has none"):
        compose(tokens(), {name: {} for name in known}, known)
    for options in ({"scale": 0.0}, {"full": 1.0}, {"noise": -1.0}):
        option, value = next(iter(options.items()))
        with pytest.raises(InvalidTechnique, match=f"{option} is {value}"):
            net2net.apply(tokens(), options)
