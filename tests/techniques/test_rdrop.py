import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, kl_div

from effbench.distributed.sharing import share
from effbench.errors import Conflict, InvalidTechnique, NotApplicable
from effbench.models import residuals
from effbench.techniques import compose
from effbench.terms import IGNORED
from effbench_techniques.optimization_centric.large_batch.gradient_accumulation import gradient_accumulation
from effbench_techniques.optimization_centric.objective.rdrop import divergence, rdrop
from effbench_techniques.optimization_centric.objective.sparse_mlm_head import sparse_mlm_head
from toy import CLASSES, begun, first_batch, flat, images, masked_tokens, random_numbers, run, state, tokens, vectors


def test_without_dropout_the_passes_agree_and_training_is_the_baselines() -> None:
    for make in (vectors, tokens):
        plain, dropless = run(make(), 10), run(rdrop.apply(make(), {"dropout": 0.0}), 10)
        torch.testing.assert_close(flat(dropless.model), flat(plain.model), rtol=0, atol=2e-4)  # Adam's, of rounding
    same = random_numbers(3, CLASSES)
    batch = first_batch(vectors(), begun(vectors()), 3)
    assert divergence(same, same, batch).tolist() == [0.0, 0.0, 0.0]


def test_the_divergence_is_the_mean_of_both_directions() -> None:
    one, other = random_numbers(3, CLASSES), random_numbers(6, CLASSES)[3:]
    p, q = one.log_softmax(1), other.log_softmax(1)
    both = kl_div(p, q, reduction="none", log_target=True) + kl_div(q, p, reduction="none", log_target=True)
    batch = first_batch(vectors(), begun(vectors()), 3)
    torch.testing.assert_close(divergence(one, other, batch), both.sum(1) / 2)


def test_tokens_without_a_target_are_not_compared() -> None:
    one, other = random_numbers(2, 3, 5), random_numbers(4, 3, 5)[2:]
    batch = first_batch(vectors(), begun(vectors()), 2)
    batch = batch.replace(targets=torch.tensor([[1, IGNORED, 2], [IGNORED, IGNORED, IGNORED]]))
    p, q = one.softmax(-1), other.softmax(-1)
    by_token = ((p - q) * (p.log() - q.log())).sum(-1) / 2
    expected = torch.stack([(by_token[0, 0] + by_token[0, 2]) / 2, torch.tensor(0.0)])
    torch.testing.assert_close(divergence(one, other, batch), expected)


def dropping() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, CLASSES))


def gradient_of(recipe) -> tuple[torch.Tensor, torch.Tensor, object]:
    training = begun(recipe)
    torch.manual_seed(7)
    losses = recipe.gradient(training, share(first_batch(recipe, training), training))
    return losses, torch.cat([weight.grad.flatten() for weight in training.model.parameters()]), training


def test_it_is_half_of_the_papers_loss_over_two_passes() -> None:
    losses, slope, training = gradient_of(rdrop.apply(vectors(model=dropping), {"alpha": 3.0}))
    model, batch = training.model, first_batch(vectors(), training)
    model.zero_grad()
    torch.manual_seed(7)
    p1, p2 = model(batch.inputs), model(batch.inputs)
    assert not torch.equal(p1, p2)
    nll = cross_entropy(p1, batch.targets, reduction="none") + cross_entropy(p2, batch.targets, reduction="none")
    one, two = p1.log_softmax(1), p2.log_softmax(1)
    kl = (one.exp() * (one - two)).sum(1) + (two.exp() * (two - one)).sum(1)
    papers = nll + 3.0 / 2 * kl
    torch.testing.assert_close(losses, papers.detach() / 2)
    (papers / 2).mean().backward()
    torch.testing.assert_close(slope, torch.cat([weight.grad.flatten() for weight in model.parameters()]))


def test_each_part_of_a_batch_is_compared_with_itself() -> None:
    known = {each.name: each for each in (rdrop, gradient_accumulation)}
    sets = {"rdrop": {"dropout": 0.0}, "gradient_accumulation": {"micro_batches": 3}}
    parted, _ = compose(vectors(), sets, known)
    losses, slope, _ = gradient_of(parted)
    whole, expected, _ = gradient_of(vectors())
    torch.testing.assert_close(losses, whole)
    torch.testing.assert_close(slope, expected)


@pytest.mark.parametrize("make", [tokens, images])
def test_a_model_without_dropout_gets_some_in_its_branches_and_in_training_alone(make) -> None:
    training = begun(rdrop.apply(make(), {"dropout": 0.3}))
    inputs = training.recipe.dataset.inputs
    assert torch.equal(training.model.eval()(inputs), begun(make()).model.eval()(inputs))
    assert state(training.model).keys() == state(begun(make()).model).keys()
    dropped = []
    for branch in residuals(training.model).values():
        branch.last.register_forward_hook(lambda module, given, output: dropped.append(output == 0))
    training.model.train()(inputs)
    share_of_zeros = float(torch.cat([zeros.flatten() for zeros in dropped]).float().mean())
    assert share_of_zeros == pytest.approx(0.3, abs=0.03)


def test_a_model_with_dropout_keeps_its_own_and_one_without_branches_drops_after_its_blocks() -> None:
    training = begun(rdrop.apply(vectors(model=dropping), {}))
    assert not any(module._forward_hooks for module in training.model.modules())
    torch.manual_seed(0)
    model = begun(rdrop.apply(vectors(), {"dropout": 0.5})).model
    inputs = training.recipe.dataset.inputs
    assert not torch.equal(model(inputs), model(inputs))
    assert len([module for module in model.blocks if module._forward_hooks]) == len(model.blocks) == 1


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="has neither"):
        rdrop.apply(vectors(classes=None), {})
    with pytest.raises(NotApplicable, match="no `blocks`"):
        begun(rdrop.apply(vectors(model=lambda: nn.Linear(6, CLASSES)), {}))
    known = {each.name: each for each in (rdrop, sparse_mlm_head)}
    with pytest.raises(Conflict, match="the loss sees those that are masked"):
        compose(masked_tokens(), {name: {} for name in known}, known)
    for options in ({"alpha": -1.0}, {"dropout": 1.0}):
        with pytest.raises(InvalidTechnique, match=f"{next(iter(options))} is"):
            rdrop.apply(vectors(), options)
