"""Why two sets of results differ, and which do not belong together."""

import pytest

from effbench.analysis.explain import explain
from effbench.analysis.merging import mismatches
from record_factory import curve, record, several

RUNS = several("", [0.8, 0.9]) + several("ema", [0.81, 0.91])


def other(**changes):
    return several("", [0.8, 0.9], **changes) + several("ema", [0.81, 0.91], **changes)


def changed(found):
    return {each.what: (each.first, each.second) for each in found.changes}


def test_the_same_results_are_explained_by_nothing():
    found = explain(RUNS, other())
    assert found.is_same
    assert (found.common, found.equal, found.changes, found.partings) == (4, 4, (), ())
    assert {line.ratio.mean for line in found.lines} == {1.0}


def test_one_nan_is_as_good_as_another():
    def lost():
        return record("amp", value=float("nan"))

    assert explain([lost()], [lost()]).is_same
    assert not explain([lost()], [record("amp", value=0.5)]).is_same


def test_versions_machine_and_code_are_told():
    found = explain(
        RUNS,
        other(
            versions={"effbench": "0.1.0", "torch": "2.9.1"},
            environment={"processor": "Other CPU", "cores": 8, "system": "Linux x86_64", "device": "cpu"},
            threads=2,
            identity={"code of the workload": "abcd"},
        ),
    )
    assert changed(found) == {
        "machine": ("Test CPU, 2 cores, Linux x86_64", "Other CPU, 8 cores, Linux x86_64"),
        "threads of a trial": ("1", "2"),
        "torch": ("2.13.0", "2.9.1"),
        "code of the workload": ("none", "abcd"),
    }


def test_prices_that_differ_are_told():
    def price(ratio):
        return {"unit": "reference", "phases": [{"start": 0.0, "cost": ratio, "ratio": ratio}], "lumps": []}

    found = explain(several("ema", [0.8], price=price(1.5)), several("ema", [0.8], price=price(1.75)))
    assert changed(found) == {
        "price of ema on mnist1d_cnn": ("1.5 of the baseline's step", "1.75 of the baseline's step")
    }


def test_step_times_are_compared_line_by_line():
    slow = {"setup": 0.4, "data": 0.2, "forward_backward": 8.0, "update": 0.8}
    found = explain(RUNS, other(ledger=slow, wall_seconds=9.4))
    ratios = {line.line: line.ratio.mean for line in found.lines}
    assert ratios["forward_backward"] == pytest.approx(2.0)
    assert ratios["update"] == pytest.approx(1.0)
    seconds = {line.line: (line.first_seconds, line.second_seconds) for line in found.lines}
    assert seconds["forward_backward"] == (pytest.approx(4.0 / 400), pytest.approx(8.0 / 400))


def test_where_runs_of_one_seed_part_is_found():
    rows = curve(0.8)
    later = [dict(row) for row in rows]
    later[2]["accuracy"] += 1e-6
    found = explain([record(value=0.8, curve=rows)], [record(value=0.8, curve=later)])
    (parting,) = found.partings
    assert (parting.since, parting.step) == (160.0, 240.0)
    assert parting.second_value - parting.first_value == pytest.approx(1e-6)
    assert (parting.first_final, parting.second_final) == (0.8, 0.8)
    assert not found.is_same


def test_runs_that_part_after_the_last_common_look_are_told_too():
    found = explain([record(value=0.8, curve=curve(0.8))], [record(value=0.9, curve=curve(0.8))])
    (parting,) = found.partings
    assert (parting.since, parting.step) == (400.0, None)
    stopped = explain([record()], [record(status="failed", curve=[])])
    assert (stopped.partings[0].since, stopped.partings[0].second_final) == (0.0, None)


def test_what_only_one_has_is_named():
    found = explain(RUNS, several("", [0.8]) + several("sam", [0.9]))
    assert found.only_first == (
        "mnist1d_cnn, baseline, 5s reference: seeds 1",
        "mnist1d_cnn, ema, 5s reference: seeds 0, 1",
    )
    assert found.only_second == ("mnist1d_cnn, sam, 5s reference: seeds 0",)


# --- apples and pears ---------------------------------------------------------------------------------------------


def test_halves_of_one_suite_belong_together():
    assert mismatches(RUNS, several("", [0.7], budget="10s reference")) == []
    assert mismatches(RUNS, []) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"suite": "other"}, "suite: quick against other; a suite is one question"),
        ({"versions": {"effbench": "0.2.7"}}, "version of effbench: 0.1 against 0.2; results compare within one"),
        ({"budget": "5s cpu", "clock": "cpu"}, "clock of mnist1d_cnn: reference against cpu; an amount of one"),
        ({"environment": {"device": "NVIDIA H200"}}, "hardware: Test CPU, Linux x86_64 against NVIDIA H200; speeds"),
        ({"threads": 2}, "threads of a trial: 1 against 2; speed and rounding"),
    ],
)
def test_apples_and_pears_are_told_apart(change, said):
    (found,) = mismatches(RUNS, other(**change))
    assert str(found).startswith(said)


def test_a_patch_of_effbench_is_no_pear():
    assert mismatches(RUNS, other(versions={"effbench": "0.1.9"})) == []


def test_another_price_list_is_a_pear():
    def priced(cost):
        return {"unit": "reference", "phases": [{"start": 0.0, "cost": cost, "ratio": 1.0}], "lumps": []}

    (found,) = mismatches(other(price=priced(0.01)), other(price=priced(0.02)))
    assert str(found) == (
        "price of baseline on mnist1d_cnn (and 1 more): 0.01 reference a step against 0.02 reference a step; share one "
        "prices.json between the machines, so that a budget buys the same steps on both"
    )


def test_suites_that_ask_otherwise_are_pears():
    (found,) = mismatches(RUNS, RUNS, ({"ladder": [0.5, 1]}, {"ladder": []}))
    assert str(found).startswith("ladder of the suite: [0.5, 1] against none")
