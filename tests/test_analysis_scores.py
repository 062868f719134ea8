"""A score says how a set stands to the baseline, and nothing of who else is there."""

import math

import numpy as np
import pytest

from effbench.analysis.chances import chances_of_being_best
from effbench.analysis.comparison import compare
from effbench.analysis.intervals import p_value, t_quantile
from effbench.analysis.ratios import geometric_mean, paired_ratios
from effbench.analysis.scores import rungs, scores
from effbench.analysis.strata import BOOTSTRAP_FROM, strata_mean
from record_factory import record, several, study

WORKLOADS = ("a", "b")


def by_label(records):
    (rung,) = scores(compare(records))
    return {each.label: each for each in rung}


def test_a_score_is_the_geometric_mean_over_workloads_and_seeds():
    records = several("", [0.5, 0.5], workload="a") + several("ema", [0.6, 0.5], workload="a")
    records += several("", [0.2, 0.4], workload="b") + several("ema", [0.4, 0.4], workload="b")
    found = by_label(records)["ema"]
    logs = [math.log(1.2), 0.0, math.log(2.0), 0.0]
    assert found.ratio.mean == pytest.approx(math.exp(sum(logs) / 4))
    assert found.by_workload["a"].mean == pytest.approx(math.sqrt(1.2))
    assert (found.workloads, found.of, found.ratio.n) == (2, 2, 4)
    assert by_label(records)["baseline"].ratio.mean == 1.0


def test_less_loss_is_a_ratio_above_one():
    records = several("", [0.5, 0.6], higher_is_better=False) + several("ema", [0.25, 0.3], higher_is_better=False)
    assert by_label(records)["ema"].ratio.mean == pytest.approx(2.0)


def test_workloads_weigh_alike_however_many_seeds_they_have():
    records = several("", [0.5] * 2, workload="a") + several("ema", [1.0] * 2, workload="a")
    records += several("", [0.5] * 6, workload="b") + several("ema", [0.5] * 6, workload="b")
    assert by_label(records)["ema"].ratio.mean == pytest.approx(math.sqrt(2.0))


def test_removing_a_rival_changes_no_other_score():
    records = study(sets=5, seeds=4, workloads=WORKLOADS)
    whole = by_label(records)
    for rival in [label for label in whole if label != "baseline"]:
        rest = by_label([each for each in records if each.label != rival])
        for label, each in rest.items():
            assert (each.ratio, each.p_better) == (whole[label].ratio, whole[label].p_better)


def test_incomplete_sets_stand_below_complete_ones_however_good_they_are():
    records = study(sets=1, seeds=3, workloads=WORKLOADS)
    records += [*several("lucky", [0.99, 0.99], workload="a"), record("lucky", seed=2, status="failed", workload="a")]
    records += several("lucky", [0.99, 0.99, 0.99], workload="b")
    (rung,) = scores(compare(records))
    assert [each.label for each in rung][-1] == "lucky"
    assert (rung[-1].workloads, rung[-1].of, rung[-1].is_complete, rung[-1].p_best) == (1, 2, False, None)


def test_one_seed_shows_no_spread():
    found = by_label(several("", [0.5]) + several("ema", [0.6]))["ema"]
    assert found.ratio.mean == pytest.approx(1.2)
    assert (found.ratio.low, found.ratio.high, found.p_better, found.p_best) == (None, None, None, None)


def test_equal_differences_are_no_proof_in_a_score_either():
    usual = [0.900, 0.910, 0.905]
    records = several("", usual) + several("lucky", [value + 1 / 360 for value in usual])
    records += several("same", usual) + several("ema", [0.91, 0.915, 0.92])
    found = by_label(records)
    assert found["lucky"].ratio.mean == pytest.approx(1.00307, abs=1e-5)
    assert (found["lucky"].ratio.low, found["lucky"].p_better, found["lucky"].p_best) == (None, None, None)
    assert found["ema"].p_better > 0.9
    assert found["same"].ratio.mean == 1.0


@pytest.mark.parametrize("wrong", [0.0, -0.5])
def test_what_has_no_ratio_is_not_complete(wrong):
    records = study(sets=2, workloads=("a",)) + several("", [wrong] * 3, workload="b")
    records += [r for name in ("technique_1", "technique_2") for r in several({name: {}}, [0.5] * 3, workload="b")]
    (rung,) = scores(compare(records))
    assert {(each.is_complete, each.of, each.p_best) for each in rung} == {(False, 2, None)}
    assert all(each.ratio.n == 0 or each.workloads == 1 for each in rung)


def test_no_score_where_nobody_says_which_way_is_better():
    records = several("", [0.8, 0.9]) + several("ema", [0.85, 0.96])
    for each in records:
        each.metrics["test"]["sharpness"] = each.metrics["test"]["accuracy"]
    (rung,) = scores(compare(records, "sharpness"))
    assert {(each.p_better, each.p_best, each.is_complete) for each in rung} == {(None, None, False)}


def test_ratios_of_very_large_and_small_numbers_are_numbers():
    found = by_label(several("", [1e-300, 2e-300]) + several("ema", [1e300, 3e300]))["ema"]
    assert found.p_better > 0.9


def test_budgets_of_a_ladder_have_scores_of_their_own():
    records = study(sets=1, workloads=WORKLOADS)
    records += [r for w in WORKLOADS for r in several("", [0.9, 0.8], workload=w, budget="10s reference")]
    found = rungs(compare(records))
    assert [{each.group.budget for each in rung} for rung in found] == [{"5s reference"}, {"10s reference"}]
    own = study(sets=1, workloads=["a"]) + several("", [0.9, 0.8], workload="b", budget="10s reference")
    assert len(rungs(compare(own))) == 1  # each workload has a budget of its own


def test_satterthwaites_degrees_of_freedom_on_an_example_by_hand():
    # Means 2 and 20; variances of the mean 1/3 and 100/3; (1/3 + 100/3)^2 / ((1/3)^2 / 2 + (100/3)^2 / 2)
    found = strata_mean([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
    freedom = (101 / 3) ** 2 / ((1 / 3) ** 2 / 2 + (100 / 3) ** 2 / 2)
    assert found.mean == 11.0
    assert found.freedom == pytest.approx(freedom)
    assert found.error == pytest.approx(math.sqrt(101 / 3) / 2)
    assert found.high == pytest.approx(11.0 + t_quantile(freedom, 0.95) * math.sqrt(101 / 3) / 2)


def test_many_seeds_are_bootstrapped():
    dice = np.random.default_rng(1)
    few, many = (dice.lognormal(size=n).tolist() for n in (BOOTSTRAP_FROM - 1, BOOTSTRAP_FROM))
    assert strata_mean([few, many]).method == "Student's t"
    found = strata_mean([many, many])
    assert found.method == "BCa bootstrap"
    assert found.high - found.mean > found.mean - found.low  # it follows the skew, which Student's t cannot
    assert strata_mean([many, many]) == found  # the same numbers each time


def test_the_chance_of_being_better_is_one_minus_the_one_sided_p_value():
    found = strata_mean([[0.1, 0.3, 0.2, 0.5]])
    assert found.p_positive == pytest.approx(1.0 - p_value(found.mean / found.error, 3) / 2.0)


def test_the_chance_of_being_best_of_two_is_that_of_being_better():
    gains = {"baseline": {"a": dict.fromkeys(range(4), 0.0)}, "ema": {"a": dict(enumerate([0.1, 0.3, -0.2, 0.2]))}}
    found = chances_of_being_best(gains)
    better = strata_mean([[0.1, 0.3, -0.2, 0.2]]).p_positive
    assert found["ema"] == pytest.approx(better, abs=0.01)  # of 20,000 draws
    assert sum(found.values()) == pytest.approx(1.0)


def test_equal_sets_share_the_chance_of_being_best():
    same = dict(enumerate([0.1, 0.3, -0.2, 0.2]))
    found = chances_of_being_best(
        {"one": {"a": same}, "other": {"a": same}, "bad": {"a": dict.fromkeys(range(4), -9.0)}}
    )
    assert found["one"] == found["other"] == pytest.approx(0.5)


def test_ratios_are_paired_and_geometric():
    assert paired_ratios({0: 4.0, 1: 1.0, 2: 9.0, 3: 0.0}, {0: 2.0, 1: 2.0, 3: 1.0}) == [2.0, 0.5]
    found = geometric_mean([2.0, 0.5])
    assert found.mean == pytest.approx(1.0)
    assert found.high == pytest.approx(1.0 / found.low)
    assert geometric_mean([3.0]).low is None
