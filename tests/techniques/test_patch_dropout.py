import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from effbench.distributed.sharing import share
from effbench.errors import InvalidTechnique, NotApplicable
from effbench.models import vit
from effbench.techniques import compose
from effbench_techniques.data_centric.sampling.patch_dropout import patch_dropout
from effbench_techniques.data_centric.sampling.selective_backprop import selective_backprop
from toy import CLASSES, begun, first_batch, images, random_numbers, run, same


def patches(**changes):
    return images(model=lambda: vit(resolution=8, patch=2, classes=CLASSES, width=8, depth=2, heads=2), **changes)


def tokens_seen(training) -> list[torch.Tensor]:
    """What the first block gets in every pass from now on."""
    seen: list[torch.Tensor] = []
    training.model.blocks[0].register_forward_hook(lambda module, inputs, output: seen.append(inputs[0].detach()))
    return seen


@pytest.mark.parametrize(("keep", "count"), [(0.5, 8), (0.3, 5), (0.01, 1)])
def test_so_many_patches_are_seen_each_one_once_and_with_its_position(keep: float, count: int) -> None:
    recipe = patch_dropout.apply(patches(), {"keep": keep})
    training = begun(recipe)
    batch = first_batch(recipe, training)
    every = training.model.embed(batch.inputs).detach()
    seen = tokens_seen(training)
    recipe.gradient(training, share(batch, training))
    (found,) = seen
    assert found.shape == (8, count, 8)
    chosen = []
    for example in range(8):
        matches = (found[example][:, None] == every[example][None]).all(2)
        assert (matches.sum(1) == 1).all()
        assert (matches.sum(0) <= 1).all()
        chosen.append(tuple(matches.any(0).tolist()))
    assert len(set(chosen)) > 1  # each example has its own


def test_all_patches_are_seen_in_evaluation_and_after_the_step() -> None:
    training = run(patch_dropout.apply(patches(), {}), 2)
    assert not training.model.embed._forward_hooks
    seen = tokens_seen(training)
    training.forward(random_numbers(2, 1, 8, 8))
    assert seen[0].shape == (2, 16, 8)
    plain = patches().model()
    plain.load_state_dict(training.model.state_dict())
    x = random_numbers(3, 1, 8, 8)
    assert torch.equal(training.model.eval()(x), plain.eval()(x))


def test_others_rank_by_all_patches() -> None:
    known = {each.name: each for each in (patch_dropout, selective_backprop)}
    recipe, _ = compose(patches(), {"patch_dropout": {}, "selective_backprop": {"start": 0.0}}, known)
    training = begun(recipe)
    seen = tokens_seen(training)
    recipe.gradient(training, share(first_batch(recipe, training), training))
    assert [tuple(x.shape[:2]) for x in seen] == [(8, 16), (4, 8)]


def test_a_step_costs_in_proportion() -> None:
    def flop(recipe) -> int:
        training = begun(recipe)
        batch = share(first_batch(recipe, training), training)
        with FlopCounterMode(display=False) as counter:
            recipe.gradient(training, batch)
        return counter.get_total_flops()

    whole, half = flop(patches()), flop(patch_dropout.apply(patches(), {}))
    assert 0.4 * whole < half < 0.6 * whole


def test_keeping_all_is_the_baseline_and_keeping_half_is_not() -> None:
    baseline = run(patches(), 3)
    assert same(run(patch_dropout.apply(patches(), {"keep": 1.0}), 3).model, baseline.model)
    assert not same(run(patch_dropout.apply(patches(), {}), 3).model, baseline.model)


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="does not embed any"):
        patch_dropout.apply(images(), {})
    for keep in (0.0, 1.5):
        with pytest.raises(InvalidTechnique, match=f"keep is {keep}"):
            patch_dropout.apply(patches(), {"keep": keep})
