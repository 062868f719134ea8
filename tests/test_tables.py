"""Tables say what the records say, with as many digits as the interval vouches for."""
# ruff: noqa: RUF001 - a minus is a minus here, and a multiplication sign one

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effbench.analysis.intervals import Estimate, estimate
from effbench.analysis.ratios import Ratio, positive_mean
from effbench.report import numbers
from effbench.report.tables import comparison_table
from record_factory import record, several

BASELINE = [0.80, 0.82, 0.81]


def cells(table, label):
    (row,) = [row for row in table.rows if row.values["technique"] == label]
    return dict(zip([column.key for column in table.columns], row.cells, strict=True))


def said(table, kind):
    return [remark.text for remark in table.remarks if remark.kind == kind]


def around(mean, half):
    return Estimate(5, mean, 1.0, mean - half, mean + half)


@pytest.mark.parametrize(
    ("mean", "half", "text"),
    [
        (0.83123, 0.0043, "0.8312 ± 0.0043"),
        (0.83123, 0.043, "0.831 ± 0.043"),
        (0.83123, 0.43, "0.83 ± 0.43"),
        (12345.6, 678.9, "12346 ± 679"),
        (0.8, 0.0996, "0.80 ± 0.10"),
        (-2.345, 0.12, "−2.35 ± 0.12"),
        (0.5, 0.0, "0.5 ± 0.0"),
        (3e-7, 1e-8, "3.000e−07 ± 1.0e−08"),
        (0.83123, 1e-9, "0.831230 ± 1.0e−09"),
    ],
)
def test_the_digits_of_a_mean_follow_its_interval(mean, half, text):
    assert numbers.mean(around(mean, half)) == text


@pytest.mark.parametrize(
    ("mean", "half", "text"),
    [
        (0.0111, 0.0059, "+0.0111 [+0.0052, +0.0170]"),
        (-0.0111, 0.059, "−0.011 [−0.070, +0.048]"),
        (0.0, 0.0, "0 [0, 0]"),
    ],
)
def test_the_digits_of_a_difference_follow_its_interval(mean, half, text):
    assert numbers.difference(around(mean, half)) == text


def test_what_is_unknown_is_a_dash_and_one_value_stands_alone():
    assert numbers.mean(Estimate(0)) == "—"
    assert numbers.mean(Estimate(1, 0.83123)) == "0.8312"
    assert numbers.difference(Estimate(1, -0.01234)) == "−0.0123"
    assert [numbers.nonfinite(x) for x in (math.nan, math.inf, -math.inf)] == ["NaN", "+inf", "−inf"]


@settings(deadline=None)
@given(st.floats(-1e300, 1e300), st.integers(1, 6))
def test_significant_digits_are_right(value, digits):
    text = numbers.significant(value, digits).replace("−", "-")
    assert math.isclose(float(text), value, rel_tol=0.51 * 10 ** (1 - digits))


@settings(deadline=None)  # the first interval imports scipy
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=6))
def test_any_mean_can_be_written(values):
    head, _, half = numbers.mean(estimate(values)).replace("−", "-").partition(" ± ")
    found = estimate(values)
    width = found.half_width or 0.0  # of equal values there may be none
    assert abs(float(head) - found.mean) <= max(0.051 * width, 1e-6, 1e-3 * abs(found.mean))
    assert math.isclose(float(half or 0.0), width, rel_tol=0.051, abs_tol=1e-6)


def test_the_table_of_a_small_study():
    records = several("", BASELINE) + several({"ema": {"decay": 0.99}}, [0.849, 0.871, 0.861])
    for each in records[3:]:
        each.examples_per_second = 2304.0 + 0.9 * each.seed
    (table,) = comparison_table(records)
    assert (table.title, table.caption) == (
        "mnist1d_cnn, 5s reference",
        "test accuracy, more is better, 3 seeds",
    )
    assert [column.title for column in table.columns] == [
        "technique",
        "n",
        "accuracy",
        "Δ vs baseline",
        "verdict",
        "s to target",
        "examples/s",
        "peak MiB",
        "set-up s",
    ]
    assert cells(table, "baseline") == {
        "technique": "baseline",
        "n": "3/3",
        "mean": "0.810 ± 0.025",
        "difference": "—",
        "verdict": "—",
        "time_to_target": "4.63 [4.49, 4.77]",
        "examples_per_second": "2561",
        "peak_memory_mib": "31.5",
        "setup_seconds": "0.400",
    }
    assert cells(table, "ema(decay=0.99)") | {"time_to_target": ""} == {
        "technique": "ema(decay=0.99)",
        "n": "3/3",
        "mean": "0.860 ± 0.027",
        "difference": "+0.0503 [+0.0475, +0.0532]",
        "verdict": "better ★",
        "time_to_target": "",
        "examples_per_second": "2305 (0.90×)",
        "peak_memory_mib": "31.5",
        "setup_seconds": "0.400",
    }
    values = table.rows[1].values
    assert values["difference"] == pytest.approx(0.151 / 3)
    assert values["mean"] == pytest.approx(0.8603333)
    assert (values["verdict"], values["best"], values["pairs"]) == ("better", True, 3)


def test_speeds_and_times_have_intervals_of_logarithms():
    # By hand: t(2) = 4.302653 and the spread of the logarithms is ln 2, so that exp(4.302653 ln 2 / sqrt(3)) = 5.595.
    records = several("", BASELINE)
    for each, value in zip(records, (1000.0, 2000.0, 4000.0), strict=True):
        each.examples_per_second, each.setup_seconds = value, value / 1000.0
        each.curve = [{"spent": value, "steps": 1, "accuracy": 0.76}]
    (table,) = comparison_table(records)
    values = table.rows[0].values
    for key, geometric in (("examples_per_second", 2000.0), ("spent_at_target", 2000.0)):
        ends = (values[key], values[f"{key}_low"], values[f"{key}_high"])
        assert ends == pytest.approx((geometric, geometric / 5.5951, geometric * 5.5951), rel=1e-4)
    assert values["setup_seconds"] == pytest.approx(2.0)
    assert cells(table, "baseline")["time_to_target"] == "2000 [357, 11190]"
    (table,) = comparison_table(records, metric="setup_seconds")
    assert cells(table, "baseline")["mean"] == "2.00 [0.36, 11]"
    assert table.rows[0].values["mean_low"] == pytest.approx(2.0 / 5.5951, rel=1e-4)
    assert "means are geometric, with their 95 % interval (Student's t of logarithms)" in said(table, "note")


def test_a_set_up_that_took_no_time_has_a_mean_and_no_interval():
    records = several("", BASELINE, setup_seconds=0.0)
    records[0].setup_seconds = 3.0
    (table,) = comparison_table(records, metric="setup_seconds")
    values = table.rows[0].values
    assert (values["mean"], values["mean_low"], values["setup_seconds"]) == (1.0, None, 1.0)
    assert cells(table, "baseline")["mean"] == "1.000"


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (Ratio(0), "—"),
        (Ratio(1, 7.12345), "7.123"),
        (Ratio(5, 7.1234, 6.7612, 7.5049), "7.12 [6.76, 7.50]"),
        (Ratio(5, 1.2528, 1.2528, 1.2528), "1.253 [1.253, 1.253]"),
        (Ratio(2, 7.5, 4.56, 12.33), "7.5 [4.6, 12.3]"),
        (Ratio(2, 0.765, 0.0012, 487.6), "0.765 [0.0012, 488]"),
        (Ratio(2, 2561.4, 2120.0, 3094.7), "2561 [2120, 3095]"),
        (Ratio(2, 1e-300, 0.0, math.inf), "1.00e−300 [0, +inf]"),
    ],
)
def test_the_interval_of_a_geometric_mean_has_two_ends(found, text):
    assert numbers.geometric(found) == text


@settings(deadline=None)
@given(st.lists(st.floats(1e-300, 1e300), min_size=2, max_size=6))
def test_any_geometric_mean_can_be_written(values):
    found = positive_mean(values)
    head, bracket, ends = numbers.geometric(found).replace("−", "-").partition(" [")
    assert math.isclose(float(head), found.mean, rel_tol=0.051)
    if bracket:
        assert 0.0 <= found.low <= found.mean <= found.high
        assert 0.0 <= float(ends.partition(", ")[0]) <= found.low * 1.06


def test_targets_that_are_not_reached_are_said_to_be():
    records = several("", BASELINE, target=0.805) + several("sam", [0.7, 0.71, 0.72], target=0.805)
    (table,) = comparison_table(records)
    assert cells(table, "baseline")["time_to_target"] == "2/3 reached"
    assert cells(table, "sam")["time_to_target"] == "> 5"
    assert "target: accuracy 0.805 on validation" in said(table, "note")


def test_the_unit_of_the_budget_is_in_the_title():
    (table,) = comparison_table(several("", BASELINE, budget="1k steps", clock="steps", target=0.9))
    assert "steps to target" in [column.title for column in table.columns]
    assert cells(table, "baseline")["time_to_target"] == "> 1000"


def test_columns_without_numbers_are_left_out():
    bare = {"target": None, "examples_per_second": None, "peak_memory_mib": None}
    (table,) = comparison_table(several("", BASELINE, **bare))
    assert [column.key for column in table.columns] == ["technique", "n", "mean", "setup_seconds"]


def test_failures_and_refusals_are_told_with_their_reasons():
    records = several("", BASELINE)
    records += [record("mixup", seed=s, status="skipped", reason="mixup averages\nclass labels") for s in range(3)]
    records += [
        *several("boom", [0.9]),
        record("boom", seed=1, status="failed", reason="ValueError: x", log="logs/b.log"),
    ]
    records += [record("boom", seed=2, status="no_steps")]
    (table,) = comparison_table(records)
    assert said(table, "problem") == [
        "boom: failed, seed 1: ValueError: x (logs/b.log)",
        "boom: no steps, seed 2",
        "mixup: skipped, seeds 0, 1, 2: mixup averages class labels",
    ]
    assert [(row.cells[1], row.verdict) for row in table.rows] == [("3/3", ""), ("1/3", "breaks"), ("0/3", "skipped")]
    assert table.rows[1].values["statuses"] == "failed=1 no_steps=1 ok=1"


def test_each_kind_of_no_number_has_its_marker():
    for value, mark in ((math.nan, "NaN"), (math.inf, "+inf"), (-math.inf, "−inf")):
        records = several("", BASELINE) + several("amp", [0.5, 0.6, value])
        (table,) = comparison_table(records)
        assert cells(table, "amp")["mean"] == f"0.55 ± 0.64 (1 {mark})"
        assert cells(table, "amp")["n"] == "2/3"
        assert f"amp: {mark} instead of a number in 1 of 3 trials" in said(table, "problem")
    (table,) = comparison_table(several("", [math.nan] * 3))
    assert cells(table, "baseline")["mean"] == "NaN"


def test_a_one_seed_row_shows_no_spread():
    (table,) = comparison_table(several("", [0.8]) + several("ema", [0.85]))
    assert cells(table, "ema")["mean"] == "0.8500"
    assert cells(table, "ema")["difference"] == "+0.0500"


def test_what_does_not_compare_stands_apart_and_says_why():
    tables = comparison_table(several("", BASELINE) + several("", BASELINE, clock="cpu"))
    assert [table.title for table in tables] == [
        "mnist1d_cnn, 5s reference (reference 0.1)",
        "mnist1d_cnn, 5s reference (cpu 0.1)",
    ]
    why = "records of another clock or version of effbench stand in a table of their own"
    assert all(why in said(table, "caveat") for table in tables)


def test_the_notes_tell_how_the_numbers_were_made():
    (table,) = comparison_table(several("", BASELINE) + several("a", [0.85, 0.86, 0.89]) + several("b", BASELINE[::-1]))
    notes = "\n".join(said(table, "note"))
    assert "±: half of the 95 % interval of the mean over seeds (Student's t)" in notes
    assert "the intervals of Δ are widened for 2 comparisons (Holm)" in notes
    assert "budgets are counted in seconds at the prices of the reference machine" in notes
    assert "Test CPU, 2 cores, Linux x86_64; 1 thread a trial, 2 at a time; effbench 0.1.0, torch 2.13.0" in notes


def test_all_rows_of_all_tables_have_the_same_keys():
    records = [*several("", BASELINE), record("a", seed=0, status="failed"), *several("", [1.0], workload="b")]
    keys = {tuple(row.values) for table in comparison_table(records) for row in table.rows}
    assert len(keys) == 1
