"""What the statistics promise, held against simulated studies in which the truth is known."""

import numpy as np
import pytest

from effbench.analysis.comparison import compare
from effbench.analysis.pareto import fronts
from effbench.analysis.ratios import geometric_mean
from effbench.analysis.scores import scores
from effbench.analysis.strata import strata_mean
from effbench.analysis.verdicts import Verdict, corrected, paired
from record_factory import several

STUDIES = 4000


def normal_seeds(dice, n):
    return dict(enumerate(dice.normal(0.8, 0.02, n).tolist()))


@pytest.mark.parametrize("n", [3, 5, 10])
def test_paired_intervals_cover_the_truth_in_95_of_100_cases(n):
    dice = np.random.default_rng(n)
    covered = 0
    for _ in range(STUDIES):
        luck = dice.normal(0.0, 0.02, n)  # of the seed, which both have
        ours = dict(enumerate((0.81 + luck + dice.normal(0.0, 0.01, n)).tolist()))
        theirs = dict(enumerate((0.80 + luck + dice.normal(0.0, 0.01, n)).tolist()))
        found = paired(ours, theirs)
        covered += found.low <= 0.01 <= found.high
    assert 0.93 <= covered / STUDIES <= 0.97


@pytest.mark.parametrize("n", [3, 5, 10])
def test_intervals_of_scores_cover_the_truth(n):
    dice = np.random.default_rng(n)
    covered = 0
    for _ in range(STUDIES):
        strata = [dice.normal(0.02, spread, n).tolist() for spread in (0.005, 0.02, 0.01)]
        found = strata_mean(strata)
        covered += found.low <= 0.02 <= found.high
    assert 0.93 <= covered / STUDIES <= 0.98  # Satterthwaite's is on the safe side for few seeds


def test_bootstrapped_scores_cover_the_truth_of_skewed_values():
    dice = np.random.default_rng(0)
    studies, covered, truth = 300, 0, np.exp(0.5 * 0.3**2)
    for _ in range(studies):
        found = strata_mean([dice.lognormal(0.0, 0.3, 25).tolist() for _ in range(3)])
        covered += found.low <= truth <= found.high
    assert found.method == "BCa bootstrap"
    assert 0.91 <= covered / studies <= 0.98  # three standard errors below 0.95 are 0.912


@pytest.mark.parametrize("n", [3, 5, 10])
def test_intervals_of_ratios_cover_the_truth(n):
    dice = np.random.default_rng(n)
    covered = 0
    for _ in range(STUDIES):
        found = geometric_mean(dice.lognormal(np.log(1.5), 0.2, n).tolist())
        covered += found.low <= 1.5 <= found.high
    assert 0.93 <= covered / STUDIES <= 0.97


@pytest.mark.parametrize(("sets", "seeds"), [(1, 3), (4, 3), (4, 5), (10, 5)])
def test_corrected_intervals_exclude_zero_in_at_most_5_of_100_tables_of_copies(sets, seeds):
    dice = np.random.default_rng(sets)
    tables, wrong = 6000, 0
    for _ in range(tables):
        usual, *copies = (dict(enumerate(row)) for row in dice.normal(0.8, 0.02, (sets + 1, seeds)).tolist())
        found = corrected([paired(copy, usual) for copy in copies])
        wrong += any(each.low > 0.0 or each.high < 0.0 for each, _ in found)
    assert wrong / tables <= 0.05 + 2 * (0.05 * 0.95 / tables) ** 0.5


@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("right", [0.9, 0.97])
def test_coarse_accuracies_are_told_apart_no_more_often_than_others(right, seeds):
    """Of 360 examples, on half of which both sets do the same: differences move in steps, and some are equal."""
    dice = np.random.default_rng(seeds)
    tables, wrong = 4000, 0
    for _ in range(tables):
        same, ours, theirs = dice.binomial(180, right, (3, seeds)) / 360
        ((found, _),) = corrected([paired(dict(enumerate(same + ours)), dict(enumerate(same + theirs)))])
        wrong += found.low is not None and not found.low <= 0.0 <= found.high
    assert wrong / tables <= 0.05 + 2 * (0.05 * 0.95 / tables) ** 0.5


@pytest.mark.parametrize(("sets", "effect"), [(1, 0.02), (4, 0.02), (10, 0.1)])
def test_each_interval_of_a_table_covers_its_truth_and_all_of_them_nearly_as_often(sets, effect):
    """Sets share one baseline, and the luck of a seed. Holm's intervals promise the first, and not quite the second."""
    dice = np.random.default_rng(sets)
    tables, each_covers, all_cover = 1000, 0, 0
    truth = [effect * (-1) ** number for number in range(sets)]
    for _ in range(tables):
        luck = dice.normal(0.8, 0.02, 5)
        usual = dict(enumerate(luck + dice.normal(0.0, 0.01, 5)))
        ours = [dict(enumerate(luck + gain + dice.normal(0.0, 0.01, 5))) for gain in truth]
        found = corrected([paired(one, usual) for one in ours])
        covers = [one.low <= gain <= one.high for (one, _), gain in zip(found, truth, strict=True)]
        each_covers, all_cover = each_covers + sum(covers), all_cover + all(covers)
    assert each_covers / (sets * tables) >= 0.95 - 2 * (0.05 * 0.95 / tables) ** 0.5
    assert all_cover / tables >= 0.91


@pytest.mark.parametrize(("sets", "seeds"), [(1, 3), (4, 5)])
def test_the_baseline_against_itself_is_better_or_worse_in_at_most_5_of_100_tables(sets, seeds):
    dice = np.random.default_rng(sets)
    tables, wrong = 300, 0
    for _ in range(tables):
        records = several("", dice.normal(0.8, 0.02, seeds).tolist())
        for number in range(sets):
            records += several(f"copy_{number}", dice.normal(0.8, 0.02, seeds).tolist())
        (found,) = compare(records)
        wrong += any(each.verdict in {Verdict.BETTER, Verdict.WORSE} for each in found.results)
    assert wrong / tables <= 0.05 + 2 * (0.05 * 0.95 / tables) ** 0.5


def test_copies_of_the_baseline_are_surely_dominated_in_at_most_5_of_100_tables():
    dice = np.random.default_rng(3)
    tables, wrong = 200, 0
    for _ in range(tables):
        records = []
        for number in range(8):
            for each in several(f"copy_{number}" if number else "", dice.normal(0.8, 0.02, 5).tolist()):
                each.peak_memory_mib = 30.0 + number
                records.append(each)
        front = next(front for front in fronts(compare(records)[0]) if front.cost == "peak_memory_mib")
        wrong += any(point.is_surely_dominated for point in front.points)
    assert wrong / tables <= 0.05 + 2 * (0.05 * 0.95 / tables) ** 0.5


def test_the_chance_of_being_better_is_as_often_right_as_it_says():
    """Of the sets that are called better with a chance of 0.8 to 0.9, about so many are."""
    dice = np.random.default_rng(5)
    said, right = [], 0
    for _ in range(6000):
        truth = dice.normal(0.0, 5.0)  # nearly flat, as the prior is
        p = strata_mean([(truth + dice.standard_normal(4)).tolist()]).p_positive
        if 0.8 < p < 0.9:
            said.append(p)
            right += truth > 0.0
    assert right / len(said) == pytest.approx(np.mean(said), abs=0.08)


def test_chances_of_being_best_add_up():
    dice = np.random.default_rng(0)
    records = several("", dice.normal(0.8, 0.02, 5).tolist())
    for number in range(4):
        records += several(f"copy_{number}", dice.normal(0.8, 0.02, 5).tolist())
    assert sum(each.p_best for each in scores(compare(records))[0]) == pytest.approx(1.0)
