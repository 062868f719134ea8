"""Measuring prices: what counts, what is kept apart, and who pays for a fault."""

from __future__ import annotations

import json
import time
from functools import partial

import pytest
import torch

from effbench import calibrate, hookimpl, prices
from effbench.pricing import Price, Trouble
from effbench.recipe import Batch, Training
from effbench.records import label
from effbench.sets import parse_set
from effbench.switches import Switches
from effbench.techniques import compose
from running import by_label, log_of, make_suite, only, run, strange_plugins


def measured(*sets: str, unit: str = "flop", rounds: int = 5) -> dict[str, Price | Trouble]:
    plugins = strange_plugins()
    baseline = plugins.workloads["toy"].recipe(torch.device("cpu"))

    def recipe(text: str):
        return compose(baseline, parse_set(text) if text else {}, plugins.techniques)[0]

    makers = {text: partial(recipe, text) for text in sets}
    return calibrate.price(baseline, makers, unit=unit, step_seconds=0.5, rounds=rounds, seconds=0.0)


def test_flop_are_counted_exactly():
    found = measured("", "by_example(slices=4, seconds=0.0)", "half_batches")
    (plain,) = found[""].phases
    # forward 2mn and backward 2mn for each of two layers; the gradient of the inputs is not needed
    assert plain.cost == 20 * 2 * (8 * 16 * 2 + 16 * 2 * 3)
    assert plain.ratio == 1.0
    assert found["by_example(slices=4, seconds=0.0)"].phases[0].cost == plain.cost
    first, second = found["half_batches"].phases
    assert (first.start, second.start) == (0.0, pytest.approx(0.5, abs=2e-3))
    assert (first.cost, second.cost) == (plain.cost / 2, plain.cost)


def test_a_cost_that_changes_without_a_change_of_shape_has_prices_where_the_recipe_says_so():
    plain = strange_plugins().workloads["toy"].recipe(torch.device("cpu"))

    def gradient(training: Training, batch: Batch) -> torch.Tensor:
        if training.progress < 0.25:
            with torch.no_grad():
                training.forward(batch.inputs)
        return plain.gradient(training, batch)

    both = plain.wrap(gradient=gradient, phases=(0.25,)).at(0.5, lambda training: None)
    found = calibrate.price(plain, {"": lambda: both}, unit="flop", step_seconds=0.5, rounds=1, seconds=0.0)
    assert isinstance(price := found[""], Price)
    assert [phase.start for phase in price.phases] == [0.0, 0.25, 0.5]
    assert [phase.ratio for phase in price.phases] == [1 + (8 * 16 + 16 * 2) / (8 * 16 * 2 + 16 * 2 * 3), 1.0, 1.0]


def test_seconds_are_relative_to_the_baseline():
    found = measured("", "busy(seconds=0.02)", unit="reference", rounds=20)
    (plain,), (busy,) = found[""].phases, found["busy(seconds=0.02)"].phases
    assert 0.5 < plain.ratio < 2.0
    assert busy.ratio > 5.0
    assert busy.cost == busy.ratio * 0.5  # the workload says what the baseline's step costs
    assert busy.low <= busy.ratio <= busy.high
    assert busy.rounds == 20


def test_a_fault_is_charged_to_its_set_alone():
    plain = measured("half_batches")["half_batches"]
    sets = ["boom(step=0)", "broken", "late_refusal", "half_batches", "quitter", "forgetful", "rogue(at_once=true)"]
    for unit in ("flop", "reference"):
        found = measured(*sets, unit=unit)
        assert (found["boom(step=0)"].status, found["boom(step=0)"].reason) == ("failed", "RuntimeError: boom")
        assert "raise RuntimeError(text)" in found["boom(step=0)"].story
        assert found["broken"].reason == "ZeroDivisionError: broken at once"
        assert found["quitter"].reason == "SystemExit: enough"
        assert "does not require grad" in found["forgetful"].reason
        assert (found["late_refusal"].status, found["late_refusal"].stop_reason) == ("skipped", "refused")
        assert isinstance(found["half_batches"], Price)
        assert isinstance(found["rogue(at_once=true)"], Price)
    assert measured(*sets)["half_batches"] == plain


def test_who_throws_a_switch_later_pays_alone():
    found = measured("", "forgetful(step=5)", "half_batches", unit="reference", rounds=10)
    assert "does not require grad" in found["forgetful(step=5)"].reason
    assert isinstance(found[""], Price)
    assert isinstance(found["half_batches"], Price)


def test_global_switches_are_put_back():
    before = Switches.now()
    measured("rogue(at_once=true)", "forgetful", "")
    assert Switches.now() == before


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def hasty(monkeypatch):
    """Measure prices less well, but soon."""
    monkeypatch.setattr(prices, "ROUNDS", 5)
    monkeypatch.setattr(prices, "SECONDS", 0.02)


class Calibrations:
    """Counts how often prices are measured."""

    def __init__(self):
        self.groups: list[int] = []

    @hookimpl
    def effbench_calibration_started(self, groups):
        self.groups.append(groups)


def test_prices_are_measured_once_and_two_runs_agree_bit_by_bit(server, tmp_path, hasty):
    suite = make_suite("busy(seconds=0.002)", "half_batches", budget="0.02s reference", seeds=(0, 1))
    plugins, calibrations = strange_plugins(), Calibrations()
    plugins.manager.register(calibrations, "calibrations")
    first = run(server, tmp_path, suite, plugins=plugins)
    second = run(server, tmp_path, suite, plugins=plugins, fresh=True)
    assert calibrations.groups == [1]
    assert list(first.store.logs.iterdir()) == []
    assert {record.status for record in first.records} == {"ok"}
    assert [(r.label, r.seed, r.steps, r.metrics) for r in first.records] == [
        (r.label, r.seed, r.steps, r.metrics) for r in second.records
    ]
    found = by_label(first.records)
    assert found["baseline"].steps == 40  # 0.02 s at 0.0005 s a step, which is given and not measured
    assert found["busy(seconds=0.002)"].steps < 40
    entries = json.loads((tmp_path / "prices.json").read_text())
    assert sorted(entry["set"] for entry in entries.values()) == ["busy(seconds=0.002)", "half_batches"]
    assert run(server, tmp_path, suite, plugins=plugins).kept == 6


def test_who_cannot_be_priced_costs_its_own_rows(server, tmp_path, hasty):
    sets = ("busy", "boom(step=0)", "late_refusal", "suicide", "upside_down", "broken", "pair(fate='raises', step=0)")
    suite = make_suite(*sets, budget="0.01s reference")
    done = run(server, tmp_path, suite, jobs=2)
    found = by_label(done.records)
    assert {label: record.status for label, record in found.items()} == {
        "baseline": "ok",
        "busy": "ok",
        "boom(step=0)": "failed",
        "late_refusal": "skipped",
        "suicide": "killed",
        "upside_down": "failed",
        "broken": "failed",
        label(parse_set("pair(fate='raises', step=0)")): "failed",
    }
    assert found["boom(step=0)"].reason == "while its step was priced: RuntimeError: boom"
    assert "raise RuntimeError(text)" in log_of(done, found["boom(step=0)"])
    assert found["suicide"].reason.startswith("while its step was priced: killed by signal 9")
    assert "is bigger than that at 0.00 and yet seems cheaper" in found["upside_down"].reason
    assert found["broken"].reason == "ZeroDivisionError: broken at once"
    assert len(json.loads((tmp_path / "prices.json").read_text())) == 1  # what failed is measured again next time


def test_a_pair_is_priced_and_pays_for_both(server, tmp_path, hasty):
    done = run(server, tmp_path, make_suite("pair", budget="0.02s reference"), jobs=2)
    pair = only(done.records)
    assert (pair.status, pair.processes) == ("ok", 2)
    assert 0 < pair.steps < 40


def test_flop_budgets(server, tmp_path):
    plain = 20 * 2 * (8 * 16 * 2 + 16 * 2 * 3)
    done = run(server, tmp_path, make_suite("half_batches", budget=f"{30 * plain} flop"))
    found = by_label(done.records)
    assert (found["baseline"].steps, found["half_batches"].steps) == (30, 45)
    assert found["baseline"].spent == 30 * plain
    assert found["baseline"].flop == 30 * plain  # counted by the meter, step by step


def test_the_total_bounds_the_measuring_too(server, tmp_path, monkeypatch):
    monkeypatch.setattr(prices, "SECONDS", 60.0)
    began = time.monotonic()
    done = run(server, tmp_path, make_suite("busy", budget="0.1s reference", total="1s"))
    assert time.monotonic() - began < 10
    assert only(done.records).status == "not_started"
