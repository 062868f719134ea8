"""Options that no machine can serve are refused by name, or compose at once: for everything that is installed."""

from __future__ import annotations

import math
import signal

import pytest
import torch

from effbench import plugins
from effbench.errors import InvalidTechnique, Refusal, UnknownName
from effbench.recipe import Recipe
from effbench.techniques import compose
from effbench.toys import TOYS

torch.set_num_threads(1)

KNOWN = plugins.load().techniques
EXTREMES = {int: (0, -1, 10**9, 10**18), float: (-1.0, 1e300, 1e-300, math.inf, 10**18), str: ("",)}
SECONDS = 5  # of CPU time, a guard against what would never end
OPTIONS = [(name, option) for name, made in KNOWN.items() for option in made.options]


@pytest.fixture(autouse=True)
def _guarded():
    def stop(*_: object) -> None:
        raise AssertionError("it computes for seconds before it says anything")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


@pytest.mark.parametrize(("name", "option"), OPTIONS)
def test_extremes_compose_or_are_refused_by_name(name, option):
    for toy in ("vectors", "images", "text"):
        recipe = TOYS[toy]()
        for value in EXTREMES.get(type(KNOWN[name].options[option]), ()):
            said = refusal_of(recipe, name, option, value)
            assert said is None or option in said or repr(value) in said


def refusal_of(recipe: Recipe, name: str, option: str, value: object) -> str | None:
    """Return why an option is refused; None where it composes, or the technique does not apply here at all."""
    try:
        compose(recipe, {name: {option: value}}, KNOWN)
    except (InvalidTechnique, UnknownName) as why:
        return str(why)
    except Refusal:
        pass
    return None


@pytest.mark.parametrize(
    ("name", "option", "value", "why"),
    [
        ("random_ltd", "stages", 10**9, "it should be 2 to 1000"),
        ("lora", "restarts", 10**9, "it should be 0 to 1000"),
        ("progressive_stacking", "stages", 10**9, r"it should be 1 \(off\) to 32"),
        ("batch_augmentation", "copies", 10**9, r"it should be 1 \(off\) to 1000"),
        ("tensor_parallel", "processes", 10**9, "it should be at most 1024"),
        ("hybrid_3d", "tensor", 10**9, "it should be at most 1024"),
        ("rate_factor", "factor", math.inf, "above 0, and finite"),
        ("rope", "base", math.inf, "above 1, and finite"),
    ],
)
def test_what_no_machine_can_serve_is_refused(name, option, value, why):
    with pytest.raises(InvalidTechnique, match=f"{name}: {option} is {value}; .*{why}"):
        compose(TOYS["text"](), {name: {option: value}}, KNOWN)
