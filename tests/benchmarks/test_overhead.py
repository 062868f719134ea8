"""What effbench's loop costs over one that is written by hand, and what other frameworks cost in the same run.

Figures of a run stand in docs/performance.md. Ratios only: seconds mean nothing on a machine that is shared.
"""

from __future__ import annotations

import importlib.util
import statistics
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.interleaved import built_anew, extra_microseconds, in_turns, ratio
from benchmarks.loops import by_accelerate, by_effbench, by_hand, by_lightning
from effbench import toys
from effbench.plugins import load
from effbench.recipe import Batch, Recipe, Training

torch.set_num_threads(1)
STRETCH = 20  # steps of one loop in a row


def recipe_of(workload: str) -> Recipe:
    return load().workloads[workload].recipe(torch.device("cpu"))


@pytest.mark.parametrize(("workload", "builds", "rounds"), [("mnist1d_cnn", 12, 30), ("mnist5k_resnet", 8, 10)])
def test_a_step_costs_what_it_costs_by_hand(benchmark: Any, workload: str, builds: int, rounds: int) -> None:
    recipe = recipe_of(workload)
    others = {
        "effbench": lambda: by_effbench(recipe),
        "by hand again": lambda: by_hand(recipe, per_example=True),
        "by hand, mean loss": lambda: by_hand(recipe, per_example=False),
    }
    found: dict[str, float] = {}
    for name, other in others.items():  # in pairs, for a third loop would keep the code of one of them in the caches
        makers = {"by hand": lambda: by_hand(recipe, per_example=True), name: other}
        runs = built_anew(makers, builds, rounds, stretch=STRETCH)
        ratios = [ratio(run, name, "by hand") for run in runs]
        found["by hand, microseconds"] = round(1e6 * float(np.median([run["by hand"] for run in runs])))
        found[f"{name} / by hand"] = round(statistics.fmean(ratios), 4)
        found[f"{name}, standard error"] = round(statistics.stdev(ratios) / len(ratios) ** 0.5, 4)
    show(benchmark, workload, found, by_effbench(recipe))


def test_other_frameworks_in_the_same_run(benchmark: Any) -> None:
    if importlib.util.find_spec("accelerate") is None:
        pytest.skip("accelerate is not installed: pip install 'effbench[benchmarks]'")
    recipe = recipe_of("mnist1d_cnn")
    loops = {
        "by hand": by_hand(recipe, per_example=False),
        "effbench": by_effbench(recipe),
        "accelerate": by_accelerate(recipe),
        "Lightning": by_lightning(recipe),
    }
    seconds = in_turns(loops, 75, STRETCH)
    names = list(loops)[1:]
    found = {f"{name}, extra microseconds": round(extra_microseconds(seconds, name, "by hand")) for name in names}
    show(benchmark, "mnist1d_cnn, over the mean loss by hand", found, by_effbench(recipe))


def show(benchmark: Any, title: str, found: dict[str, float], steps: Iterator[None]) -> None:
    """Keep the ratios with the benchmark, print them, and let pytest-benchmark time a step for its own table."""
    benchmark.extra_info.update(found)
    benchmark.pedantic(next, args=(steps,), rounds=50, warmup_rounds=5)
    print(f"\n{title}: {found}")  # noqa: T201 - for whoever runs it


def idle_recipe() -> Recipe:
    """A recipe whose step does nothing, so that what is left is machinery."""
    plain = toys.vectors()
    losses = torch.zeros(plain.batch_size(0.0))

    def nothing(training: Training, batch: Batch) -> torch.Tensor:
        return losses

    return plain.swap(gradient=nothing, update=lambda training: None)


def wrapped(recipe: Recipe, times: int) -> Recipe:
    """Wrap the transform, gradient and update as so many techniques would."""

    def once(recipe: Recipe) -> Recipe:
        return recipe.wrap(
            transform=lambda batch, training: recipe.transform(batch, training),
            gradient=lambda training, batch: recipe.gradient(training, batch),
            update=lambda training: recipe.update(training),
        )

    for _ in range(times):
        recipe = once(recipe)
    return recipe


def bare(recipe: Recipe) -> Iterator[None]:
    """Draw the same batches by hand, and do nothing with them."""
    inputs, targets, size = recipe.dataset.inputs, recipe.dataset.targets, recipe.batch_size(0.0)
    while True:
        order = torch.randperm(len(inputs))
        for first in range(0, len(inputs) - size + 1, size):
            chosen = order[first : first + size]
            _ = inputs[chosen], targets[chosen]
            yield


def test_machinery_of_a_step_that_does_nothing(benchmark: Any) -> None:
    recipe = idle_recipe()
    loops = {"bare": bare(recipe)}
    for techniques in (0, 4, 16):
        loops[f"{techniques} techniques"] = by_effbench(wrapped(recipe, techniques))
    seconds = in_turns(loops, 250, STRETCH)
    names = list(loops)[1:]
    found = {f"{name}, extra microseconds": round(extra_microseconds(seconds, name, "bare"), 1) for name in names}
    show(benchmark, "a step that does nothing", found, by_effbench(recipe))
