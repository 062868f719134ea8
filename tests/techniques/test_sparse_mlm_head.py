import pytest
import torch
from torch import nn

from effbench.distributed.sharing import share
from effbench.errors import NotApplicable
from effbench.optimizers import sgd
from effbench.techniques import compose
from effbench.terms import IGNORED
from effbench_techniques.optimization_centric.large_batch.gradient_accumulation import gradient_accumulation
from effbench_techniques.optimization_centric.objective.label_smoothing import label_smoothing
from effbench_techniques.optimization_centric.objective.sam import sam
from effbench_techniques.optimization_centric.objective.sparse_mlm_head import sparse_mlm_head
from toy import begun, first_batch, flat, masked_tokens, run, tokens

KNOWN = {each.name: each for each in (gradient_accumulation, label_smoothing, sam, sparse_mlm_head)}


def gradients(training) -> torch.Tensor:
    return torch.cat([weight.grad.flatten().double() for weight in training.model.parameters()])


@pytest.mark.parametrize("others", [{}, {"label_smoothing": {"smoothing": 0.3}}])
def test_loss_and_gradients_are_those_of_the_whole_head(others) -> None:
    sparse = begun(compose(masked_tokens(), {"sparse_mlm_head": {}, **others}, KNOWN)[0])
    dense = begun(compose(masked_tokens(), others, KNOWN)[0])
    batch = first_batch(dense.recipe, dense)
    targets = batch.targets.clone()
    targets[3] = IGNORED  # an example without a target
    batch = share(batch.replace(targets=targets, weight=(targets != IGNORED).sum(1).float()), dense)
    ours, theirs = sparse.recipe.gradient(sparse, batch), dense.recipe.gradient(dense, batch)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)
    assert ours[3] == 0.0
    torch.testing.assert_close(gradients(sparse), gradients(dense), rtol=0, atol=1e-6)


def test_the_head_sees_the_tokens_that_count_and_no_others_and_evaluation_sees_all() -> None:
    seen = []
    training = begun(sparse_mlm_head.apply(masked_tokens(), {}))
    training.model.head.output.register_forward_hook(lambda module, arguments, output: seen.append(output.shape))
    batch = share(first_batch(training.recipe, training), training)
    training.recipe.gradient(training, batch)
    count = int((batch.targets != IGNORED).sum())
    assert 0 < count < batch.targets.numel() / 2
    training.recipe.eval_model(training)(batch.inputs)
    assert [shape[:-1] for shape in seen] == [(count,), tuple(batch.targets.shape)]


def test_a_batch_without_a_target_has_no_gradient() -> None:
    training = begun(sparse_mlm_head.apply(masked_tokens(), {}))
    batch = first_batch(training.recipe, training)
    losses = training.recipe.gradient(training, batch.replace(targets=torch.full_like(batch.targets, IGNORED)))
    assert losses.tolist() == [0.0] * 8
    assert all(weight.grad is None or not weight.grad.any() for weight in training.model.parameters())


@pytest.mark.parametrize("other", ["gradient_accumulation", "sam"])
def test_it_is_the_innermost_gradient(other: str) -> None:
    both, order = compose(masked_tokens(), {other: {}, "sparse_mlm_head": {}}, KNOWN)
    assert order == ["sparse_mlm_head", other]
    alone = run(compose(masked_tokens(), {other: {}}, KNOWN)[0])
    torch.testing.assert_close(flat(run(both).model), flat(alone.model), rtol=0, atol=1e-4)


def test_a_run_ends_where_the_baseline_ends() -> None:
    plain = masked_tokens(optimizer=sgd(0.1, 0.9, 0.0))  # which, unlike Adam, does not make rounding large
    ours = run(sparse_mlm_head.apply(plain, {}), 10)
    torch.testing.assert_close(flat(ours.model), flat(run(plain, 10).model), rtol=0, atol=1e-5)


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="masks none"):
        sparse_mlm_head.apply(tokens(), {})
    with pytest.raises(NotApplicable, match="this model has none"):
        sparse_mlm_head.apply(masked_tokens(model=lambda: nn.Embedding(13, 13)), {})
