import pytest
import torch
from torch import nn, optim

from effbench.errors import Conflict, NotApplicable
from effbench.optimizers import adamw, sgd
from effbench.recipe import Recipe
from effbench.techniques import compose
from effbench_techniques.model_centric.curriculum.progressive_stacking import progressive_stacking
from effbench_techniques.optimization_centric.averaged_weights.ema import ema
from effbench_techniques.optimization_centric.large_batch.agc import agc
from effbench_techniques.optimization_centric.large_batch.gradient_accumulation import gradient_accumulation
from effbench_techniques.optimization_centric.large_batch.lamb import lamb
from effbench_techniques.optimization_centric.objective.sam import sam
from effbench_techniques.system_centric.model.optimizer_in_backward import optimizer_in_backward
from toy import begun, first_batch, flat, images, masked_tokens, run, tokens, vectors

KNOWN = {t.name: t for t in (agc, ema, gradient_accumulation, lamb, optimizer_in_backward, progressive_stacking, sam)}
ADAMW, SGD = adamw(3e-3, weight_decay=0.1), sgd(0.05, 0.9, 1e-3)


def adafactor(model: nn.Module) -> optim.Optimizer:
    """Looks at whole tensors, but at one after the other."""
    return optim.Adafactor(model.parameters(), lr=1e-2)


@pytest.mark.parametrize("make", [vectors, images, tokens, masked_tokens])  # the texts' output layers are shared
@pytest.mark.parametrize("optimizer", [ADAMW, SGD, adafactor])
def test_weights_are_those_of_the_ordinary_step(make, optimizer) -> None:
    ours = run(optimizer_in_backward.apply(make(optimizer=optimizer), {}), 12)
    plain = run(make(optimizer=optimizer), 12)
    torch.testing.assert_close(flat(ours.model), flat(plain.model), rtol=0, atol=1e-7)
    rates = {group["lr"] for group in ours.optimizer.param_groups}
    assert rates == {group["lr"] for group in plain.optimizer.param_groups}


def test_no_two_gradients_exist_at_once_and_none_afterwards() -> None:
    def most(recipe: Recipe) -> int:
        training = begun(recipe)
        weights = list(training.model.parameters())
        alive = []
        for weight in weights:  # called before the technique's own hooks
            weight.register_post_accumulate_grad_hook(
                lambda _: alive.append(sum(other.grad is not None for other in weights))
            )
        training.recipe.gradient(training, first_batch(recipe, training))
        assert len(alive) == len(weights)
        return max(alive)

    assert most(optimizer_in_backward.apply(tokens(), {})) == 1
    assert most(tokens()) == len(list(tokens().model().parameters()))


def test_what_looks_at_weights_after_the_step_and_what_makes_models_grow_goes_with_it() -> None:
    for others in ({"ema": {}}, {"progressive_stacking": {}}):
        both = run(compose(tokens(), {"optimizer_in_backward": {}, **others}, KNOWN)[0], 12)
        alone = run(compose(tokens(), others, KNOWN)[0], 12)
        ours, theirs = (flat(training.recipe.eval_model(training)) for training in (both, alone))
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)


@pytest.mark.parametrize("other", ["agc", "gradient_accumulation", "sam"])
def test_what_needs_all_gradients_at_once_is_refused(other: str) -> None:
    with pytest.raises(Conflict, match=f"{other} changed the (gradient|update)"):
        compose(vectors(), {"optimizer_in_backward": {}, other: {}}, KNOWN)


def test_clipping_and_optimizers_that_look_across_weights_are_refused() -> None:
    with pytest.raises(NotApplicable, match="clips their norm"):
        optimizer_in_backward.apply(vectors(traits=frozenset({"clipped"})), {})
    with pytest.raises(NotApplicable, match="may not step each weight by itself"):
        compose(vectors(), {"optimizer_in_backward": {}, "lamb": {}}, KNOWN)
