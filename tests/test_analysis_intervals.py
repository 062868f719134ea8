"""Intervals cover as often as they say, and Holm corrects as in the book."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effbench.analysis.intervals import Estimate, estimate, holm, p_value, t_quantile
from effbench.analysis.verdicts import corrected, is_told_apart, paired


def test_quantiles_are_those_of_the_printed_table():
    assert t_quantile(1, 0.95) == pytest.approx(12.706, abs=1e-3)
    assert t_quantile(4, 0.95) == pytest.approx(2.776, abs=1e-3)
    assert t_quantile(9, 0.99) == pytest.approx(3.250, abs=1e-3)
    assert p_value(2.776445, 4) == pytest.approx(0.05, abs=1e-6)


def test_the_interval_of_a_worked_example():
    found = estimate([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (found.n, found.mean, found.spread) == (5, 3.0, pytest.approx(1.5811388))
    assert found.half_width == pytest.approx(1.9632432)  # 2.776445 * 1.5811388 / sqrt(5)
    assert (found.low, found.high) == (pytest.approx(1.0367568), pytest.approx(4.9632432))


def test_one_value_has_no_spread_and_none_no_mean():
    assert estimate([0.7]) == Estimate(1, 0.7)
    assert estimate([0.7]).half_width is None
    assert estimate([0.7]).p_value is None
    assert estimate([]) == Estimate(0)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_intervals_cover_as_often_as_they_say(n):
    dice = random.Random(n)
    trials = 2000
    covered = 0
    for _ in range(trials):
        found = estimate([dice.gauss(0.8, 0.02) for _ in range(n)])
        covered += found.low <= 0.8 <= found.high
    assert 0.935 < covered / trials < 0.965  # three standard errors around 0.95


def test_equal_differences_are_no_proof():
    found = paired({0: 0.83, 1: 0.91, 2: 0.87}, {0: 0.82, 1: 0.90, 2: 0.86})
    assert found.mean == pytest.approx(0.01)
    assert found.spread == 0.0  # what is left is rounding
    assert found.p_value is None
    assert corrected([found])[0][0].low is None
    assert not is_told_apart({0: 2.0, 1: 2.0}, {0: 1.0, 1: 1.0})


def test_no_difference_on_a_few_seeds_is_no_proof_that_there_is_none():
    found = paired({0: 0.8, 1: 0.9}, {0: 0.8, 1: 0.9})
    assert (found.mean, found.low, found.high, found.p_value) == (0.0, None, None, None)
    assert corrected([found]) == [(Estimate(2, 0.0, 0.0), None)]


def test_a_metric_that_is_the_same_on_all_seeds_has_no_interval_of_width_zero():
    found = estimate([0.1, 0.1, 0.1])
    assert (found.n, found.mean, found.half_width) == (3, pytest.approx(0.1), None)
    assert found.at(0.99).low is None


@pytest.mark.parametrize("size", [1e-100, 1.0, 1e200, 1e307])
def test_numbers_of_any_size_have_an_interval(size):
    usual, found = estimate([1.0, 2.0, 4.0]), estimate([1.0 * size, 2.0 * size, 4.0 * size])
    assert found.mean == pytest.approx(usual.mean * size)
    assert found.half_width == pytest.approx(usual.half_width * size)
    assert found.p_value == pytest.approx(usual.p_value)


def test_a_difference_too_large_for_a_number_is_no_pair():
    assert paired({0: 1.7e308, 1: 2.0}, {0: -1.7e308, 1: 1.0}) == Estimate(1, 1.0)
    assert paired({0: 1.7e308}, {0: -1.7e308}) is None


def test_pairs_are_the_common_seeds():
    assert paired({0: 2.0, 1: 5.0, 7: 100.0}, {1: 3.0, 0: 1.0, 3: -50.0}) == estimate([1.0, 2.0])
    assert paired({0: 1.0}, {1: 1.0}) is None


def test_holm_on_an_example_by_hand():
    # 0.005 * 4, 0.01 * 3, 0.03 * 2, max(0.04 * 1, the one before)
    found = holm([0.01, 0.04, 0.03, 0.005])
    assert [step.adjusted for step in found] == pytest.approx([0.03, 0.06, 0.06, 0.02])
    # 0.005 < 0.05 / 4 and 0.01 < 0.05 / 3 pass; 0.03 > 0.05 / 2 fails, and with it 0.04
    assert [step.level for step in found] == pytest.approx([0.05 / 3, 0.05 / 2, 0.05 / 2, 0.05 / 4])


@settings(deadline=None)  # the first interval imports scipy
@given(st.lists(st.lists(st.floats(-1, 1), min_size=2, max_size=5), min_size=1, max_size=8))
def test_a_corrected_interval_excludes_zero_exactly_when_holm_rejects(samples):
    for difference, step in corrected([estimate(sample) for sample in samples]):
        if step is not None:
            excluded = difference.low > 0.0 or difference.high < 0.0
            assert excluded == (step.adjusted <= 0.05) or step.adjusted == pytest.approx(0.05, rel=1e-6)


def test_a_table_of_nothing_but_noise_rarely_claims_anything():
    dice = random.Random(0)
    tables, false_claims = 500, 0
    for _ in range(tables):
        baseline = {seed: dice.gauss(0.8, 0.02) for seed in range(5)}
        sets = [{seed: dice.gauss(0.8, 0.02) for seed in range(5)} for _ in range(10)]
        found = corrected([paired(values, baseline) for values in sets])
        false_claims += any(each.low > 0.0 or each.high < 0.0 for each, _ in found)
    assert false_claims / tables < 0.05 + 3 * (0.05 * 0.95 / tables) ** 0.5
