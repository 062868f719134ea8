"""All parallel techniques: whatever the number of processes, they train the weights of one, and say what they send."""

from __future__ import annotations

import contextlib

import pytest

from effbench import plugins
from effbench.clock import ON_THE_CLOCK
from effbench.errors import Refusal
from effbench.laws.alone import Case, applied, parallel
from effbench.toys import TOYS
from ranks import on_all_ranks

INSTALLED = plugins.load(strict=True).techniques


def processes_of(name: str) -> int:
    """How many it asks for where a text is read."""
    with contextlib.suppress(Refusal):
        return applied(INSTALLED[name], {}, TOYS["text"]()).processes
    return 1


PARALLEL = [name for name in sorted(INSTALLED) if processes_of(name) > 1]
FREE = [name for name in PARALLEL if "processes" in INSTALLED[name].options]


def test_there_are_parallel_techniques() -> None:
    assert {"ddp", "fsdp", "zero1_weight_update_sharding"} <= set(FREE)


@pytest.mark.slow
@pytest.mark.parametrize("name", FREE)
def test_four_processes_train_the_weights_of_one(name: str) -> None:
    try:
        case = Case.of(INSTALLED[name], {"processes": 4}, TOYS["text"]())
    except Refusal as why:
        pytest.skip(f"not in four processes: {why}")
    assert case.recipe.processes == 4
    found = parallel(case)
    assert not found or INSTALLED[name].unequal, found


@pytest.mark.parametrize("name", PARALLEL)
def test_what_is_sent_on_the_clock_is_counted(name: str) -> None:
    recipe = applied(INSTALLED[name], {}, TOYS["text"]())

    def sent(training) -> float:
        with training.extra():
            training.recipe.eval_model(training)  # where some meet for the first time
        return sum(each.bytes for each in training.group.wire.traffic.so_far(ON_THE_CLOCK).values())

    told = on_all_ranks(recipe, sent, steps=2)
    assert len(told) == recipe.processes
    assert sum(told) > 0
