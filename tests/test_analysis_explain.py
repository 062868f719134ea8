"""Why two sets of results differ, and which do not belong together."""

import math

import pytest

from effbench.analysis.costs import cost
from effbench.analysis.explain import Missing, explain
from effbench.analysis.merging import mismatches
from effbench.commands.explain import lines
from effbench.report.console import Screen
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
        ),
    )
    assert changed(found) == {
        "machine": ("Test CPU, 2 cores, Linux x86_64", "Other CPU, 8 cores, Linux x86_64"),
        "threads of a trial": ("1", "2"),
        "torch": ("2.13.0", "2.9.1"),
    }


def test_code_and_data_that_both_have_are_compared_by_workload():
    def made(workload, data, **code):
        parts = {f"code of {name}": value for name, value in code.items()}
        facts = {
            "harness": "1234567890",
            "code of the workload": f"{workload} code",
            "data": data,
            "threads": "1",
            **parts,
        }
        return record("ema", workload=workload, key=workload, identity=facts)

    first = [made("digits_mlp", "d" * 16, ema="e" * 16, sam="s" * 16), made("mnist1d_cnn", "m" * 16, ema="e" * 16)]
    second = [made("digits_mlp", "D" * 16, ema="E" * 16), made("kjv_gpt", "k" * 16)]
    assert changed(explain(first, second)) == {
        "code of ema": ("eeeeeeee", "EEEEEEEE"),
        "data of digits_mlp": ("dddddddd", "DDDDDDDD"),
    }


def test_prices_that_differ_are_told():
    def price(ratio):
        return {"unit": "reference", "phases": [{"start": 0.0, "cost": ratio, "ratio": ratio}], "lumps": []}

    found = explain(several("ema", [0.8], price=price(1.5)), several("ema", [0.8], price=price(1.75)))
    assert changed(found) == {
        "price of ema on mnist1d_cnn": ("1.5 of the baseline's step", "1.75 of the baseline's step")
    }


def test_prices_that_another_version_wrote_are_told_apart_and_not_read():
    ours, theirs = several("ema", [0.8], price={"each": 1.0}), several("ema", [0.8], price={"each": 2.0})
    assert changed(explain(ours, theirs)) == {}
    (found,) = mismatches(ours, theirs)
    assert str(found).startswith('price of ema on mnist1d_cnn: {"each": 1.0} against {"each": 2.0}; share one')
    assert not cost(ours, several("", [0.8])).is_priced


def test_step_times_are_compared_line_by_line():
    slow = {"setup": 0.4, "data": 0.2, "forward_backward": 8.0, "update": 0.8}
    found = explain(RUNS, other(ledger=slow, wall_seconds=9.4))
    ratios = {line.line: line.ratio.mean for line in found.lines}
    assert ratios["forward_backward"] == pytest.approx(2.0)
    assert ratios["update"] == pytest.approx(1.0)
    seconds = {line.line: (line.first_seconds, line.second_seconds) for line in found.lines}
    assert seconds["forward_backward"] == (pytest.approx(4.0 / 400), pytest.approx(8.0 / 400))
    assert seconds["setup"] == (pytest.approx(0.4), pytest.approx(0.4))  # of a run: it does not grow with the steps
    assert [line.of_a_step for line in found.lines] == [True, True, True, False, False]
    assert [line.line for line in found.lines] == ["data", "forward_backward", "update", "setup", "whole run"]


def test_ratios_say_what_they_are_paired_over():
    text = "\n".join(lines(explain(RUNS, other()), Screen.of()))
    assert "At most: mnist1d_cnn 4 pairs. Other work on the machine is in the ratios." in text


def test_the_ratio_of_times_is_that_of_the_times_beside_it():
    first, second = several("", [0.8, 0.9, 0.85]), several("", [0.8, 0.9, 0.85])
    for each, seconds in zip((*first, *second), (1.0, 2.0, 4.0, 2.0, 8.0, 4.0), strict=True):
        each.ledger = {"data": seconds}
    line = explain(first, second).lines[0]
    assert line.ratio.mean == pytest.approx(2.0)
    assert (400 * line.first_seconds, 400 * line.second_seconds) == (pytest.approx(2.0), pytest.approx(4.0))


def test_lines_that_only_some_ledgers_have_are_compared_where_both_have_them():
    first, second = several("", [0.8, 0.9, 0.85]), several("", [0.8, 0.9, 0.85])
    first[0].ledger |= {"checkpoint": 1.0, "evaluation": math.inf}
    second[0].ledger |= {"checkpoint": 3.0, "evaluation": 2.0}
    second[1].ledger |= {"extra": 3.0}
    ratios = {line.line: (line.ratio.n, line.ratio.mean) for line in explain(first, second).lines}
    assert ratios["checkpoint"] == (1, pytest.approx(3.0))
    assert not {"evaluation", "extra"} & set(ratios)


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
    never = record("lion", status="not_started")
    found = explain([*RUNS, never], several("", [0.8]) + several("sam", [0.9]))
    assert found.only_first == (
        Missing("mnist1d_cnn", "5s reference", "baseline", (1,)),
        Missing("mnist1d_cnn", "5s reference", "ema", (0, 1)),
    )
    assert found.only_second == (Missing("mnist1d_cnn", "5s reference", "sam", (0,)),)


def test_what_became_of_a_run_without_a_result_is_told():
    (parting,) = explain([record()], [record(status="no_steps")]).partings
    assert (parting.first_status, parting.second_status) == ("ok", "no_steps")


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
