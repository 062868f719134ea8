"""Performance profiles, against examples by hand."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from effbench.analysis.comparison import compare
from effbench.analysis.profiles import performance_profiles, profiles
from effbench.analysis.strata import BOOTSTRAP_FROM
from record_factory import record, several, study

#: Three sets on four workloads.
TIMES = {
    "quick": {"w1": 10.0, "w2": 30.0, "w3": 12.0, "w4": math.inf},
    "steady": {"w1": 20.0, "w2": 15.0, "w3": 12.0, "w4": 60.0},
    "late": {"w1": 45.0, "w2": 45.0, "w3": math.inf, "w4": 150.0},
}


def test_an_example_by_hand():
    # Ratios to the fastest: quick 1, 2, 1, inf; steady 2, 1, 1, 1; late 4.5 (cut), 3, inf, 2.5. With r_max = 4 a ratio
    # r gives (4 - r) / 3: quick (3 + 2 + 3 + 0) / 12, steady (2 + 3 + 3 + 3) / 12, late (0 + 1 + 0 + 1.5) / 12.
    found = {each.label: each for each in performance_profiles(TIMES)}
    assert {name: each.score for name, each in found.items()} == {
        "quick": pytest.approx(8 / 12),
        "steady": pytest.approx(11 / 12),
        "late": pytest.approx(2.5 / 12),
    }
    assert found["quick"].steps == ((1.0, 0.5), (2.0, 0.75))
    assert found["late"].steps == ((2.5, 0.25), (3.0, 0.5))
    assert [each.label for each in performance_profiles(TIMES)] == ["steady", "quick", "late"]


def test_the_score_is_the_area_below_the_profile():
    for each in performance_profiles(TIMES):
        grid = [1.0 + 3.0 * i / 3000 for i in range(3001)]
        heights = [max((share for tau, share in each.steps if tau <= at), default=0.0) for at in grid]
        area = sum(heights[:-1]) / 3000  # the mean height over [1, 4]
        assert each.score == pytest.approx(area, abs=1e-3)


def test_the_best_entrant_matters_to_a_profile_and_not_against_the_baseline():
    without = {name: times for name, times in TIMES.items() if name != "quick"}
    scores = {each.label: each.score for each in performance_profiles(TIMES)}
    fewer = {each.label: each.score for each in performance_profiles(without)}
    assert fewer["late"] > scores["late"]  # AlgoPerf's depends on who else is there
    fixed = {each.label: each.score for each in performance_profiles(TIMES, reference="steady")}
    fixed_fewer = {each.label: each.score for each in performance_profiles(without, reference="steady")}
    assert all(fixed_fewer[name] == fixed[name] for name in without)
    assert fixed["steady"] == pytest.approx(0.75)  # (4 - 1) / 4
    assert fixed["quick"] == pytest.approx(((4 - 0.5) + (4 - 2) + (4 - 1) + 0) / 16)


def test_ties_are_by_time_and_not_by_the_number_of_the_evaluation():
    # Both meet the target at their second look; the crossing of one lies twice as late.
    def curve(first, second):
        return [{"spent": first[0], "accuracy": first[1]}, {"spent": second[0], "accuracy": second[1]}]

    records = [record("", curve=curve((1.0, 0.5), (3.0, 1.0)), target=0.75)]  # at 2.0
    records += [record("ema", curve=curve((0.5, 0.5), (1.5, 1.0)), target=0.75)]  # at 1.0
    found = {each.label: each for each in profiles(compare(records))}
    assert (found["ema"].ratios, found["baseline"].ratios) == (
        {"mnist1d_cnn": 1.0},
        {"mnist1d_cnn": pytest.approx(2.0)},
    )
    assert found["ema"].low is None  # one seed shows no spread


def test_half_of_the_seeds_without_target_is_no_target():
    records = several("", [0.9] * 4) + several("ema", [0.9, 0.9, 0.7, 0.7])
    found = {each.label: each for each in profiles(compare(records))}
    assert found["ema"].ratios == {"mnist1d_cnn": math.inf}
    assert found["ema"].score == 0.0
    assert found["baseline"].score == 1.0


def test_broken_and_missing_seeds_never_reach_the_target():
    records = [*several("", [0.9] * 3), record("sam", seed=0, value=0.9), record("sam", seed=1, status="diverged")]
    found = {each.label: each.score for each in profiles(compare(records))}
    assert found["sam"] == 0.0


def test_runs_that_end_with_no_number_never_reach_the_target():
    lost = several("ema", [0.9] * 3)
    for each in lost[:2]:
        each.metrics["test"]["accuracy"] = math.nan
    found = {each.label: each.score for each in profiles(compare(several("", [0.9] * 3) + lost))}
    assert found["ema"] == 0.0


def test_seeds_left_out_when_a_set_was_decided_count_for_nothing():
    decided = {"status": "not_started", "stop_reason": "decided", "clock": "", "versions": {}}
    records = several("", [0.9] * 8) + several("ema", [0.9] * 3)
    records += [record("ema", seed=seed, **decided) for seed in range(3, 8)]
    found = {each.label: each.score for each in profiles(compare(records))}
    assert found["ema"] == found["baseline"] == 1.0


def test_who_is_there_before_it_spent_anything_is_the_fastest():
    at_once = [{"spent": 0.0, "accuracy": 0.9}, {"spent": 5.0, "accuracy": 0.9}]
    found = {each.label: each.score for each in profiles(compare([record(), record("ema", curve=at_once)]))}
    assert found == {"baseline": 0.0, "ema": 1.0}


def test_scores_of_many_seeds_have_intervals_that_hold_them():
    found = profiles(compare(study(sets=3, seeds=BOOTSTRAP_FROM, workloads=("a", "b"))))
    assert all(each.low <= each.score <= each.high for each in found)
    assert any(each.low < each.high for each in found)
    few = profiles(compare(study(sets=3, seeds=BOOTSTRAP_FROM - 1, workloads=("a", "b"))))
    assert {(each.low, each.high) for each in few} == {(None, None)}


def test_few_seeds_need_no_bootstrap_which_takes_long_to_import():
    code = (
        "import sys; from effbench.analysis.comparison import compare; from effbench.analysis.profiles import profiles"
    )
    code += "; from record_factory import study; found = profiles(compare(study(2))); print(len(found))"
    code += "; print('scipy.stats' in sys.modules)"
    shown = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
    )
    assert shown.stdout.split() == ["3", "False"]


def test_intervals_of_scores_cover_the_truth():
    dice = np.random.default_rng(0)
    studies, covered = 200, 0
    for _ in range(studies):
        records = []
        for seed in range(BOOTSTRAP_FROM):
            for name, mean in {"": 1.0, "slow": 1.8}.items():
                at = mean * dice.lognormal(0.0, 0.15)
                records.append(record(name, seed=seed, curve=[{"spent": at, "accuracy": 0.9}]))
        (slow,) = [each for each in profiles(compare(records)) if each.label == "slow"]
        covered += slow.low <= (4.0 - 1.8) / 3.0 <= slow.high
    assert 0.92 <= covered / studies <= 0.99


def test_sets_that_are_written_alike_have_profiles_of_their_own():
    one, text = {"a": {"by": 1}}, {"a": {"by": "1"}}
    records = several("", [0.8, 0.8]) + several(one, [0.9, 0.9]) + several(text, [0.7, 0.7])
    for number, each in enumerate(records):
        each.key = str(number)
    found = profiles(compare(records))
    assert [(each.techniques, each.label) for each in found] == [(one, "a(by=1)"), ({}, "baseline"), (text, "a(by=1)")]
    assert found[0].score > found[1].score > found[2].score == 0.0


def test_without_targets_there_is_no_profile():
    assert profiles(compare(several("", [0.8], target=None))) == []
    assert profiles(compare(several("ema", [0.8])), against_baseline=True) == []
