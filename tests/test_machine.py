"""What a record says of the machine, and what it cannot vouch for."""

from __future__ import annotations

import datetime as dt
import re

import pytest

from effbench import machine
from effbench.outcomes import doubts, how_it_ended
from record_factory import record


def test_the_machine_is_named():
    found = machine.environment()
    assert found["cores"] >= 1
    assert found["memory_gib"] > 0
    assert found["processor"]
    assert found["device"] == "cpu"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", machine.now())
    assert set(machine.versions()) == {"effbench", "python", "torch", "numpy"}
    assert machine.disturbance()["involuntary_switches"] >= 0


def after(seconds: float) -> dict[str, str]:
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    return {"started": start.isoformat(), "finished": (start + dt.timedelta(seconds=seconds)).isoformat()}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, []),
        ({"wall_seconds": 5.46}, ["the ledger's lines and the wall time are more than 1 % apart"]),
        ({"wall_seconds": 5.34}, ["the ledger's lines and the wall time are more than 1 % apart"]),
        ({"wall_seconds": 5.44}, []),
        (after(5.0), []),
        (after(15.0), ["the system clock was set meanwhile, or the machine slept"]),
        (after(-3600.0), ["the system clock was set meanwhile, or the machine slept"]),
        ({"jobs": 3}, ["more threads than cores: 3 on 2"]),
        ({"threads": 2}, ["more threads than cores: 4 on 2"]),
        ({"environment": {"cores": 2, "load_after": 3.5}}, ["the machine was busy with other work"]),
        ({"environment": {"cores": 2, "load_after": 2.5}}, []),
    ],
)
def test_doubts(changes, found):
    assert doubts(record(**changes)) == found


def test_how_a_process_ended():
    assert how_it_ended("signal 9") == ("killed", "failed", "killed by signal 9 (SIGKILL: perhaps the memory ran out)")
    assert how_it_ended("signal 250")[2] == "killed by signal 250 (unknown)"
    assert how_it_ended("exit code 3")[2] == "its process ended with exit code 3 and left no record"
    assert how_it_ended("")[:2] == ("failed", "failed")
    assert how_it_ended("no process: Cannot allocate memory") == (
        "failed",
        "failed",
        "no process: Cannot allocate memory",
    )
