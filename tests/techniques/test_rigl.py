import math
from itertools import pairwise

import pytest
import torch
from torch import nn

from effbench.errors import InvalidTechnique, NotApplicable
from effbench.models.hidden import hidden_weights
from effbench.techniques import compose
from effbench_techniques.model_centric.compression.rigl import moved, rigl
from effbench_techniques.model_centric.curriculum.progressive_stacking import progressive_stacking
from toy import images, random_numbers, run, same, tokens, vectors


def test_what_is_dropped_is_smallest_and_what_is_grown_has_the_steepest_slope() -> None:
    weight, slope = random_numbers(10, 8), random_numbers(80, 2)[:, 1].view(10, 8)
    mask = random_numbers(80, 3)[:, 2].view(10, 8) > 0.5
    after = moved(weight, slope, mask, 0.3)
    count = round(0.3 * int(mask.sum()))
    assert int(after.sum()) == int(mask.sum())
    dropped, grown = mask & ~after, after & ~mask
    assert int(dropped.sum()) == int(grown.sum()) == count
    assert weight.abs()[dropped].max() < weight.abs()[mask & after].min()
    missing = (slope.abs() * ~mask).flatten()
    assert set(grown.flatten().nonzero()[:, 0].tolist()) == set(missing.topk(count).indices.tolist())


def masks_over(options, steps: int = 20, make=tokens):
    seen: list[list[torch.Tensor]] = []
    recipe = rigl.apply(make(), options)
    training = run(recipe, steps, look=lambda t: seen.append([mask.clone() for mask in t.kept["rigl"]["masks"]]))
    return seen, training


@pytest.mark.parametrize("make", [vectors, images, tokens])
def test_the_number_of_zeros_is_the_same_from_the_first_step_to_the_last(make) -> None:
    shares: list[list[int]] = []
    recipe = rigl.apply(make(), {"sparsity": 0.75, "times": 5})
    training = run(recipe, 15, look=lambda t: shares.append([int((w != 0).sum()) for w in hidden_weights(t.model)]))
    allowed = [weight.numel() - round(0.75 * weight.numel()) for weight in hidden_weights(training.model)]
    masks = training.kept["rigl"]["masks"]
    assert [int(mask.sum()) for mask in masks] == allowed
    for weight, mask in zip(hidden_weights(training.model), masks, strict=True):
        assert (weight[~mask] == 0).all()
    assert all(have <= most for step in shares for have, most in zip(step, allowed, strict=True))


def test_connections_move_when_it_is_time_fewer_and_fewer() -> None:
    seen, _ = masks_over({"times": 4, "end": 0.8, "drop": 0.5}, 20)
    changes = [
        sum(int((one != other).sum()) for one, other in zip(before, after, strict=True))
        for before, after in pairwise(seen)
    ]
    due = [step for step, change in enumerate(changes, 2) if change]
    assert due == [5, 9, 13]  # at 0.2, 0.4 and 0.6; at the end none is moved
    connections = sum(int(mask.sum()) for mask in seen[0])
    for step, t in ((5, 0.2), (9, 0.4), (13, 0.6)):
        share = 0.25 * (1 + math.cos(math.pi * t / 0.8))
        assert changes[step - 2] / 2 == pytest.approx(share * connections, abs=4)  # each of 8 is rounded


def test_times_zero_leaves_the_random_ones_for_good() -> None:
    seen, training = masks_over({"times": 0}, 8)
    assert all(torch.equal(one, other) for one, other in zip(seen[0], seen[-1], strict=True))
    assert training.kept["rigl"]["moved"] == 0
    other, _ = masks_over({"times": 0}, 1, lambda: tokens(batch_size=lambda progress: 4))
    assert all(torch.equal(one, two) for one, two in zip(seen[0], other[0], strict=True))


def test_a_missing_connection_leaves_nothing_in_the_optimizer() -> None:
    _, training = masks_over({"times": 0}, 8)
    for weight, mask in zip(hidden_weights(training.model), training.kept["rigl"]["masks"], strict=True):
        mean = training.optimizer.state[weight]["exp_avg"]
        assert (mean[~mask] == 0.0).all()
        assert (mean[mask] != 0.0).any()


def test_the_first_and_the_last_layer_stay_dense_and_growth_is_welcome() -> None:
    known = {each.name: each for each in (rigl, progressive_stacking)}
    training = run(compose(tokens(), {name: {} for name in known}, known)[0], 12)
    assert (training.model.embed.tokens.weight != 0).all()
    shares = [float((weight == 0).float().mean()) for weight in hidden_weights(training.model)]
    assert len(shares) == 8
    assert min(shares) >= 0.79


def test_no_zeros_are_the_baseline_and_many_are_not() -> None:
    baseline = run(images(), 6)
    assert same(run(rigl.apply(images(), {"sparsity": 0.0}), 6).model, baseline.model)
    assert not same(run(rigl.apply(images(), {}), 6).model, baseline.model)


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="no matrix"):
        rigl.apply(vectors(model=lambda: nn.Linear(6, 4)), {})
    for options in ({"sparsity": 1.0}, {"drop": -0.1}, {"times": -1}, {"end": 0.0}):
        with pytest.raises(InvalidTechnique, match=f"{next(iter(options))} is"):
            rigl.apply(vectors(), options)
