"""The laws hold for every installed technique, alone and with any other."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Iterable

import pytest
import torch

from effbench import laws, plugins
from effbench.errors import Refusal
from effbench.techniques import Technique, compose
from effbench.toys import TOYS

torch.set_num_threads(1)

INSTALLED = plugins.load(strict=True).techniques


def processes_of(technique: Technique) -> int:
    """The most processes that it asks for on a toy."""
    most = 1
    for make in TOYS.values():
        with contextlib.suppress(Refusal):
            most = max(most, compose(make(), {technique.name: {}}, {technique.name: technique})[0].processes)
    return most


#: What takes long for each run, and how it takes less: compiling a toy takes half a minute, tracing it a second.
SLOW = {"torch_compile": {"backend": "aot_eager"}}
SEVERAL = [name for name in sorted(INSTALLED) if processes_of(INSTALLED[name]) > 1]
SWIFT = [name for name in sorted(INSTALLED) if name not in {*SLOW, *SEVERAL}]
COMPANY = ("mixup", "progressive_stacking", "stochastic_depth", "label_smoothing", "ema", "gradient_accumulation")
TWO = {toy: TOYS[toy] for toy in ("vectors", "text")}


def lawful(findings: Iterable[laws.Finding]) -> None:
    faults = [str(found) for found in findings if not found.ok]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("name", SWIFT)
def test_a_technique_keeps_the_laws(name):
    lawful(laws.check(INSTALLED[name], INSTALLED))


@pytest.mark.parametrize("name", [*SLOW, *SEVERAL])
def test_a_slow_technique_keeps_the_laws_on_two_toys(name):
    lawful(laws.check(INSTALLED[name], INSTALLED, options=SLOW.get(name), toys=TWO))


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SLOW, *SEVERAL])
def test_a_slow_technique_keeps_the_laws_on_every_toy(name):
    lawful(laws.check(INSTALLED[name], INSTALLED, options=SLOW.get(name)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # torch's own compiler raises some
@pytest.mark.parametrize("name", SLOW)
def test_a_slow_technique_keeps_the_laws_with_its_defaults(name):
    lawful(laws.check(INSTALLED[name], INSTALLED, toys={"vectors": TOYS["vectors"]}))


@functools.cache
def pairs() -> dict[tuple[str, str], str]:
    """Two techniques -> the toy on which they meet."""
    return laws.shared_toys({name: INSTALLED[name] for name in INSTALLED if name not in SLOW})


@pytest.mark.parametrize("name", sorted(set(INSTALLED) - set(SLOW))[:-1], ids=lambda name: f"{name}_with_each_after_it")
def test_any_two_techniques_train_or_are_refused_by_name(name):
    met = {other: toy for (one, other), toy in pairs().items() if one == name}
    checked = (laws.check_pair(INSTALLED[name], INSTALLED[other], toy, TOYS[toy]()) for other, toy in met.items())
    lawful(itertools.chain.from_iterable(checked))


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_a_slow_technique_trains_with_any_other_or_is_refused_by_name(name):
    for other in SWIFT:
        lawful(laws.check_pairs({each: INSTALLED[each] for each in (name, other)}, options=SLOW))


@pytest.mark.slow
@pytest.mark.parametrize("name", SEVERAL)
def test_several_processes_train_with_techniques_of_every_branch(name):
    for other in COMPANY:
        for toy, make in TWO.items():
            lawful(laws.check_pair(INSTALLED[name], INSTALLED[other], toy, make(), processes=True))


def test_all_techniques_together_have_one_order():
    found = laws.check_order(INSTALLED)
    assert found.ok, found
