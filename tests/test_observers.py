"""Observers hear what they ask for, and cost nothing when they fail."""

from __future__ import annotations

import pluggy
import pytest

from effbench import hookimpl, hookspecs
from effbench.observers import Observers
from running import make_suite, run, strange_plugins


def heard_by(*observers) -> tuple[Observers, list[str]]:
    manager, said = pluggy.PluginManager("effbench"), list[str]()
    manager.add_hookspecs(hookspecs)
    for number, observer in enumerate(observers):
        manager.register(observer, f"observer {number}")
    return Observers(manager, said.append), said


class Good:
    def __init__(self):
        self.heard = []

    @hookimpl
    def effbench_progress(self, step):
        self.heard.append(step)


class Bad:
    def __init__(self, fault):
        self.fault = fault

    @hookimpl
    def effbench_progress(self, trial, progress, step):
        raise self.fault


@pytest.mark.parametrize("fault", [ValueError("odd"), SystemExit("enough"), GeneratorExit("odd")])
def test_one_that_fails_hears_no_more(fault):
    good, last = Good(), Good()
    observers, said = heard_by(good, Bad(fault), last)
    for step in (1, 2):
        observers.tell("effbench_progress", trial=None, progress=0.5, step=step)
    assert good.heard == last.heard == [1, 2]
    kind = type(fault).__name__
    assert said == [f"observer observer 1 failed in effbench_progress and hears no more: {kind}: {fault}"]


def test_ctrl_c_is_no_fault_of_an_observer():
    observers, _ = heard_by(Bad(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        observers.tell("effbench_progress", trial=None, progress=0.5, step=1)


def test_where_nobody_reads_warnings_the_work_goes_on():
    def closed(text: str) -> None:
        raise BrokenPipeError

    observers, _ = heard_by()
    Observers(observers.manager, closed).warn("lost")


def test_a_plugin_may_offer_and_observe(server, tmp_path):
    plugins, said = strange_plugins(), []
    plugins.manager.register(Bad(RuntimeError("tired")), "tired")
    good = Good()
    plugins.manager.register(good, "good")
    done = run(server, tmp_path, make_suite(), plugins=plugins, warn=said.append)
    assert done.exit_code == 0
    assert len(said) == 1
    assert good.heard
    assert good.heard == sorted(good.heard)
