"""Stopping when it is decided errs no more often than looking once at the end; tables believe what was stopped."""

import itertools

import numpy as np
import pytest

from effbench.analysis.comparison import compare
from effbench.analysis.intervals import estimate
from effbench.analysis.sequential import SPENDING, Decision, decide, design
from effbench.analysis.sizes import Size
from effbench.analysis.stopping import design_of, why_decided
from effbench.analysis.verdicts import Verdict
from effbench.errors import EffbenchError
from record_factory import record, several

ALPHA = 0.05


def decisions(plan, shift, margin, draws=3000, seed=7):
    """What so many studies decide, whose differences are normal around `shift` with a spread of 1."""
    dice = np.random.default_rng(seed)
    found = dict.fromkeys(Decision, 0)
    seeds = 0
    for _ in range(draws):
        said, at = decide((dice.standard_normal(plan.looks[-1]) + shift).tolist(), plan, margin)
        found[said] += 1
        seeds += at.n
    return {each: count / draws for each, count in found.items()}, seeds / draws


@pytest.mark.parametrize("rule", SPENDING)
@pytest.mark.parametrize("seeds", [5, 10])
def test_all_looks_together_err_as_often_as_declared(rule, seeds):
    found, _ = decisions(design(seeds, ALPHA, rule), shift=0.0, margin=0.0)
    errors = found[Decision.HIGHER] + found[Decision.LOWER]
    assert errors <= ALPHA + 3 * (ALPHA * (1 - ALPHA) / 3000) ** 0.5
    assert errors >= 0.6 * ALPHA  # it is no waste either


def test_looking_each_time_without_a_design_errs_far_more_often():
    dice = np.random.default_rng(7)
    wrong = 0
    for _ in range(1000):
        values = dice.standard_normal(10)
        wrong += any(estimate(values[:n].tolist()).p_value < ALPHA for n in range(3, 11))
    assert wrong / 1000 > 2 * ALPHA


def test_no_difference_is_rarely_said_of_one_as_large_as_the_margin():
    found, _ = decisions(design(20, ALPHA), shift=1.0, margin=1.0)
    assert found[Decision.NO_DIFFERENCE] <= ALPHA / 2 + 3 * (0.025 * 0.975 / 3000) ** 0.5
    assert found[Decision.LOWER] == 0.0


def test_it_stops_early_for_a_large_difference_and_for_none():
    plan = design(20, ALPHA)
    large, seeds = decisions(plan, shift=2.0, margin=1.0, draws=500)
    assert large[Decision.HIGHER] > 0.99
    assert seeds < 9
    none, seeds = decisions(plan, shift=0.0, margin=1.0, draws=500)
    assert none[Decision.NO_DIFFERENCE] > 0.85
    assert seeds < 16


def test_one_look_is_the_t_test():
    plan = design(3, ALPHA)
    assert plan.looks == (3,)
    assert plan.levels[0] == pytest.approx(ALPHA)


@pytest.mark.parametrize(("seeds", "sets"), [(10, 118), (5, 300), (10, 1000), (40, 200)])
def test_every_look_can_decide_however_many_sets_share_the_error(seeds, sets):
    plan = design_of(seeds, sets)
    spent = [0.0, *(SPENDING["kim_demets"](n / seeds, plan.alpha) for n in plan.looks)]
    least = [after - before for before, after in itertools.pairwise(spent)]
    assert plan.levels[0] == pytest.approx(least[0])
    assert all(0.8 * share <= level <= plan.alpha for share, level in zip(least, plan.levels, strict=True))
    assert plan.interval(estimate([1.0, 2.0] * (seeds // 2))).half_width > 0.0


@pytest.mark.parametrize("difference", [1 / 360, -1 / 360, 0.0])
def test_equal_differences_decide_nothing(difference):
    assert decide([difference] * 8, design(8, ALPHA), margin=0.1)[0] is Decision.OPEN


def test_what_is_spent_adds_up_to_alpha():
    for rule, spent in SPENDING.items():
        assert spent(1.0, ALPHA) == pytest.approx(ALPHA), rule
        assert spent(0.2, ALPHA) < spent(0.6, ALPHA) < ALPHA
    # Lan and DeMets, 1983: O'Brien and Fleming's at a half; Pocock's by their formula
    assert SPENDING["obrien_fleming"](0.5, ALPHA) == pytest.approx(0.00557, abs=1e-5)
    assert SPENDING["pocock"](0.5, ALPHA) == pytest.approx(0.03101, abs=1e-5)
    assert SPENDING["kim_demets"](0.5, ALPHA) == pytest.approx(ALPHA / 4)


def test_the_first_decision_stands_whatever_comes_later():
    values = [1.0, 1.01, 0.99, 1.0, -50.0, -60.0]
    said, at = decide(values, design(6, ALPHA), 0.1)
    assert (said, at.n) == (Decision.HIGHER, 3)


def test_before_the_first_look_all_is_open():
    assert decide([5.0, 5.1], design(6, ALPHA), 0.1)[0] is Decision.OPEN
    assert design(6, ALPHA).level(2) == 0.0
    assert design(1, ALPHA).looks == ()


# --- in a run and in its table ------------------------------------------------------------------------------------

SEEDS = range(8)
USUAL = [0.80, 0.82, 0.81, 0.83, 0.79, 0.80, 0.81, 0.82]


def study(gain, jitter, n=8, techniques="ema"):
    ours = [value + gain + jitter * (-1) ** seed for seed, value in enumerate(USUAL[:n])]
    return several("", USUAL[:n]) + several(techniques, ours)


def decided(records, name="ema", seeds=SEEDS):
    own, usual = ({r.seed: r for r in records if bool(r.techniques) is ours} for ours in (True, False))
    assert all(name in r.techniques for r in own.values())
    return why_decided(own, usual, seeds, 1, Size.parse("1%"))


@pytest.mark.parametrize(
    ("gain", "jitter", "n", "said"),
    [
        (0.05, 0.0005, 3, "better after 3 of 8 seeds"),
        (-0.05, 0.0005, 3, "worse after 3 of 8 seeds"),
        (0.00, 0.0005, 8, "no difference beyond 1% after 3 of 8 seeds"),
        (0.01, 0.0300, 8, ""),
        (0.05, 0.0005, 2, ""),
    ],
)
def test_a_run_is_told_when_a_set_is_decided(gain, jitter, n, said):
    assert decided(study(gain, jitter, n)) == said


def test_what_trains_the_same_is_no_different_and_what_ends_the_same_may_be():
    records = study(0.0, 0.0, 3)
    assert decided(records) == "no difference beyond 1% after 3 of 8 seeds"
    assert decided(records[:2] + records[3:5]) == ""  # of two seeds
    records[-1].curve = [{**row, "accuracy": 0.9 * row["accuracy"]} for row in records[-1].curve]
    assert decided(records) == ""


def test_looks_follow_the_planned_order_and_stop_at_the_first_gap():
    records = [each for each in study(0.05, 0.0005) if not (each.techniques and each.seed == 1)]
    assert decided(records) == ""
    assert decided(records, seeds=[0, 2, 3, 4, 5, 6, 7, 1]).startswith("better after 3")


def test_what_breaks_is_decided_and_what_broke_once_is_not():
    broken = several("", USUAL) + [record("sam", seed=seed, status="diverged") for seed in range(5)]
    assert decided(broken, "sam") == "breaks on more than half of the seeds"
    assert decided(broken[:-1], "sam") == ""


def left_out(techniques, seeds, why):
    return [
        record(techniques, seed=seed, status="not_started", stop_reason="decided", reason=why, clock="", versions={})
        for seed in seeds
    ]


def test_a_table_takes_a_decided_set_as_complete_with_a_wider_interval():
    records = [each for each in study(0.05, 0.004) if not (each.techniques and each.seed > 4)]
    plain = next(each for each in compare(records)[0].results if each.techniques)
    assert plain.verdict is Verdict.INCOMPLETE
    (found,) = compare(records + left_out("ema", [5, 6, 7], "better after 5 of 8 seeds"))
    ours = next(each for each in found.results if each.techniques)
    assert (len(ours.values), ours.planned, ours.verdict) == (5, 5, Verdict.BETTER)
    assert ours.decided == "better after 5 of 8 seeds"
    level = design_of(8, 1).level(5)
    assert ours.difference.half_width == pytest.approx(plain.difference.at(1.0 - level).half_width)
    assert ours.difference.half_width > plain.difference.half_width
    assert any("group-sequential" in caveat for caveat in found.caveats)


def test_a_table_calls_no_set_better_for_equal_differences():
    records = several("", USUAL) + several("ema", [value + 0.25 for value in USUAL[:3]])
    (found,) = compare(records + left_out("ema", [3, 4, 5, 6, 7], "better after 3 of 8 seeds"))
    ours = next(each for each in found.results if each.techniques)
    assert (ours.verdict, ours.difference.low) == (Verdict.NO_EVIDENCE, None)


@pytest.mark.parametrize(("sets", "seeds"), [(1, 5), (3, 5)])
def test_tables_of_stopped_copies_of_the_baseline_err_as_rarely_as_others(sets, seeds):
    """Some are stopped as better or worse, more for want of a difference: the error is that of the whole table."""
    dice = np.random.default_rng(sets)
    tables, wrong, shortened = 300, 0, 0
    for _ in range(tables):
        usual = several("", dice.normal(0.8, 0.003, seeds).tolist())
        records = [*usual]
        for name in map(str, range(sets)):
            ours = several(name, dice.normal(0.8, 0.003, seeds).tolist())
            by_seed = [{each.seed: each for each in some} for some in (ours, usual)]
            for n in range(1, seeds):
                own = {seed: by_seed[0][seed] for seed in range(n)}
                if why := why_decided(own, by_seed[1], range(seeds), sets, Size.parse("1%")):
                    ours, shortened = [*ours[:n], *left_out(name, range(n, seeds), why)], shortened + 1
                    break
            records += ours
        (found,) = compare(records)
        wrong += any(each.verdict in {Verdict.BETTER, Verdict.WORSE} for each in found.results)
    assert shortened > 0.1 * sets * tables
    assert wrong / tables <= ALPHA + 2 * (ALPHA * (1 - ALPHA) / tables) ** 0.5


def test_the_error_is_shared_out_between_the_sets():
    assert design_of(8, 4).alpha == pytest.approx(0.0125)
    assert design_of(8, 4).levels[-1] < design_of(8, 1).levels[-1]


@pytest.mark.parametrize("text", ["", "x", "0", "-1%", "nan", "inf", "1 %%"])
def test_sizes_that_are_none_are_refused(text):
    with pytest.raises(EffbenchError, match="is no size of an effect"):
        Size.parse(text)


def test_sizes_are_shares_of_the_mean_or_amounts():
    assert Size.parse("0.5%").of(0.8) == pytest.approx(0.004)
    assert Size.parse(" 0.5 %").of(-2.0) == pytest.approx(0.01)
    assert Size.parse("0.002").of(0.8) == 0.002
    assert (str(Size.parse("0.5%")), str(Size.parse("2e-3"))) == ("0.5%", "0.002")
