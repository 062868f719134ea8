"""Noise floors, seeds and power: against published tables, and against simulation."""

import math

import numpy as np
import pytest
from scipy.special import nctdtr

from effbench.analysis.comparison import compare
from effbench.analysis.groups import grouped
from effbench.analysis.intervals import estimate, t_quantile
from effbench.analysis.measures import measure
from effbench.analysis.noise import TWIN, noise_of, noises, read_aa
from effbench.analysis.power import detectable, power, seeds_needed
from effbench.analysis.seeds import seeds_for
from effbench.analysis.sizes import Size
from effbench.analysis.verdicts import Verdict
from effbench.store import Store
from record_factory import record, several

LUCK = [0.00, 0.02, 0.01, 0.03, -0.01]


@pytest.mark.parametrize(("effect", "seeds"), [(0.2, 199), (0.5, 34), (0.8, 15), (1.0, 10)])
def test_seeds_are_those_of_cohens_table(effect, seeds):
    assert seeds_needed(effect, 1.0) == seeds  # paired t test, alpha 0.05, power 0.8
    assert power(effect, 1.0, seeds) >= 0.8 > power(effect, 1.0, seeds - 1)


@pytest.mark.parametrize("seeds", [2, 3, 5, 40, 10_000])
@pytest.mark.parametrize("comparisons", [1, 100])
def test_the_power_is_that_of_the_noncentral_t_distribution(seeds, comparisons):
    edge = t_quantile(seeds - 1, 1.0 - 0.05 / comparisons)
    for shift in (0.0, 1e-9, 0.5, 3.0, 0.9 * edge, edge, edge + 2.0):
        tails = [float(nctdtr(seeds - 1, shift, end)) for end in (edge, -edge)]
        beyond = 1.0 - tails[0] + (0.0 if math.isnan(tails[1]) else tails[1])
        assert power(shift / math.sqrt(seeds), 1.0, seeds, comparisons=comparisons) == pytest.approx(beyond, abs=2e-6)


@pytest.mark.parametrize("seeds", [2, 5, 10_000])
def test_the_power_is_a_number_where_that_distribution_cannot_be_computed(seeds):
    assert math.isnan(nctdtr(9_999, 38.0, 1.96))  # what it is held against where it can be
    found = [power(effect, 1.0, seeds) for effect in np.linspace(0.0, 400.0, 500)]
    assert found == sorted(found)
    assert found[0] == pytest.approx(0.05, abs=1e-6)
    assert power(1e300, 1e-10, seeds) == 1.0


def test_the_power_is_that_of_simulated_studies():
    dice = np.random.default_rng(0)
    seen = sum(estimate((dice.standard_normal(5) + 1.5).tolist()).p_value < 0.05 for _ in range(4000))
    assert power(1.5, 1.0, 5) == pytest.approx(seen / 4000, abs=0.025)


def test_the_smallest_effect_is_the_one_that_so_many_seeds_need():
    for n in (3, 5, 10):
        least = detectable(n, 0.01)
        assert seeds_needed(1.001 * least, 0.01) == n
        assert seeds_needed(0.999 * least, 0.01) == n + 1


def test_a_table_of_many_sets_needs_more_seeds():
    assert seeds_needed(0.5, 1.0, comparisons=10) > seeds_needed(0.5, 1.0)
    assert detectable(5, 1.0, comparisons=10) > detectable(5, 1.0)


def test_what_cannot_be_had_is_not_promised():
    assert seeds_needed(1e-6, 1.0) is None
    assert detectable(1, 1.0) is None
    assert power(1.0, 1.0, 1) == 0.0
    assert (power(1.0, 0.0, 3), power(0.0, 0.0, 3), detectable(3, 0.0)) == (1.0, 0.0, 0.0)
    assert seeds_needed(1e6, 1.0) == 2


# --- A/A ----------------------------------------------------------------------------------------------------------


def aa(values, twins, **changes):
    return several("", values, **changes) + [
        record(seed=TWIN + seed, value=value, key=f"twin {seed}", **changes) for seed, value in enumerate(twins)
    ]


def test_the_floor_is_what_luck_alone_shows():
    (found,) = noises(aa([0.80, 0.82, 0.78], [0.81, 0.79, 0.80]))
    spread = math.sqrt(sum((v - 0.8) ** 2 for v in (0.80, 0.82, 0.78, 0.81, 0.79, 0.80)) / 5)
    assert found.runs.spread == pytest.approx(spread)
    assert found.floor(3) == pytest.approx(t_quantile(5, 0.95) * spread * math.sqrt(2 / 3))
    assert found.detectable(3) == pytest.approx(detectable(3, math.sqrt(2) * spread))
    assert found.against_itself.mean == pytest.approx((0.80 - 0.81 + 0.82 - 0.79 + 0.78 - 0.80) / 3)
    assert found.is_quiet


def test_a_baseline_that_differs_from_itself_is_not_quiet():
    (found,) = noises(aa([0.80, 0.81, 0.82], [0.60, 0.611, 0.62]))
    assert not found.is_quiet


def test_nineteen_of_twenty_comparisons_of_nothing_lie_under_the_floor():
    dice = np.random.default_rng(3)
    below = 0
    for _ in range(400):
        (found,) = noises(aa(dice.normal(0.8, 0.01, 4).tolist(), dice.normal(0.8, 0.01, 4).tolist()))
        fresh = dice.normal(0.8, 0.01, 4).mean() - dice.normal(0.8, 0.01, 4).mean()
        below += abs(fresh) <= found.floor(4)
    assert below / 400 == pytest.approx(0.95, abs=0.035)


def test_a_table_greys_out_what_lies_under_the_floor_and_overrules_nothing():
    values = [0.8 + luck for luck in LUCK]
    records = several("", values) + several("small", [v + 0.003 * (-1) ** i for i, v in enumerate(values)])
    records += several("told", [v + 0.004 + 0.0002 * (-1) ** i for i, v in enumerate(values)])
    records += several("large", [v + 0.2 + 0.15 * (-1) ** i for i, v in enumerate(values)])
    (found,) = compare(records, aa=aa([0.80, 0.82, 0.78], [0.81, 0.79, 0.80]))
    by_label = {each.label: each for each in found.results}
    assert found.noise_floor == pytest.approx(t_quantile(5, 0.95) * math.sqrt(0.001 / 5) * math.sqrt(2 / 5))
    assert {label: each.is_under_floor for label, each in by_label.items()} == {
        "baseline": False,
        "small": True,
        "told": False,  # pairing has told it from nothing
        "large": False,
    }
    assert by_label["told"].verdict is Verdict.BETTER
    assert compare(records)[0].noise_floor == 0.0


def test_noise_is_that_of_the_same_workload_budget_and_clock():
    (group,) = grouped(several("", [0.8, 0.9]))
    chosen = measure(group.records)
    assert noise_of(group, chosen, aa([0.8], [0.9], budget="10s reference")) is None
    assert noise_of(group, chosen, aa([0.8], [0.9], workload="other")) is None
    assert noise_of(group, chosen, aa([0.8], [0.9], clock="cpu")) is None
    assert noise_of(group, chosen, aa([0.8], [0.9])).runs.n == 2


def test_aa_records_lie_below_the_results(tmp_path):
    store = Store(tmp_path / "quick" / "aa")
    store.check_writable()
    store.append(record())
    assert len(read_aa([tmp_path / "quick"])) == 1
    assert read_aa([tmp_path]) == []


# --- seeds --------------------------------------------------------------------------------------------------------


def test_seeds_come_from_the_spread_of_paired_differences():
    values = [0.8 + luck for luck in LUCK]
    differences = [1e-3, -1e-3, 0.0, 2e-3, -2e-3]
    records = several("", values) + several("ema", [v + d for v, d in zip(values, differences, strict=True)])
    (found,) = seeds_for(compare(records), Size.parse("0.002"))
    spread = math.sqrt(10e-6 / 4)
    assert found.spread == pytest.approx(spread)
    assert found.source == "paired differences of 1 set"
    assert found.alone == found.in_table == seeds_needed(0.002, spread)


def test_equal_differences_say_nothing_of_the_seeds_that_others_need():
    values = [0.8 + luck for luck in LUCK]
    noisy = several("ema", [v + d for v, d in zip(values, [1e-3, -1e-3, 0.0, 2e-3, -2e-3], strict=True)])
    same, shifted = several("same", values), several("shifted", [v + 0.01 for v in values])
    (found,) = seeds_for(compare(several("", values) + noisy + same + shifted), Size.parse("0.002"))
    assert found.spread == pytest.approx(math.sqrt(10e-6 / 4))
    assert (found.source, found.comparisons) == ("paired differences of 1 set", 3)
    (alone,) = seeds_for(compare(several("", values) + shifted), Size.parse("0.002"))
    assert alone.source == "5 runs of the baseline"
    (none,) = seeds_for(compare(several("", [0.8] * 3) + several("ema", [0.9] * 3)), Size.parse("0.002"))
    assert (none.spread, none.alone, none.source) == (None, None, "equal values show no spread")


def test_very_large_differences_spread_too():
    (found,) = seeds_for(compare(several("", [1.0] * 3) + several("sgd", [1e200, 2e200, 4e200])), Size.parse("0.002"))
    assert found.spread == pytest.approx(estimate([1.0, 2.0, 4.0]).spread * 1e200)
    assert found.alone is None  # more than anybody would run


def test_without_sets_the_baseline_tells_and_an_aa_run_tells_better():
    comparisons = compare(several("", [0.80, 0.82]))
    (found,) = seeds_for(comparisons, Size.parse("1%"))
    assert found.source == "2 runs of the baseline"
    assert found.effect == pytest.approx(0.0081)
    assert found.spread == pytest.approx(0.02)  # the root of two, times 0.0141
    (better,) = seeds_for(comparisons, Size.parse("1%"), aa([0.80, 0.82, 0.81], [0.80, 0.82, 0.81]))
    assert better.source == "6 A/A runs"
    (none,) = seeds_for(compare(several("", [0.8])), Size.parse("1%"))
    assert (none.spread, none.alone, none.source) == (None, None, "one seed shows no spread")
