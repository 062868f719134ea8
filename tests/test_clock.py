"""Where the time goes, and how much of a budget is spent; every clock here is told the time by the test."""

from __future__ import annotations

import dataclasses
import inspect
import time

import pytest

from effbench.clock import (
    CLOCKS,
    OFF_THE_CLOCK,
    ON_THE_CLOCK,
    CpuClock,
    EpochClock,
    ExampleClock,
    Ledger,
    StepClock,
    TokenClock,
    WallClock,
)
from effbench.distributed.launch import run_ranks
from effbench.errors import NotApplicable, UnknownName
from effbench.toys import TOYS
from effbench.train import start


class Time:
    """A clock that stands still until it is told."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds

    def __iadd__(self, seconds: float) -> Time:
        self.seconds += seconds
        return self


@pytest.fixture
def wall() -> Time:
    return Time()


@pytest.fixture
def cpu() -> Time:
    return Time()


# --- the ledger ---------------------------------------------------------------------------------------------------


def test_every_moment_belongs_to_one_line(wall, cpu):
    ledger = Ledger(wall, cpu)
    assert ledger.spent_cpu() == 0
    for seconds, line in enumerate((*ON_THE_CLOCK, *OFF_THE_CLOCK), start=1):
        ledger.switch(line)
        wall += seconds
        cpu += seconds / 2
    ledger.switch("idle")
    ledger.close()
    assert ledger.wall == {"setup": 5, "data": 1, "forward_backward": 2, "update": 3, "extra": 4, "evaluation": 6} | {
        "checkpoint": 7,
        "metering": 8,
        "idle": 9,
    }
    assert sum(ledger.wall.values()) == wall() - 100.0
    assert ledger.cpu_seconds() == cpu() - 100.0
    assert ledger.spent_wall() == 1 + 2 + 3 + 4
    assert ledger.spent_cpu() == (1 + 2 + 3 + 4) / 2


def test_what_comes_before_the_first_line_is_set_up(wall, cpu):
    wall += 3
    ledger = Ledger(wall, cpu, since=100.0)
    wall += 4
    ledger.switch("data")
    assert ledger.wall["setup"] == 7


def test_a_line_goes_back_to_the_one_that_was_open_even_after_an_error(wall, cpu):
    ledger = Ledger(wall, cpu)
    ledger.switch("data")
    wall += 1
    with ledger.line("extra"):
        wall += 2
        with ledger.line("evaluation"):
            wall += 4
        wall += 8
    wall += 16

    def fail() -> None:
        nonlocal wall
        with ledger.line("update"):
            wall += 32
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    wall += 64
    assert ledger.spent_wall() == 1 + 2 + 8 + 16 + 32 + 64
    assert ledger.wall == dict.fromkeys(ledger.wall, 0.0) | {"data": 81, "extra": 10, "evaluation": 4, "update": 32}


def test_reading_the_total_counts_what_is_still_open(wall, cpu):
    ledger = Ledger(wall, cpu)
    ledger.switch("forward_backward")
    wall += 5
    assert ledger.spent_wall() == 5
    wall += 5
    assert ledger.spent_wall() == 10
    with ledger.line("evaluation"):
        wall += 5
        assert ledger.spent_wall() == 10


def test_a_misspelt_line_is_refused_where_it_is_written(wall, cpu):
    ledger = Ledger(wall, cpu)
    with pytest.raises(UnknownName, match=r"no line of the ledger 'evaluatoin'; did you mean 'evaluation'\?"):
        ledger.switch("evaluatoin")


def test_work_that_a_device_has_still_to_do_is_not_given_to_evaluation(wall, cpu):
    """A device works on for seconds after it was told what to do; whoever waits for it is charged."""
    pending = [0.0]

    def wait() -> None:
        nonlocal wall
        wall += pending[0]
        pending[0] = 0.0

    ledger = Ledger(wall, cpu, synchronize=wait)
    ledger.switch("forward_backward")
    pending[0] = 3.0
    ledger.switch("update")
    with ledger.line("evaluation"):
        pending[0] = 5.0
    assert ledger.wall["update"] == 3.0
    assert ledger.wall["evaluation"] == 5.0
    pending[0] = 7.0
    with ledger.line("extra"):
        pass
    pending[0] = 1.0
    assert ledger.spent_wall() == 3.0 + 7.0 + 1.0
    assert sum(ledger.wall.values()) == wall() - 100.0


def test_the_ledger_reads_clocks_that_no_one_can_set_back(monkeypatch):
    defaults = {p.name: p.default for p in inspect.signature(Ledger).parameters.values()}
    assert defaults["now"] is time.monotonic
    assert defaults["cpu"] is time.process_time
    jumping = iter([1e9, 1e9 - 3600, 1e9 + 3600])
    monkeypatch.setattr(time, "time", lambda: next(jumping))
    ledger = Ledger()
    ledger.switch("data")
    ledger.switch("idle")
    assert all(0 <= seconds < 60 for seconds in (*ledger.wall.values(), ledger.cpu_seconds()))
    assert next(jumping) == 1e9  # nobody asked


# --- clocks that count --------------------------------------------------------------------------------------------


def training(**counts):
    begun = start(TOYS["text"](), 0)
    return dataclasses.replace(begun, **counts)


@pytest.mark.parametrize(
    ("clock", "spent"),
    [(StepClock(), 3), (ExampleClock(), 48), (EpochClock(), 48 / 40), (TokenClock(), 576)],
    ids=lambda value: type(value).__name__,
)
def test_clocks_count_what_they_are_named_after(clock, spent):
    assert clock.spent(training(step=3, examples=48, tokens=576)) == spent


def test_an_epoch_is_one_of_the_baseline_whatever_the_technique_does_to_the_data():
    begun = start(TOYS["text"](), 0, epoch_examples=80)
    begun.examples = 40
    assert EpochClock().spent(begun) == 0.5


def test_clocks_of_time_read_the_ledger(wall, cpu):
    ledger = Ledger(wall, cpu)
    begun = start(TOYS["vectors"](), 0, ledger=ledger)
    ledger.switch("data")
    assert CpuClock().spent(begun) == 0
    wall += 3
    cpu += 2
    ledger.switch("evaluation")
    wall += 10
    cpu += 10
    assert WallClock().spent(begun) == 3
    assert CpuClock().spent(begun) == 2


def test_the_cpu_clock_is_asked_in_no_step_where_the_budget_does_not_want_it(wall):
    asked = []
    ledger = Ledger(wall, lambda: float(len(asked.append(None) or asked)))
    for _ in range(10):
        ledger.switch("data")
        ledger.switch("idle")
    assert len(asked) == 1  # when it was made


def test_cpu_seconds_are_added_up_over_the_processes():
    def body(group):
        cpu = Time()
        ledger = Ledger(Time(), cpu)
        begun = start(TOYS["vectors"](), 0, ledger=ledger, group=group)
        ledger.switch("data")
        assert CpuClock().spent(begun) == 0
        cpu += 1.0 + group.rank
        return CpuClock().spent(begun)

    assert run_ranks(2, body) == 3.0


def test_tokens_are_no_unit_where_there_are_none():
    begun = start(TOYS["vectors"](), 0)
    assert TokenClock().spent(begun) == 0
    begun.step, begun.examples = 1, 16
    with pytest.raises(NotApplicable, match="a budget of tokens needs a workload whose inputs are tokens"):
        TokenClock().spent(begun)


def test_every_unit_that_needs_no_price_has_a_clock():
    assert {unit: clock.__name__ for unit, clock in CLOCKS.items()} == {
        "seconds": "WallClock",
        "cpu": "CpuClock",
        "steps": "StepClock",
        "epochs": "EpochClock",
        "examples": "ExampleClock",
        "tokens": "TokenClock",
    }
