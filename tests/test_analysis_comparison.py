"""What a comparison says of sets of techniques, and what it refuses to say."""

import math

import pytest

from effbench.analysis.comparison import compare
from effbench.analysis.verdicts import Verdict
from effbench.errors import UnknownName
from record_factory import record, several, study

BASELINE = [0.80, 0.82, 0.81, 0.83, 0.79]


def shifted(by, jitter=0.001):
    return [value + by + jitter * (-1) ** seed for seed, value in enumerate(BASELINE)]


def results(records, **options):
    (found,) = compare(records, **options)
    return {each.label: each for each in found.results}


def caveats(records):
    (found,) = compare(records)
    return "\n".join(found.caveats)


def test_differences_are_paired_by_seed():
    # The seeds differ by 0.04, the set from the baseline by 0.01 on each: only pairing can see it.
    found = results(several("", BASELINE) + several("ema", shifted(0.01)))
    assert found["ema"].difference.mean == pytest.approx(0.0102)  # 0.01 + 0.001 * (3 - 2) / 5
    assert found["ema"].difference.low == pytest.approx(0.0102 - 2.776445 * math.sqrt(1.2e-6 / 5))
    assert found["ema"].verdict is Verdict.BETTER
    assert found["baseline"].difference is None
    assert found["baseline"].verdict is None


@pytest.mark.parametrize(
    ("by", "jitter", "higher", "said"),
    [
        (0.01, 0.001, True, Verdict.BETTER),
        (-0.01, 0.001, True, Verdict.WORSE),
        (0.01, 0.001, False, Verdict.WORSE),
        (-0.01, 0.001, False, Verdict.BETTER),
        (0.01, 0.03, True, Verdict.NO_EVIDENCE),
    ],
)
def test_the_verdict_follows_from_interval_and_direction(by, jitter, higher, said):
    records = several("", BASELINE, higher_is_better=higher)
    records += several("ema", shifted(by, jitter), higher_is_better=higher)
    assert results(records)["ema"].verdict is said


def test_differences_below_the_noise_floor_are_noise():
    records = several("", BASELINE) + several("ema", shifted(0.01))
    assert results(records, noise_floor=0.008)["ema"].verdict is Verdict.BETTER
    assert results(records, noise_floor=0.0103)["ema"].verdict is Verdict.NO_EVIDENCE


def test_looking_often_widens_the_intervals():
    records = several("", BASELINE) + several("ema", shifted(0.01, 0.006))
    alone = results(records)["ema"]
    crowd = results(records + [r for i in range(20) for r in several(f"noise{i}", shifted(0.0, 0.02))])["ema"]
    assert (alone.verdict, crowd.verdict) == (Verdict.BETTER, Verdict.NO_EVIDENCE)
    assert crowd.p_value == pytest.approx(alone.p_value)
    assert crowd.p_adjusted == pytest.approx(21 * alone.p_value)


def test_one_seed_has_no_interval_and_no_verdict():
    found = results(several("", [0.8]) + several("ema", [0.9]))
    assert found["ema"].mean.low is None
    assert found["ema"].difference.mean == pytest.approx(0.1)
    assert (found["ema"].difference.low, found["ema"].verdict) == (None, Verdict.NO_EVIDENCE)
    assert "one seed" in caveats(several("", [0.8]) + several("ema", [0.9]))


def test_incomplete_sets_never_rank_above_complete_ones():
    records = several("", [0.68, 0.70, 0.69, 0.71, 0.67]) + several("a", [0.70, 0.721, 0.71, 0.73, 0.69])
    records += several("b", [0.85, 0.86]) + [record("b", seed=seed, status="failed") for seed in (2, 3, 4)]
    records += [*several("c", [0.85, 0.86, 0.87, 0.88]), record("c", seed=4, status="not_started")]
    (found,) = compare(records)
    assert [each.label for each in found.results] == ["baseline", "a", "c", "b"]
    by_label = {each.label: each for each in found.results}
    assert (len(by_label["b"].values), by_label["b"].planned) == (2, 5)
    assert by_label["b"].statuses == {"ok": 2, "failed": 3}
    assert (by_label["b"].verdict, by_label["c"].verdict) == (Verdict.BREAKS, Verdict.INCOMPLETE)
    assert [each.label for each in found.results if each.best] == ["a"]


@pytest.mark.parametrize("status", ["diverged", "failed", "timeout", "killed", "no_steps"])
def test_breaking_in_most_seeds_is_a_verdict(status):
    records = several("", BASELINE) + several("sam", shifted(0.1)[:2])
    records += [record("sam", seed=seed, status=status) for seed in (2, 3, 4)]
    assert results(records)["sam"].verdict is Verdict.BREAKS


def test_a_nan_that_calls_itself_a_result_is_none():
    records = several("", BASELINE) + several("amp", shifted(0.1))
    for each in records[-3:]:
        each.metrics["test"]["accuracy"] = math.nan
    found = results(records)["amp"]
    assert (len(found.values), len(found.nonfinite), found.verdict) == (2, 3, Verdict.BREAKS)
    assert (found.time_to_target.reached, found.time_to_target.seeds) == (2, 5)


def test_what_is_refused_is_neither_good_nor_bad():
    records = several("", BASELINE) + [record("mixup", seed=s, status="skipped", reason="no classes") for s in range(5)]
    assert results(records)["mixup"].verdict is Verdict.SKIPPED


def test_the_best_are_those_that_cannot_be_told_from_the_best():
    records = several("", BASELINE) + several("first", shifted(0.05)) + several("second", shifted(0.049, -0.004))
    records += several("third", shifted(0.02, 0.002))
    found = results(records)
    assert {label for label, each in found.items() if each.best} == {"first", "second"}
    assert found["third"].verdict is Verdict.BETTER


def test_nothing_is_best_where_nothing_is_better():
    found = results(several("", BASELINE) + several("lion", shifted(0.01, 0.05)))
    assert not any(each.best for each in found.values())


def test_equal_differences_are_said_to_prove_nothing():
    records = several("", [0.80, 0.82]) + several("ema", [0.85, 0.87])
    assert results(records)["ema"].verdict is Verdict.NO_EVIDENCE
    assert "equal differences on all seeds give no spread to judge by, so no interval: ema" in caveats(records)


def test_workloads_budgets_clocks_and_versions_never_mix():
    records = study(sets=1, workloads=["a", "b"])
    records += several("", BASELINE, workload="a", budget="10s reference")
    records += several("", BASELINE, workload="a", versions={"effbench": "0.2.3"})
    records += several("", BASELINE, workload="a", clock="cpu")
    found = [(c.group.workload, c.group.budget, c.group.clock, c.group.version) for c in compare(records)]
    assert found == [
        ("a", "5s reference", "reference", "0.1"),
        ("a", "5s reference", "reference", "0.2"),
        ("a", "10s reference", "reference", "0.1"),
        ("a", "5s reference", "cpu", "0.1"),
        ("b", "5s reference", "reference", "0.1"),
    ]


def test_trials_that_never_started_go_with_the_others():
    records = [*several("", BASELINE), record("ema", seed=0, status="not_started", clock="", versions={})]
    assert results(records)["ema"].planned == 5


def test_of_two_records_of_a_set_and_seed_the_last_counts():
    records = several("", BASELINE) + several("", [0.5] * 5, key="other code")
    assert results(records)["baseline"].mean.mean == 0.5


def test_seeds_without_a_partner_count_for_the_mean_only():
    records = several("", BASELINE[:3]) + several("ema", shifted(0.01))
    found = results(records)
    assert (found["ema"].mean.n, found["ema"].difference.n) == (5, 3)
    assert "no run of the baseline to pair with, and count for the mean only: ema" in caveats(records)
    assert "the baseline is scored on 3 of 5 seeds only" in caveats(records)


def test_without_a_baseline_nothing_is_compared():
    records = several("ema", BASELINE)
    assert results(records)["ema"].difference is None
    assert "no record of the baseline" in caveats(records)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"threads": 2}, "different threads for each trial, so speeds and spent time may not compare: 1 in 5 records"),
        ({"jobs": 1}, "different trials at a time"),
        ({"environment": {"processor": "Other CPU"}}, "different machines"),
        ({"versions": {"effbench": "0.1.0", "torch": "2.9.1"}}, "different versions of torch"),
        ({"warnings": ["busy machine: load 9"]}, "busy machine: load 9 (5 of 10 records)"),
    ],
)
def test_unlike_circumstances_are_flagged(change, said):
    assert caveats(several("", BASELINE) + several("ema", shifted(0.01))) == ""
    assert said in caveats(several("", BASELINE) + several("ema", shifted(0.01), **change))


def test_a_warning_of_all_records_reads_the_same_whatever_their_number():
    records = several("", BASELINE, warnings=["busy"])
    assert caveats(records) == "busy (all records)"
    assert caveats(records + several("ema", shifted(0.01), warnings=["busy"])) == "busy (all records)"


def test_speed_is_relative_to_the_baseline_by_seed():
    records = several("", BASELINE) + several("sam", BASELINE)
    for each in records:
        each.examples_per_second = (1000.0 + 500.0 * each.seed) * (0.5 if each.techniques else 1.0)
    assert results(records)["sam"].relative_speed == pytest.approx(0.5)


def test_costs_can_be_compared_too():
    records = several("", BASELINE) + several("checkpointing", BASELINE)
    for each in records:
        each.peak_memory_mib = 100.0 + 0.1 * each.seed - (40.0 + 0.3 * each.seed if each.techniques else 0.0)
    found = results(records, metric="peak_memory_mib")["checkpointing"]
    assert (found.verdict, found.difference.mean) == (Verdict.BETTER, pytest.approx(-40.6))


def test_metrics_are_chosen_by_name():
    records = study(sets=1, workloads=["a"]) + several("", BASELINE, workload="b", metric="accuracy")
    for each in records[-5:]:
        each.metrics = {"test": {"accuracy": 0.5}}
    (found,) = compare(records, metric="loss")
    assert (found.group.workload, found.measure.split, found.measure.higher_is_better) == ("a", "test", False)
    assert compare(records, metric="validation/accuracy")[0].measure.split == "validation"
    with pytest.raises(UnknownName, match=r"no metric 'acuracy'; did you mean 'accuracy'"):
        compare(records, metric="acuracy")
    with pytest.raises(UnknownName, match=r"no workload 'c'"):
        compare(records, workload="c")


def test_no_verdict_where_nobody_says_which_way_is_better():
    records = several("", BASELINE) + several("ema", shifted(0.01))
    for each in records:
        each.metrics["test"]["sharpness"] = each.metrics["test"]["accuracy"]
    assert results(records, metric="sharpness")["ema"].verdict is Verdict.NO_EVIDENCE


def test_a_headline_metric_that_no_record_has_is_said():
    records = several("", BASELINE) + several("ema", shifted(0.01))
    for each in records:
        each.metric = "acuracy"
    with pytest.raises(UnknownName, match=r"mnist1d_cnn: there is no headline metric 'acuracy'; did you mean 'acc"):
        compare(records)
    assert compare(records, "accuracy")[0].results[1].verdict is Verdict.BETTER


def test_a_direction_on_which_records_disagree_is_none():
    records = several("", BASELINE) + several("ema", shifted(0.01), higher_is_better=False)
    assert results(records)["ema"].verdict is Verdict.NO_EVIDENCE
    assert "there are no verdicts" in caveats(records)


def test_the_star_is_of_the_confidence_of_the_table():
    # A difference of 0.001 to the leader, which 90 % tells apart and 95 % does not.
    near = [value + 0.049 + 0.001 * jitter for value, jitter in zip(BASELINE, (0, 1, -1, 1, -1), strict=True)]
    records = several("", BASELINE) + several("first", [value + 0.05 for value in BASELINE[:4]] + [0.8401])
    records += several("second", near)
    assert {label for label, each in results(records).items() if each.best} == {"first", "second"}
    assert {label for label, each in results(records, confidence=0.9).items() if each.best} == {"first"}


def test_nothing_comes_of_nothing():
    assert compare([]) == []
    (found,) = compare([record(status="failed", reason="boom")])
    assert (found.results[0].verdict, found.measure.title) == (None, "accuracy")
