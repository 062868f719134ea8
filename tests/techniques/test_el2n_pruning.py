import itertools

import pytest
import torch

from effbench.errors import InvalidTechnique, NotApplicable
from effbench_techniques.data_centric.sampling.el2n_pruning import el2n_pruning, error_norm
from toy import begun, first_batch, images, random_numbers, run, same, tokens, vectors


def test_the_score_is_the_length_of_softmax_minus_label() -> None:
    batch = first_batch(vectors(), begun(vectors()))
    outputs = random_numbers(8, 4)
    for i in range(8):
        error = [float(outputs[i].softmax(0)[c]) - float(c == batch.targets[i]) for c in range(4)]
        assert float(error_norm(outputs, batch)[i]) == pytest.approx(sum(e * e for e in error) ** 0.5, rel=1e-5)
    soft = batch.replace(targets=torch.full((8, 4), 0.25))
    torch.testing.assert_close(error_norm(outputs, soft), (outputs.softmax(1) - 0.25).norm(dim=1))


def test_it_is_the_gradient_with_respect_to_the_outputs_by_vmap() -> None:
    batch = first_batch(vectors(), begun(vectors()))
    outputs = random_numbers(8, 4)

    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(output[None], target[None])

    slopes = torch.func.vmap(torch.func.grad(loss))(outputs, batch.targets)
    torch.testing.assert_close(error_norm(outputs, batch), slopes.norm(dim=1), rtol=0, atol=1e-6)


def test_those_with_the_highest_scores_stay_in_the_baselines_order() -> None:
    recipe = el2n_pruning.apply(images(), {"fraction": 0.3, "start": 0.2})
    training = begun(recipe)
    (milestone,) = recipe.milestones
    assert milestone.progress == 0.2
    order = next(images().sampler(begun(images())))
    assert torch.equal(next(recipe.sampler(training)), order)
    milestone.action(training)
    training.model.eval()
    every = images().loader(torch.arange(32), training)
    with torch.no_grad():
        scores = error_norm(training.model(every.inputs), every)
    highest = set(scores.topk(10).indices.tolist())  # ceil(0.3 * 32)
    assert next(recipe.sampler(training)).tolist() == [i for i in order.tolist() if i in highest]


def test_scoring_takes_effect_within_an_epoch_and_is_charged() -> None:
    seen: list[torch.Tensor] = []

    def loader(positions, training):
        if len(positions) == 8:  # a batch, and not a pass over all
            seen.append(positions)
        return vectors().loader(positions, training)

    training = run(el2n_pruning.apply(vectors(loader=loader), {"start": 0.4}), 10)
    stay = training.kept["el2n_pruning"]
    assert int(stay.sum()) == 32
    assert stay[torch.cat(seen[4:])].all()
    assert not stay[torch.cat(seen[:4])].all()
    assert training.ledger.wall["extra"] > 0.0


def test_the_whole_is_the_baseline_and_a_half_is_not() -> None:
    baseline = run(vectors(), 9)
    assert same(run(el2n_pruning.apply(vectors(), {"fraction": 1.0}), 9).model, baseline.model)
    assert not same(run(el2n_pruning.apply(vectors(), {}), 9).model, baseline.model)
    assert len([*itertools.islice(el2n_pruning.apply(vectors(), {}).sampler(begun(vectors())), 5)]) == 5


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="class labels"):
        el2n_pruning.apply(tokens(), {})
    for options in ({"fraction": 0.0}, {"start": 1.0}):
        option, value = next(iter(options.items()))
        with pytest.raises(InvalidTechnique, match=f"{option} is {value}"):
            el2n_pruning.apply(vectors(), options)
