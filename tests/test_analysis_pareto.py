"""Fronts of quality against cost: what is dominated, and what is surely so."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effbench.analysis.comparison import compare
from effbench.analysis.pareto import _paired_p_values, fronts
from effbench.analysis.verdicts import paired
from record_factory import runs


def test_a_front_holds_what_nothing_dominates():
    records = runs("", 0.80, peak_memory_mib=30.0) + runs("good", 0.85, peak_memory_mib=40.0)
    records += runs("bad", 0.82, peak_memory_mib=50.0) + runs("frugal", 0.70, peak_memory_mib=10.0)
    (comparison,) = compare(records)
    found = {front.cost: front for front in fronts(comparison)}
    assert list(found) == ["seconds", "peak_memory_mib"]  # nothing measured energy
    memory = found["peak_memory_mib"]
    assert [(point.label, point.is_on_front) for point in memory.points] == [
        ("frugal", True),
        ("baseline", True),
        ("good", True),
        ("bad", False),
    ]
    assert memory.points[3].dominated_by == ("good",)
    assert memory.sentences == ["bad is dominated by good in accuracy and peak memory"]


def test_what_is_told_apart_in_both_is_surely_dominated():
    records = runs("", 0.80) + runs("bad", 0.70, jitter=0.001)
    for each in records:
        each.peak_memory_mib = 30.0 + 0.1 * each.seed + (10.0 + 0.01 * each.seed if each.techniques else 0.0)
    front = next(front for front in fronts(compare(records)[0]) if front.cost == "peak_memory_mib")
    assert front.points[1].is_surely_dominated
    assert front.sentences == ["bad is surely dominated by baseline in accuracy and peak memory"]


def test_a_counted_cost_is_sure_and_equal_differences_of_quality_are_not():
    records = runs("", 0.80, peak_memory_mib=30.0) + runs("worse", 0.70, jitter=0.001, peak_memory_mib=40.0)
    records += runs("equal", 0.75, peak_memory_mib=40.0)
    front = next(front for front in fronts(compare(records)[0]) if front.cost == "peak_memory_mib")
    assert {point.label: point.is_surely_dominated for point in front.points if point.dominated_by} == {
        "worse": True,
        "equal": False,  # -0.05 on all seeds
    }


@settings(deadline=None, max_examples=30)  # the first imports scipy
@given(
    st.lists(st.dictionaries(st.integers(0, 4), st.floats(-10, 10).map(lambda x: round(x, 2))), min_size=2, max_size=5)
)
def test_p_values_of_all_pairs_at_once_are_those_of_each(values):
    pairs = [(i, j) for i in range(len(values)) for j in range(len(values)) if i != j]
    for (i, j), p, counted in zip(pairs, *_paired_p_values(values, pairs), strict=True):
        found = paired(values[i], values[j])
        alone = found.p_value if found else None
        assert p == pytest.approx(1.0 if alone is None else alone, abs=1e-9)
        assert counted == (found is not None and found.spread == 0.0 != found.mean)


def test_sets_of_one_label_are_told_apart_on_a_front():
    records = runs("", 0.80) + runs({"a": {"x": 1}}, 0.85, peak_memory_mib=20.0)
    records += runs({"a": {"x": "1"}}, 0.70, peak_memory_mib=50.0)
    front = next(front for front in fronts(compare(records)[0]) if front.cost == "peak_memory_mib")
    assert [(point.cost.mean, point.is_on_front) for point in front.points] == [
        (20.0, True),
        (31.5, False),
        (50.0, False),
    ]


def test_incomplete_sets_dominate_nobody():
    lucky = runs("lucky", 0.99, peak_memory_mib=1.0)[:2]
    records = runs("", 0.80) + runs("ema", 0.81) + lucky
    assert all("lucky" not in p.dominated_by for front in fronts(compare(records)[0]) for p in front.points)


def test_equal_points_do_not_dominate_each_other():
    records = runs("", 0.80) + runs("twin", 0.80)
    assert all(point.is_on_front for front in fronts(compare(records)[0]) for point in front.points)
