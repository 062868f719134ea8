import pytest
import torch

from effbench.errors import InvalidTechnique
from effbench.techniques import compose
from effbench_techniques.data_centric.curriculum.progressive_resizing import progressive_resizing
from effbench_techniques.data_centric.regularization.cutmix import cutmix
from effbench_techniques.data_centric.regularization.mixup import mixup
from effbench_techniques.data_centric.sampling.selective_backprop import selective_backprop
from effbench_techniques.optimization_centric.objective.label_smoothing import label_smoothing
from toy import begun, first_batch, images, run, same, state, tokens, vectors


@pytest.mark.parametrize("make", [vectors, images, tokens])
@pytest.mark.parametrize(("keep", "count"), [(0.5, 4), (0.55, 5), (0.01, 2)])
def test_the_examples_with_the_highest_loss_stay_in_their_order(make, keep: float, count: int) -> None:
    recipe = selective_backprop.apply(make(), {"keep": keep})
    training = begun(recipe, progress=0.5)
    clean = first_batch(make(), training)
    training.model.eval()
    with torch.no_grad():
        losses = [float(make().loss(training.model(one.inputs), one)) for one in (clean[[i]] for i in range(8))]
    training.model.train()
    hardest = sorted(range(8), key=lambda i: -losses[i])[:count]
    assert first_batch(recipe, training).index.tolist() == sorted(hardest)


def test_only_the_kept_examples_have_a_gradient_and_their_weights_sum_to_one() -> None:
    sizes, weights = [], []

    def gradient(training, batch):
        sizes.append(len(batch))
        weights.append(float(batch.weight.sum()))
        return vectors().gradient(training, batch)

    run(selective_backprop.apply(vectors(gradient=gradient), {"keep": 0.3}), 10)
    assert sizes == [8] * 5 + [3] * 4 + [8]  # ceil(0.3 * 8), from 0.5 of the budget, up to 0.9
    assert weights == pytest.approx([1.0] * 10)


def test_ranking_is_charged_as_the_techniques_work() -> None:
    lines = []

    def loss(outputs, batch):
        lines.append(training.ledger.open_line)
        return vectors().loss(outputs, batch)

    recipe = selective_backprop.apply(vectors(loss=loss), {})
    training = begun(recipe, progress=0.5)
    first_batch(recipe, training)
    assert lines == ["extra"]


def test_ranking_leaves_no_trace() -> None:
    recipe = selective_backprop.apply(images(), {})
    training = begun(recipe, progress=0.6)
    frozen = training.model.blocks[0]
    frozen.eval()
    before, random = state(training.model), torch.get_rng_state()
    assert len(first_batch(recipe, training)) == 4
    assert all(torch.equal(before[name], tensor) for name, tensor in training.model.state_dict().items())
    assert torch.equal(random, torch.get_rng_state())
    assert training.model.training
    assert training.model.head.training
    assert not any(module.training for module in frozen.modules())
    assert all(weight.grad is None for weight in training.model.parameters())


def test_rounding_errors_keep_no_example_more() -> None:
    recipe = selective_backprop.apply(vectors(), {"keep": 0.56})
    assert len(first_batch(recipe, begun(recipe, progress=0.5), 25)) == 14


def test_what_is_done_to_the_loss_later_does_not_change_the_ranking() -> None:
    clean = selective_backprop.apply(vectors(), {})
    upside_down = clean.wrap(loss=lambda outputs, batch: -clean.loss(outputs, batch))
    expected = first_batch(clean, begun(clean, progress=0.5)).index
    assert torch.equal(first_batch(upside_down, begun(upside_down, progress=0.5)).index, expected)


def test_two_examples_stay_for_batchnorm() -> None:
    recipe = selective_backprop.apply(images(batch_size=lambda progress: 3), {"keep": 0.1, "start": 0.0, "end": 1.0})
    run(recipe, 3)
    assert len(first_batch(recipe, begun(recipe, progress=0.5), 3)) == 2
    assert len(first_batch(recipe, begun(recipe, progress=0.5), 1)) == 1


def test_it_resizes_first_then_ranks_by_the_clean_loss_then_mixes() -> None:
    everyone = [mixup, cutmix, selective_backprop, progressive_resizing, label_smoothing]
    known = {technique.name: technique for technique in everyone}
    wanted = {name: {} for name in known}
    recipe, order = compose(images(16, 16), wanted, known)
    assert order == ["progressive_resizing", "selective_backprop", "cutmix", "mixup", "label_smoothing"]
    training = begun(recipe, progress=0.5)
    seen = []
    training.forward = lambda inputs: seen.append(inputs.shape) or training.model(inputs)
    assert first_batch(recipe, training).inputs.shape == (4, 1, 8, 8)
    assert seen == [(8, 1, 8, 8)]


def test_keeping_all_is_the_baseline_and_keeping_half_is_not() -> None:
    baseline = run(images(), 4)
    assert same(run(selective_backprop.apply(images(), {"keep": 1.0}), 4).model, baseline.model)
    assert not same(run(selective_backprop.apply(images(), {}), 4).model, baseline.model)


@pytest.mark.parametrize("options", [{"keep": 0.0}, {"keep": 1.5}, {"start": 0.9, "end": 0.5}, {"end": 2.0}])
def test_wrong_options_are_refused(options) -> None:
    with pytest.raises(InvalidTechnique, match=next(iter(options))):
        selective_backprop.apply(vectors(), options)
