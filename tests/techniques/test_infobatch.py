import itertools

import pytest
import torch

from effbench.errors import InvalidTechnique
from effbench.laws import check_pair
from effbench_techniques.data_centric.sampling.infobatch import infobatch, remembered
from effbench_techniques.system_centric.model.ddp import ddp
from toy import begun, run, same, tokens, vectors

EASY = torch.arange(64) % 3 == 0


def knowing(recipe, progress: float = 0.0):
    """A training that has seen all losses: every third example is easy."""
    training = begun(recipe, progress=progress)
    remembered(training)["new"] = torch.where(EASY, 0.1, 2.0)
    return training


@pytest.mark.parametrize("ratio", [0.3, 0.5])
def test_every_example_counts_once_in_expectation(ratio: float) -> None:
    recipe = infobatch.apply(vectors(), {"ratio": ratio})
    training, epochs = knowing(recipe), 2000
    total, drawn, weights = torch.zeros(64), torch.zeros(64), set()
    pieces = recipe.sampler(training)
    for _ in range(2 * epochs):  # pieces of 32
        batch = recipe.loader(next(pieces), training)
        total.index_add_(0, batch.index, batch.weight)
        drawn[batch.index] += 1
        weights |= {round(weight, 6) for weight in batch.weight.tolist()}
    torch.testing.assert_close(total / epochs, torch.ones(64), rtol=0, atol=0.1)  # 4 standard deviations
    assert weights == {1.0, round(1 / (1 - ratio), 6)}
    torch.testing.assert_close(drawn[EASY] / epochs, torch.full((22,), 1 - ratio), rtol=0, atol=0.06)
    assert (drawn[~EASY] == epochs).all()


def test_the_expected_gradient_is_that_of_all_examples() -> None:
    recipe = infobatch.apply(vectors(), {})
    training = knowing(recipe)

    def slope(batch) -> torch.Tensor:  # of the sum, not of the mean
        torch.autograd.backward(recipe.loss(training.model(batch.inputs), batch), batch.weight)
        found = torch.cat([weight.grad.flatten() for weight in training.model.parameters()])
        training.optimizer.zero_grad()
        return found

    whole = slope(vectors().loader(torch.arange(64), training))
    pieces = recipe.sampler(training)
    epochs = torch.stack([slope(recipe.loader(torch.cat([next(pieces), next(pieces)]), training)) for _ in range(400)])
    assert (epochs.mean(0) - whole).norm() < 3 * epochs.var(0).sum().sqrt() / 20


def test_all_are_drawn_in_the_first_epoch_and_at_the_end() -> None:
    recipe = infobatch.apply(vectors(), {"full": 0.8})
    plain = next(vectors().sampler(begun(vectors())))
    for training in (begun(recipe), knowing(recipe, progress=0.8)):
        epoch = torch.cat([*itertools.islice(recipe.sampler(training), 2)])
        assert torch.equal(epoch, plain)
        assert (recipe.loader(epoch, training).weight == 1.0).all()
    training = knowing(recipe, progress=0.79)
    assert len(torch.cat([*itertools.islice(recipe.sampler(training), 2)])) < 64


def test_losses_are_those_of_the_steps() -> None:
    seen: dict[int, float] = {}

    def gradient(training, batch):
        losses = tokens().gradient(training, batch)
        seen.update(zip(batch.index.tolist(), losses.tolist(), strict=True))
        return losses

    training = run(infobatch.apply(tokens(gradient=gradient), {}), 3)
    new = training.kept["infobatch"]["new"]
    assert {i: float(new[i]) for i in seen} == pytest.approx(seen)
    assert int(new.isnan().sum()) == 32 - len(seen)


def test_later_epochs_are_shorter_and_weights_still_sum_to_one() -> None:
    sums, batches = [], []

    def gradient(training, batch):
        sums.append(float(batch.weight.sum()))
        batches.append(batch.index)
        return vectors().gradient(training, batch)

    run(infobatch.apply(vectors(gradient=gradient), {"full": 1.0}), 24)
    assert sums == pytest.approx([1.0] * 24)
    counts = torch.bincount(torch.cat(batches), minlength=64)
    assert counts.max() > 3  # 24 steps of 8 are three epochs of all examples


def test_two_processes_leave_out_the_same_examples() -> None:
    for toy in ("text", "patches"):
        from effbench.toys import TOYS

        assert all(found.ok for found in check_pair(infobatch, ddp, toy, TOYS[toy](), processes=True))


def test_ratio_zero_is_the_baseline_and_a_half_is_not() -> None:
    baseline = run(vectors(), 20)
    assert same(run(infobatch.apply(vectors(), {"ratio": 0.0}), 20).model, baseline.model)
    assert not same(run(infobatch.apply(vectors(), {}), 20).model, baseline.model)


@pytest.mark.parametrize("options", [{"ratio": 1.0}, {"ratio": -0.1}, {"full": 1.1}])
def test_wrong_options_are_refused(options) -> None:
    with pytest.raises(InvalidTechnique, match=next(iter(options))):
        infobatch.apply(vectors(), options)
