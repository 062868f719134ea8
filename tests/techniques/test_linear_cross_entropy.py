import pytest
import torch
from torch import Tensor, nn

from effbench.errors import InvalidTechnique, NotApplicable
from effbench.meters import peak_memory_of_a_step
from effbench.models import gpt
from effbench.optimizers import sgd
from effbench.recipe import Recipe
from effbench.techniques import compose
from effbench.terms import IGNORED
from effbench_techniques.optimization_centric.large_batch.gradient_accumulation import gradient_accumulation
from effbench_techniques.optimization_centric.objective.label_smoothing import label_smoothing
from effbench_techniques.optimization_centric.objective.sam import sam
from effbench_techniques.system_centric.optimization.linear_cross_entropy import linear_cross_entropy
from toy import begun, first_batch, flat, images, masked_tokens, run, same, tokens

KNOWN = {t.name: t for t in (gradient_accumulation, label_smoothing, linear_cross_entropy, sam)}


def losses_and_gradient(recipe: Recipe) -> tuple[Tensor, Tensor]:
    training = begun(recipe)
    batch = first_batch(recipe, training)
    targets = batch.targets.clone()
    targets[3] = IGNORED  # a text without a target
    weight = (targets != IGNORED).sum(1).float()
    losses = recipe.gradient(training, batch.replace(targets=targets, weight=weight / weight.sum()))
    return losses, torch.cat([weight.grad.flatten() for weight in training.model.parameters()])


@pytest.mark.parametrize("make", [tokens, masked_tokens])
@pytest.mark.parametrize("chunk", [1, 3, 8])
@pytest.mark.parametrize("others", [{}, {"label_smoothing": {"smoothing": 0.3}}])
def test_losses_and_gradients_are_those_of_the_whole_batch(make, chunk: int, others) -> None:
    ours = losses_and_gradient(compose(make(), {"linear_cross_entropy": {"chunk": chunk}, **others}, KNOWN)[0])
    theirs = losses_and_gradient(compose(make(), others, KNOWN)[0])
    torch.testing.assert_close(ours[0], theirs[0], rtol=0, atol=1e-6)
    torch.testing.assert_close(ours[1], theirs[1], rtol=0, atol=1e-6)


def many_words(**changes: object) -> Recipe:
    def model() -> nn.Module:
        return gpt(4000, length=16, width=8, depth=1, heads=2)

    return tokens(model=model, **changes)


def test_the_head_sees_a_chunk_at_a_time_and_logits_take_that_share_of_the_memory() -> None:
    seen = []
    training = begun(linear_cross_entropy.apply(many_words(), {"chunk": 2}))
    training.model.head.output.register_forward_hook(lambda module, inputs, output: seen.append(output.shape))
    training.recipe.gradient(training, first_batch(training.recipe, training))
    assert seen == [(2, 16, 4000)] * 8  # four chunks, and once more backward
    plain, ours = (
        peak_memory_of_a_step(run(linear_cross_entropy.apply(many_words(), {"chunk": chunk}), 2)) for chunk in (0, 1)
    )
    logits = 8 * 16 * 4000 * 4 / 2**20  # MiB
    assert plain > 2 * logits  # they, and their softmax
    assert plain - ours > 0.75 * 2 * logits


@pytest.mark.parametrize("other", ["gradient_accumulation", "sam"])
def test_it_serves_techniques_that_take_several_gradients(other: str) -> None:
    plain = tokens(optimizer=sgd(0.1, 0.9, 0.0))
    both = run(compose(plain, {"linear_cross_entropy": {}, other: {}}, KNOWN)[0]).model
    alone = run(compose(plain, {other: {}}, KNOWN)[0]).model
    torch.testing.assert_close(flat(both), flat(alone), rtol=0, atol=1e-5)


def test_a_run_ends_where_the_baseline_ends_and_evaluation_has_its_head() -> None:
    plain = tokens(optimizer=sgd(0.1, 0.9, 0.0))  # which, unlike Adam, does not make rounding large
    training = run(linear_cross_entropy.apply(plain, {}), 10)
    torch.testing.assert_close(flat(training.model), flat(run(plain, 10).model), rtol=0, atol=1e-5)
    assert training.recipe.eval_model(training)(plain.dataset.inputs[:2]).shape[-1] == 13
    assert "forward" not in vars(training.model.head)


def test_it_says_why_it_does_not_apply_and_a_chunk_of_nothing_is_the_baseline() -> None:
    with pytest.raises(NotApplicable, match="predicts none"):
        linear_cross_entropy.apply(images(), {})
    with pytest.raises(InvalidTechnique, match="chunk is -1"):
        linear_cross_entropy.apply(tokens(), {"chunk": -1})
    assert same(run(linear_cross_entropy.apply(tokens(), {"chunk": 0})).model, run(tokens()).model)
