"""Composing: what a technique's function does to its process costs its own trials alone."""

from __future__ import annotations

import dataclasses

import pytest

from effbench import composing
from effbench.errors import DataUnavailable
from effbench.planning import Composed, Settings
from running import by_label, composed, log_of, make_suite, run, strange_plugins, survivors


def test_one_that_ends_its_process_costs_its_own_trials(server, tmp_path):
    done = run(server, tmp_path, make_suite("goner", "slow", "goner+slow"))
    found = by_label(done.records)
    assert {name: record.status for name, record in found.items()} == {
        "baseline": "ok",
        "goner": "failed",
        "goner+slow": "failed",
        "slow": "ok",
    }
    assert found["goner"].reason == "while the set was composed: its process ended with exit code 5 and left no record"
    assert "goner was here" in log_of(done, found["goner"])
    assert done.exit_code == 1
    assert survivors(server) == []


@pytest.mark.parametrize("deaf", ["true", "false"])
def test_one_that_never_returns_is_ended(server, tmp_path, monkeypatch, deaf):
    monkeypatch.setattr(composing, "SECONDS", 0.5)
    done = run(server, tmp_path, make_suite(f"dreamer(deaf={deaf})", "slow"))
    (dreamer,) = [record for record in done.records if "dreamer" in record.techniques]
    assert (dreamer.status, dreamer.stop_reason, dreamer.steps) == ("timeout", "deadline", 0)
    assert dreamer.reason == "while the set was composed: not done after 0.5 s, and ended"
    assert "misbehaving.py" in log_of(done, dreamer)  # where it hung
    assert {record.status for record in done.records if record is not dreamer} == {"ok"}
    assert survivors(server) == []


@pytest.mark.parametrize(
    ("workload", "reason"),
    [
        ("raises", "KeyError: 'no baseline today'"),
        ("leaves", "while the set was composed: its process ended with exit code 6 and left no record"),
    ],
)
def test_a_workload_without_a_baseline_costs_its_own_trials(server, tmp_path, workload, reason):
    done = run(server, tmp_path, make_suite("slow", workloads=("toy", workload)))
    gone = [record for record in done.records if record.workload == workload]
    assert [(record.status, record.reason) for record in gone] == [("failed", reason)] * 2
    assert {record.status for record in done.records if record.workload == "toy"} == {"ok"}


def test_data_that_is_not_here_is_told_before_anything_trains():
    plugins = strange_plugins()

    def missing(device):
        raise DataUnavailable("the shelf is empty")

    plugins.workloads["toy"] = dataclasses.replace(plugins.workloads["toy"], recipe=missing)
    with pytest.raises(DataUnavailable, match="the shelf is empty"):
        composed(make_suite("slow"), plugins, Settings())


def test_what_comes_of_composing_goes_through_json():
    (cell,) = [cell for cell in composed(make_suite("broken"), strange_plugins(), Settings()) if cell.techniques]
    assert cell.composed.trouble is not None
    assert Composed.from_plain(cell.composed.to_plain()) == cell.composed
