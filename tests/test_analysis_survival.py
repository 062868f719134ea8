"""Times that are only known to be longer, and the speed-ups made of them."""

import math
import random
import statistics

import pytest

from effbench.analysis.speedups import goals_of, speed_up
from effbench.analysis.survival import median_time
from effbench.analysis.targets import time_to_target
from record_factory import record

#: Weeks of remission under 6-mercaptopurine, the textbook's example (Freireich et al., Blood 21, 1963).
RELAPSED = [6, 6, 6, 7, 10, 13, 16, 22, 23]
STILL_WELL = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]


def test_the_median_of_the_textbook():
    found = median_time(RELAPSED, STILL_WELL)
    assert (found.n, found.events, found.at) == (21, 9, 23.0)
    assert (found.low, found.high) == (13.0, None)  # R: survfit(conf.type = "log-log")


@pytest.mark.parametrize("n", range(2, 31))
def test_without_censoring_it_is_the_plain_median(n):
    found = median_time([1.0 + each**2 for each in range(n)], [])
    assert found.at == pytest.approx(statistics.median(1.0 + each**2 for each in range(n)))


def test_the_interval_holds_the_median():
    found = median_time([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [])
    assert found.low < found.at < found.high


@pytest.mark.parametrize("n", [5, 10])
def test_intervals_of_medians_cover_the_truth(n):
    dice = random.Random(n)
    covered = 0
    for _ in range(500):
        found = median_time([dice.lognormvariate(0.0, 0.3) for _ in range(n)], [])
        covered += found.low <= 1.0 <= (math.inf if found.high is None else found.high)
    assert 0.92 <= covered / 500 <= 0.99


def test_few_times_have_a_median_and_no_interval():
    found = median_time([1.0, 2.0, 3.0, 4.0], [])  # all lie on one side of the median in 2 of 16 cases
    assert (found.at, found.low, found.high) == (2.5, None, None)
    assert median_time([1.0, 2.0, 3.0, 4.0], [], 0.9).low == 1.0


def test_what_was_not_seen_is_not_said():
    assert median_time([], [5.0, 5.0]).at is None
    assert median_time([1.0], [5.0, 5.0]).at is None  # most were watched in vain
    assert (
        median_time([1.0, 2.0], [5.0, math.inf]).at is None
    )  # half were: the median lies between 2 and what is not known
    assert median_time([1.0, 2.0], [5.0]).at == 2.0
    assert median_time([3.0], []) == median_time([3.0], [])
    assert (median_time([3.0], []).low, median_time([3.0], []).high) == (None, None)


def test_what_breaks_down_never_gets_there():
    runs = [record(value=0.9, seed=seed, target=0.5) for seed in range(2)]
    broken = [record(status="diverged", seed=seed, target=0.5) for seed in (2, 3, 4)]
    found = time_to_target(runs + broken)
    assert found.censored == (math.inf,) * 3
    assert found.median().at is None
    assert time_to_target([*runs, broken[0]]).median().at == pytest.approx(5.0 * 0.5 / 0.9)


def line(final, points=5, budget=5.0, seed=0, techniques=""):
    """A run whose quality rises linearly to `final` over its budget."""
    rows = [{"spent": budget * (i + 1) / points, "accuracy": final * (i + 1) / points} for i in range(points)]
    return record(techniques, seed=seed, value=final, curve=rows, spent=budget)


def sooner(records, baseline):
    return speed_up(records, goals_of(baseline))


def test_a_speed_up_is_to_the_baselines_final_quality():
    baseline = [line(0.8, seed=seed) for seed in range(3)]
    found = sooner([line(1.0, seed=seed, techniques="ema") for seed in range(3)], baseline)
    assert found.mean.mean == pytest.approx(1.25)  # 0.8 after 4 of 5
    assert (found.reached, found.seeds, found.bounds) == (3, 3, ())


@pytest.mark.parametrize("points", [2, 5, 7, 50])
def test_a_speed_up_does_not_depend_on_the_period_of_evaluation(points):
    found = sooner([line(1.0, points)], [line(0.8, 8)])
    assert found.mean.mean == pytest.approx(1.25)


def test_seeds_that_never_get_there_are_right_censored():
    baseline = [line(0.8, seed=seed) for seed in range(3)]
    ours = [line(value, seed=seed, techniques="ema") for seed, value in enumerate([1.0, 1.0, 0.7])]
    found = sooner(ours, baseline)
    assert (found.reached, found.seeds, found.bounds) == (2, 3, (1.0,))
    assert found.mean.mean is None  # a mean over the others would flatter
    assert found.median().at == pytest.approx(1.25)
    broken = sooner([*ours[:2], record("ema", seed=2, status="failed")], baseline)
    assert broken.bounds == (0.0,)


def test_the_baseline_against_itself_is_as_fast_as_itself():
    noisy = [record(seed=s, curve=[{"spent": 1.0, "accuracy": 0.9}, {"spent": 2.0, "accuracy": 0.8}]) for s in range(3)]
    assert sooner(noisy, noisy).mean.mean == pytest.approx(1.0)


def test_who_is_there_from_the_start_is_infinitely_sooner_and_no_straggler():
    at_once = [record("ema", curve=[{"spent": 0.0, "accuracy": 0.9}, {"spent": 5.0, "accuracy": 0.9}])]
    found = sooner(at_once, [line(0.8)])
    assert (found.reached, found.bounds, found.mean.mean) == (1, (), None)
    assert sooner([line(0.8)], at_once) is None  # nothing is sooner than at once


def test_no_speed_up_without_pairs():
    assert sooner([line(1.0, seed=5)], [line(0.8, seed=0)]) is None
    assert sooner([line(1.0)], [record(status="failed")]) is None
