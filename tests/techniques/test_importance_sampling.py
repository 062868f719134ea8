import pytest
import torch

from effbench.distributed.sharing import share
from effbench.errors import InvalidTechnique
from effbench.techniques import compose
from effbench_techniques.data_centric.regularization.mixup import mixup
from effbench_techniques.data_centric.sampling.importance_sampling import (
    chances_of,
    draw_weighted,
    importance_sampling,
)
from effbench_techniques.optimization_centric.large_batch.gradient_accumulation import gradient_accumulation
from toy import begun, first_batch, images, run, same, tokens, vectors


def gradient_of(recipe, training, batch) -> torch.Tensor:
    recipe.gradient(training, share(batch, training))
    found = torch.cat([weight.grad.flatten().double() for weight in training.model.parameters()])
    training.optimizer.zero_grad()
    return found


@pytest.mark.parametrize("make", [vectors, tokens])
def test_the_mean_over_many_draws_is_the_gradient_of_all_that_was_looked_at(make) -> None:
    recipe = importance_sampling.apply(make(), {"presample": 2, "start": 0.0})
    training = begun(recipe)
    whole = gradient_of(make(), training, first_batch(make(), training, 16))
    draws = torch.stack([gradient_of(recipe, training, first_batch(recipe, training, 16)) for _ in range(600)])
    error = (draws.mean(0) - whole).norm() / whole.norm()
    expected = draws.var(0).sum().sqrt() / 600**0.5 / whole.norm()
    assert expected < 0.08
    assert error < 2 * expected


def test_without_the_scale_of_the_weights_the_mean_would_be_another() -> None:
    batch = first_batch(vectors(), begun(vectors()), 8)
    chances = torch.tensor([0.6, 0.2, 0.05, 0.05, 0.025, 0.025, 0.025, 0.025])
    random = torch.Generator().manual_seed(0)
    sums, counts = [], torch.zeros(64)
    for _ in range(4000):
        drawn = draw_weighted(batch, chances, 4, random)
        sums.append(float(drawn.weight.sum()))
        counts.index_add_(0, drawn.index, drawn.weight)
    assert max(sums) > 2.0
    assert min(sums) < 0.5
    torch.testing.assert_close(counts[:8] / 4000, torch.full((8,), 1 / 8), rtol=0, atol=0.02)


def test_chances_are_the_norms_of_softmax_minus_label() -> None:
    training = begun(vectors())
    batch = first_batch(vectors(), training, 8)
    outputs = training.model(batch.inputs)
    wrong = outputs.softmax(1)
    wrong[torch.arange(8), batch.targets] -= 1.0
    torch.testing.assert_close(chances_of(outputs, batch, vectors().loss), wrong.norm(dim=1) / wrong.norm(dim=1).sum())


def test_alike_examples_count_alike() -> None:
    batch = first_batch(vectors(), begun(vectors()), 8)
    drawn = draw_weighted(batch, torch.full((8,), 1 / 8), 4, torch.Generator().manual_seed(0))
    torch.testing.assert_close(drawn.weight, torch.full((4,), 1 / 4))


def test_it_looks_at_more_than_it_trains_on_from_its_start_on() -> None:
    sizes, drawn = [], []

    def gradient(training, batch):
        sizes.append(len(batch))
        return vectors().gradient(training, batch)

    recipe = importance_sampling.apply(vectors(gradient=gradient), {"start": 0.5})
    training = run(recipe, 6, look=lambda training: drawn.append(training.examples))
    assert sizes == [8] * 6
    assert drawn == [8, 16, 24, 48, 72, 96]
    assert training.ledger.wall["extra"] > 0.0


def test_an_example_whose_gradient_is_zero_is_not_a_fault() -> None:
    recipe = importance_sampling.apply(vectors(loss=lambda outputs, batch: 0.0 * outputs.sum(1)), {"start": 0.0})
    batch = first_batch(recipe, begun(recipe), 12)
    torch.testing.assert_close(batch.weight, torch.full((4,), 1 / 4))


def test_it_draws_before_others_mix_and_goes_with_parts_of_a_batch() -> None:
    known = {each.name: each for each in (mixup, importance_sampling, gradient_accumulation)}
    recipe, order = compose(images(), {name: {} for name in known}, known)
    assert order[0] == "importance_sampling"
    run(recipe, 4)


def test_presampling_once_is_the_baseline_and_thrice_is_not() -> None:
    baseline = run(images(), 4)
    assert same(run(importance_sampling.apply(images(), {"presample": 1}), 4).model, baseline.model)
    assert not same(run(importance_sampling.apply(images(), {}), 4).model, baseline.model)


@pytest.mark.parametrize("options", [{"presample": 0}, {"start": 1.0}, {"start": -0.1}])
def test_wrong_options_are_refused(options) -> None:
    with pytest.raises(InvalidTechnique, match=next(iter(options))):
        importance_sampling.apply(vectors(), options)
