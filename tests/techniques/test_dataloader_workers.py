import threading
import time
from itertools import chain

import pytest
import torch

from effbench.errors import Conflict, InvalidTechnique
from effbench.recipe import Recipe
from effbench.techniques import compose
from effbench_techniques.data_centric.sampling.infobatch import infobatch
from effbench_techniques.data_centric.sampling.selective_backprop import selective_backprop
from effbench_techniques.optimization_centric.large_batch.batch_size_schedule import batch_size_schedule
from effbench_techniques.system_centric.data.dataloader_workers import dataloader_workers
from effbench_techniques.system_centric.data.decode_on_load import decode_on_load
from toy import images, masked_tokens, run, same, tokens, vectors

KNOWN = {t.name: t for t in (batch_size_schedule, dataloader_workers, decode_on_load, infobatch, selective_backprop)}


@pytest.mark.parametrize("make", [vectors, images, tokens, masked_tokens])
@pytest.mark.parametrize("workers", [1, 3])
def test_the_weights_are_the_baselines_bit_by_bit(make, workers: int) -> None:
    assert same(run(dataloader_workers.apply(make(), {"workers": workers}), 20).model, run(make(), 20).model)


@pytest.mark.parametrize("other", ["batch_size_schedule", "decode_on_load", "infobatch", "selective_backprop"])
def test_batches_are_those_that_the_other_techniques_of_the_set_choose(other: str) -> None:
    both = compose(vectors(), {"dataloader_workers": {}, other: {}}, KNOWN)[0]
    assert same(run(both, 40).model, run(compose(vectors(), {other: {}}, KNOWN)[0], 40).model)


def loads(recipe: Recipe, steps: int, **options) -> tuple[list[list[int]], list[int], set[str]]:
    """What is loaded, how much was loaded when each step ended, and by which threads."""
    loaded, after, threads = [], [], set()

    def noting(positions, training):
        loaded.append(positions.tolist())
        threads.add(threading.current_thread().name)
        return recipe.loader(positions, training)

    run(
        dataloader_workers.apply(recipe.wrap(loader=noting), options),
        steps,
        look=lambda training: after.append(sum(pending[1].result() is not None for pending in pending_of(training))),
    )
    return loaded, after, threads


def pending_of(training):
    return training.kept["dataloader_workers"]._loading


def test_so_many_batches_are_loaded_ahead_and_none_twice() -> None:
    loaded, ahead, threads = loads(vectors(), 20, workers=1, prefetch=3)  # an epoch has eight batches
    assert ahead == [3, 3, 3, 3, 3, 2, 1, 0, 3, 3, 3, 3, 3, 2, 1, 0, 3, 3, 3, 3]
    for epoch in (loaded[:8], loaded[8:16]):
        assert sorted(chain(*epoch)) == list(range(64))
    assert all(name.startswith("effbench-loader") for name in threads)


def test_batches_that_reach_into_the_next_epoch_are_loaded_once_too() -> None:
    loaded, _, _ = loads(vectors(batch_size=lambda progress: 12), 16)  # 64 positions are no multiple
    assert sorted([*chain(*loaded)][:64]) == list(range(64))
    assert all(len(batch) == 12 for batch in loaded)
    assert len(loaded) - 16 <= 2  # those that are ahead when the run ends


def test_what_is_no_longer_asked_for_is_not_loaded() -> None:
    loaded, begun, asked = [], threading.Event(), threading.Event()

    def noting(positions, training):
        loaded.append(len(positions))
        if len(loaded) == 2:  # the first batch ahead, behind which two others wait
            begun.set()
            assert asked.wait(60)
            while pending_of(training):
                time.sleep(0.001)
        return plain.loader(positions, training)

    plain = vectors()
    recipe = dataloader_workers.apply(plain.wrap(loader=noting), {"workers": 1, "prefetch": 3})
    training = run(recipe, 1)
    assert begun.wait(60)  # else it too would be one that need not be loaded
    asked.set()
    assert len(recipe.loader(torch.tensor([5, 1]), training)) == 2
    assert loaded == [8, 8, 2]


def test_what_a_loader_raises_is_raised_in_the_run() -> None:
    def broken(positions, training):
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        run(dataloader_workers.apply(vectors(loader=broken), {}), 2)


def test_positions_that_nobody_drew_are_loaded_all_the_same() -> None:
    recipe = dataloader_workers.apply(vectors(), {})
    training = run(recipe, 3)
    assert torch.equal(recipe.loader(torch.tensor([5, 1]), training).index, torch.tensor([5, 1]))


def test_it_excludes_techniques_that_communicate_where_it_loads() -> None:
    many = vectors().wrap(processes=2)
    with pytest.raises(Conflict, match="must not communicate"):
        dataloader_workers.apply(many, {})
    for options in ({"workers": -1}, {"prefetch": 0}):
        with pytest.raises(InvalidTechnique, match=f"{next(iter(options))} is"):
            dataloader_workers.apply(vectors(), options)
