"""Time to target depends on the curve, not on when it was looked at."""

import math

import pytest

from effbench.analysis.targets import spent_at_target, time_to_target
from record_factory import curve, record


def row(spent, value):
    return {"progress": spent / 5, "spent": spent, "steps": spent * 80, "accuracy": value}


def test_the_crossing_lies_on_the_line_between_two_looks():
    found = record(curve=[row(1.0, 0.5), row(2.0, 0.7), row(3.0, 0.9)], target=0.75)
    assert spent_at_target(found) == pytest.approx(2.25)


@pytest.mark.parametrize("points", [5, 7, 20, 100])
def test_it_does_not_depend_on_how_often_the_run_is_evaluated(points):
    assert spent_at_target(record(curve=curve(0.9, points), target=0.6)) == pytest.approx(5.0 * 0.6 / 0.9)


@pytest.mark.parametrize("points", [10, 17, 40, 200])
def test_nor_where_the_curve_is_bent(points):
    rows = [row(t, 0.9 * (1.0 - math.exp(-t))) for t in (5.0 * (i + 1) / points for i in range(points))]
    assert spent_at_target(record(curve=rows, target=0.7)) == pytest.approx(math.log(0.9 / 0.2), rel=0.025)


def test_less_may_be_better():
    rows = [{"spent": 1.0, "loss": 3.0}, {"spent": 2.0, "loss": 1.0}]
    assert spent_at_target(record(curve=rows, metric="loss", higher_is_better=False, target=1.5)) == pytest.approx(1.75)


def test_the_first_crossing_counts_and_gaps_are_bridged():
    rows = [row(1.0, 0.5), row(2.0, math.nan), row(3.0, 0.9), row(4.0, 0.6), row(5.0, 0.95)]
    assert spent_at_target(record(curve=rows, target=0.7)) == pytest.approx(2.0)


def test_a_target_met_at_the_first_look_is_met_there():
    assert spent_at_target(record(curve=[row(1.0, 0.9)], target=0.8)) == 1.0


def test_what_is_not_reached_is_censored_and_not_averaged_away():
    reached, short = record(value=0.9, target=0.8), record(value=0.7, seed=1, target=0.8)
    assert spent_at_target(short) is None
    both = time_to_target([reached, short])
    assert (both.reached, both.seeds, both.mean.mean) == (1, 2, None)
    alone = time_to_target([reached])
    assert alone.mean.mean == pytest.approx(5.0 * 0.8 / 0.9)


def test_a_run_that_breaks_down_did_not_get_there():
    broken = record(status="diverged", curve=curve(0.9), target=0.5)
    assert time_to_target([record(value=0.9, target=0.5), broken]).reached == 1


def test_a_run_that_ends_with_no_number_did_not_get_there():
    lost = record(value=0.9, seed=1, target=0.5)
    lost.metrics["test"]["accuracy"] = math.nan
    found = time_to_target([record(value=0.9, target=0.5), lost])
    assert (found.reached, found.seeds, found.mean.mean, found.censored) == (1, 2, None, (math.inf,))


def test_without_a_target_there_is_no_time_to_it():
    assert time_to_target([record(target=None)]) is None
