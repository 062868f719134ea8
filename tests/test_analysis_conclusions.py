"""Ladders, tracks, costs and claim cards: what is concluded, and what is not."""

import math

import pytest

from effbench.analysis.claims import claims
from effbench.analysis.comparison import compare
from effbench.analysis.costs import ON_THE_CLOCK, cost
from effbench.analysis.intervals import Estimate
from effbench.analysis.ladder import Rung, crossings_of, ladders
from effbench.analysis.tracks import Finding, finding, tracks
from effbench.analysis.verdicts import Verdict
from effbench.clock import ON_THE_CLOCK as OF_THE_CLOCK
from record_factory import record, runs, several

# --- ladders ------------------------------------------------------------------------------------------------------


def climb(gains, techniques="mixup", **changes):
    records = []
    for seconds, gain in gains.items():
        budget = f"{seconds}s reference"
        records += runs("", 0.80, jitter=0.0, budget=budget, **changes)
        records += runs(techniques, 0.80 + gain, budget=budget, **changes)
    return {each.label: each for each in ladders(compare(records))}


def test_a_set_pays_from_the_crossing_on():
    found = climb({10: -0.02, 40: -0.01, 160: 0.03})["mixup"]
    (crossing,) = found.crossings
    # Differences are the gain and 0.0005 / 5 of jitter; a straight line in log budget from -0.0099 to 0.0301.
    share = 0.0099 / 0.04
    assert crossing.at == pytest.approx(40.0 * 4.0**share)
    assert crossing.low < crossing.at < crossing.high
    assert (crossing.begins, crossing.is_sure) == (True, True)
    assert found.sentence == "mixup pays from 56s reference on"


def test_a_set_may_cease_to_pay():
    found = climb({10: 0.02, 40: -0.01})["mixup"]
    assert found.crossings[0].begins is False
    assert found.sentence == "mixup pays up to 25s reference"


def test_less_may_be_better_on_a_ladder():
    found = climb({10: 0.02, 40: -0.01}, higher_is_better=False)["mixup"]
    assert found.sentence == "mixup pays from 25s reference on"


def test_a_crossing_that_intervals_do_not_settle_says_so():
    records = []
    for seconds, gain in {10: -0.002, 40: 0.002}.items():
        records += runs("", 0.80, jitter=0.0, budget=f"{seconds}s reference")
        records += runs("mixup", 0.80 + gain, jitter=0.02, budget=f"{seconds}s reference")
    found = {each.label: each for each in ladders(compare(records))}["mixup"]
    assert found.sentence.endswith("by its means, which intervals do not settle") or not found.crossings


def rung(amount, low, mean, high):
    return Rung(f"{amount}s reference", amount, 5, 5, Estimate(5, 0.8), Estimate(5, mean, 0.01, low, high), None)


@pytest.mark.parametrize(
    ("left", "right", "higher", "ends"),
    [
        # From 10 to 40, a line from -0.03 to 0.01 is zero after three quarters, one from -0.01 to 0.03 after one.
        ((-0.03, -0.01, 0.01), (0.01, 0.03, 0.05), True, (None, 10 * 4**0.75)),
        ((-0.05, -0.03, -0.01), (-0.01, 0.01, 0.03), True, (10 * 4**0.25, None)),
        ((-0.01, 0.01, 0.03), (-0.05, -0.03, -0.01), True, (None, 10 * 4**0.75)),
        ((0.01, 0.03, 0.05), (-0.03, -0.01, 0.01), True, (10 * 4**0.25, None)),
        ((-0.01, 0.01, 0.03), (-0.05, -0.03, -0.01), False, (None, 10 * 4**0.75)),
    ],
)
def test_an_end_of_a_crossing_that_lies_beyond_the_rungs_is_not_known(left, right, higher, ends):
    (found,) = crossings_of([rung(10.0, *left), rung(40.0, *right)], higher)
    assert (found.low, found.high) == tuple(None if end is None else pytest.approx(end) for end in ends)
    assert (found.low or 0.0) < found.at < (found.high or math.inf)


def test_a_rung_without_any_difference_is_a_crossing_where_the_sign_changes():
    below, none, above = (
        rung(10 * 2.0**i, mean - 0.02, mean, mean + 0.02) for i, mean in enumerate((-0.01, 0.0, 0.03))
    )
    (found,) = crossings_of([below, none, above], True)
    assert (found.at, found.begins) == (20.0, True)
    assert crossings_of([below, none], True) == crossings_of([none, above], True) == ()


@pytest.mark.parametrize(
    ("gains", "said"),
    [
        ({10: 0.02, 40: 0.01}, "mixup pays at every budget"),
        ({10: -0.02, 40: -0.01}, "mixup does not pay at any budget"),
    ],
)
def test_without_a_crossing_it_is_the_same_at_every_budget(gains, said):
    assert climb(gains)["mixup"].sentence == said


def test_the_baseline_comes_first_and_one_budget_is_no_ladder():
    assert next(iter(climb({10: 0.0, 40: 0.0}))) == "baseline"
    assert climb({10: 0.02}) == {}


def test_budgets_of_unknown_size_are_no_rungs():
    naps = {"clock": "naps", "higher_is_better": True}
    records = [
        each
        for budget, value in (("2 naps", 0.7), ("4 naps", 0.9), ("some naps", 0.9))
        for each in several("", [0.8, 0.82, 0.81], budget=budget, **naps)
        + several("mixup", [value] * 3, budget=budget, **naps)
    ]
    assert [rung.amount for rung in ladders(compare(records))[1].rungs] == [2.0, 4.0]
    assert ladders(compare(records[6:])) == []


def test_incomplete_rungs_make_no_crossing():
    records = []
    for seconds, gain in {10: -0.02, 40: 0.02}.items():
        records += runs("", 0.80, jitter=0.0, budget=f"{seconds}s reference")
        records += runs("mixup", 0.80 + gain, budget=f"{seconds}s reference")
    records = [r for r in records if not (r.techniques and r.seed == 4 and r.budget == "40s reference")]
    (found,) = [each for each in ladders(compare(records)) if each.label == "mixup"]
    assert (found.rungs[1].scored, found.rungs[1].planned, found.crossings) == (4, 5, ())


# --- tracks -------------------------------------------------------------------------------------------------------


def both_tracks(per_step, per_budget, steps=400):
    records = runs("", 0.80, jitter=0.0) + runs("sam", 0.80 + per_budget, steps=200)
    at_steps = {"budget": f"{steps} steps", "clock": "steps", "steps": steps}
    return tracks(compare(records + runs("", 0.80, jitter=0.0, **at_steps) + runs("sam", 0.80 + per_step, **at_steps)))


@pytest.mark.parametrize(
    ("per_step", "per_budget", "said"),
    [
        (0.02, 0.01, Finding.PAYS),
        (0.02, -0.01, Finding.DOES_NOT_PAY),
        (0.02, 0.0, Finding.UNSETTLED),
        (0.0, 0.02, Finding.PAYS_ONLY),
        (0.0, 0.0, Finding.NEITHER),
        (0.0, -0.02, Finding.COSTS),
        (-0.02, 0.02, Finding.CHEAP),
        (-0.02, 0.0, Finding.BALANCED),
        (-0.02, -0.03, Finding.HARMS),
    ],
)
def test_the_two_tracks_together_are_a_finding(per_step, per_budget, said):
    (found,) = both_tracks(per_step, per_budget)
    assert found.finding is said
    assert found.waived.mean == pytest.approx(per_step + 0.0001)
    assert found.per_budget.mean == pytest.approx(per_budget + 0.0001)
    assert (found.steps, found.budget) == ("400 steps", "5s reference")


def test_the_idea_helps_but_does_not_pay_for_itself_in_these_words():
    assert both_tracks(0.02, -0.01)[0].finding == "helps, but does not pay for itself"


def test_tracks_of_other_lengths_are_no_pair():
    assert both_tracks(0.02, 0.01, steps=300) == []


def test_breaking_and_missing_runs_are_no_finding():
    assert finding(Verdict.BREAKS, Verdict.BETTER) is Finding.BREAKS
    assert finding(Verdict.INCOMPLETE, Verdict.BETTER) is Finding.OPEN
    assert finding(Verdict.WORSE, Verdict.SKIPPED) is Finding.OPEN


# --- costs --------------------------------------------------------------------------------------------------------


def test_the_lines_on_the_clock_are_the_clocks_own():
    assert ON_THE_CLOCK == OF_THE_CLOCK


def test_a_step_costs_what_its_seconds_say():
    ours = several("sam", [0.8] * 3, steps=200)  # the same ledger for half of the steps
    assert cost(ours, several("", [0.8] * 3)).step.mean == pytest.approx(2.0)
    assert cost(ours, several("", [0.8] * 3)).is_priced is False


def test_a_price_list_goes_before_seconds_and_weighs_its_phases():
    phases = [{"start": 0.0, "ratio": 0.5, "low": 0.5, "high": 0.5, "rounds": 100}]
    phases += [{"start": 0.5, "ratio": 2.0, "low": 2.0, "high": 2.0, "rounds": 100}]
    found = cost(several("growing", [0.8], price={"phases": phases}), several("", [0.8]))
    assert found.is_priced
    # Half of the budget buys 1 step in place of 0.5, half 0.25 in place of 0.5: 1.25 steps where the baseline has 1.
    assert found.step.mean == pytest.approx(1.0 / 1.25)


def test_the_techniques_own_work_is_a_share_of_the_clock():
    ledger = {"data": 1.0, "forward_backward": 6.0, "update": 1.0, "extra": 2.0, "evaluation": 90.0}
    assert cost([record("sam", ledger=ledger)], [record()]).extra.mean == pytest.approx(0.2)


def test_energy_is_compared_where_it_was_measured():
    ours, theirs = record("sam", measured={"gpu_joules": 30.0}), record(measured={"gpu_joules": 20.0})
    assert cost([ours], [theirs]).joules.mean == pytest.approx(1.5)
    assert cost([record("sam")], [record()]).joules.mean is None


# --- claim cards --------------------------------------------------------------------------------------------------


def test_a_card_has_the_papers_claim_beside_what_was_measured():
    records = runs("", 0.80, jitter=0.0) + runs("mixup", 0.81, steps=200)
    said = {"mixup": {"paper": "Zhang et al., arXiv:1710.09412", "claim": "error 5.6 % -> 4.2 %", "leaf": "a/b"}}
    (card,) = claims(compare(records), said)
    assert card.said["mixup"].claim == "error 5.6 % -> 4.2 %"
    assert (card.verdict, card.n) == (Verdict.BETTER, "5/5")
    assert card.relative == pytest.approx(0.0101 / 0.81)  # of the baseline's mean
    assert card.cost.step.mean == pytest.approx(2.0)
    assert card.records[0] == (0, "ok", records[5].key)
    assert card.sentence == (
        "mixup on mnist1d_cnn in 5s reference: better, accuracy +0.0101 [+0.00942, +0.01078], "
        "2.00 times the baseline's step, n = 5/5"
    )


def test_a_card_of_what_broke_tells_why():
    records = [*runs("", 0.80), *(record("sam", seed=seed, status="failed", reason="boom") for seed in range(5))]
    (card,) = claims(compare(records))
    assert (card.verdict, card.reasons, card.difference) == (Verdict.BREAKS, ("boom",), None)
    assert card.said["sam"].claim == ""
    assert card.sentence == "sam on mnist1d_cnn in 5s reference: breaks, n = 0/5"


def test_there_is_a_card_for_each_set_workload_and_budget():
    records = [r for w in "ab" for b in ("5s reference", "9s reference") for t in ("", "x", "y")
               for r in runs(t, 0.8, workload=w, budget=b)]  # fmt: skip
    found = claims(compare(records))
    assert len(found) == 8
    assert len({(card.label, card.workload, card.budget) for card in found}) == 8
    assert all(math.isfinite(card.relative) for card in found)
