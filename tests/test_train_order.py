"""The loop: which examples a step takes, in which order, and how many."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
import torch
from torch import Tensor

from effbench.clock import EpochClock, ExampleClock
from effbench.distributed.group import Group
from effbench.distributed.launch import run_ranks
from effbench.errors import InvalidTechnique
from effbench.recipe import Examples
from effbench.toys import TOYS
from effbench.train import Positions
from small_runs import noting, run, vectors, weights


def test_three_epochs_have_three_orders_and_each_covers_all():
    seen: list[Tensor] = []
    run(noting(vectors(), seen), "120 examples", ExampleClock())
    epochs = torch.cat(seen)[:120].view(3, 40)
    assert all(epoch.sort().values.equal(torch.arange(40)) for epoch in epochs)
    assert all(not one.equal(other) for one, other in itertools.combinations(epochs, 2))


def test_the_seed_fixes_the_order_and_the_weights():
    runs = {}
    for name, seed in (("first", 1), ("again", 1), ("other", 2)):
        seen: list[Tensor] = []
        runs[name] = (weights(run(noting(vectors(), seen), seed=seed)), torch.cat(seen))
    assert runs["first"][0].equal(runs["again"][0])
    assert runs["first"][1].equal(runs["again"][1])
    assert not runs["first"][0].equal(runs["other"][0])
    assert not runs["first"][1].equal(runs["other"][1])


def test_the_order_is_the_same_on_all_ranks_and_the_dropout_is_not():
    def body(group: Group):
        seen: list[Tensor] = []
        training = run(noting(vectors(), seen), "9 steps", group=group)
        order = torch.cat(seen)
        masks = torch.rand(8)  # dropout draws from the same stream
        orders, streams = ([torch.empty_like(mine) for _ in range(2)] for mine in (order, masks))
        torch.distributed.all_gather(orders, order)
        torch.distributed.all_gather(streams, masks)
        return orders, streams, training.examples

    orders, streams, examples = run_ranks(2, body)
    assert orders[0].equal(orders[1])
    assert not streams[0].equal(streams[1])
    assert examples == 9 * 16


def test_masks_of_other_batches_leave_the_order_as_it_is():
    orders = []
    for size in (16, 5):
        seen: list[Tensor] = []
        recipe = dataclasses.replace(TOYS["masked_text"](), batch_size=lambda progress, size=size: size)
        run(noting(recipe, seen), "120 examples", ExampleClock())
        orders.append(torch.cat(seen)[:120])
    assert orders[0].equal(orders[1])


@pytest.mark.parametrize(("examples", "batch"), [(40, 3), (13, 4), (7, 6), (3, 16), (41, 40)])
def test_no_batch_is_a_remainder(examples, batch):
    """With BatchNorm a batch of one example raises: 40 examples in batches of 3 would leave one over."""
    full = vectors()
    dataset = Examples(full.dataset.inputs[:1].repeat(examples, 1), torch.zeros(examples, dtype=torch.long))
    seen: list[Tensor] = []
    recipe = vectors(dataset=dataset, batch_size=lambda progress: batch)
    run(noting(recipe, seen), "2 epochs", EpochClock())
    assert {len(positions) for positions in seen} == {batch}
    drawn = torch.cat(seen)
    assert all(drawn[i : i + examples].unique().numel() == examples for i in range(0, len(drawn) - examples, examples))


def test_a_batch_size_may_change_with_progress():
    seen: list[Tensor] = []
    recipe = vectors(batch_size=lambda progress: 4 if progress < 0.5 else 8)
    training = run(noting(recipe, seen))
    assert [len(positions) for positions in seen] == [4, 4, 4, 8, 8, 8]
    assert training.examples == 36


@pytest.mark.parametrize("size", [0, -1])
def test_an_empty_batch_is_refused(size):
    with pytest.raises(InvalidTechnique, match=f"the batch size is {size}"):
        run(vectors(batch_size=lambda progress: size), "10 examples", ExampleClock())


def test_a_sampler_that_ends_is_refused():
    with pytest.raises(InvalidTechnique, match="the sampler came to an end"):
        run(vectors(sampler=lambda training: iter([torch.arange(20)])))


def test_a_sampler_without_examples_is_refused_and_does_not_hang():
    empty = Examples(torch.zeros(0, 8), torch.zeros(0, dtype=torch.long))
    with pytest.raises(InvalidTechnique, match="a chunk without positions"):
        run(vectors(dataset=empty))


def test_positions_run_across_chunks():
    positions = Positions(iter([torch.arange(5), torch.arange(5, 8), torch.arange(8, 20)]))
    assert [positions.take(count).tolist() for count in (3, 4, 1, 7)] == [
        [0, 1, 2],
        [3, 4, 5, 6],
        [7],
        [8, 9, 10, 11, 12, 13, 14],
    ]
