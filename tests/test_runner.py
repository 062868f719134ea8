"""Running suites: every trial ends as a record, whatever happens."""

from __future__ import annotations

import json
import math
import time

import pytest

from effbench import hookimpl
from effbench.errors import EffbenchError
from effbench.records import Record, label
from effbench.sets import parse_set
from effbench.store import Store
from running import by_label, log_of, make_suite, only, run, strange_plugins


class Listener:
    """Notes what happens, in order."""

    def __init__(self):
        self.heard: list[str] = []

    @hookimpl
    def effbench_trial_started(self, trial):
        self.heard.append(f"started {trial.seed}")

    @hookimpl
    def effbench_trial_finished(self, record):
        self.heard.append(f"finished {record.seed} {record.status}")


def listening():
    plugins, listener = strange_plugins(), Listener()
    plugins.manager.register(listener, "listener")
    return plugins, listener


def test_each_end_has_its_status(server, tmp_path):
    sets = {
        "boom(step=3)": ("failed", "failed", "RuntimeError: boom"),
        "broken": ("failed", "failed", "ZeroDivisionError: broken at once"),
        "quitter": ("failed", "failed", "SystemExit: enough"),
        "hoard(mib=1, fail=true)": ("failed", "failed", "MemoryError: no memory is left"),
        "nan_from(step=7)": ("diverged", "diverged", "the loss was nan at step 7"),
        "nan_weights": ("diverged", "diverged", "after 20 steps not all weights are finite: 0.weight"),
        "suicide": ("killed", "failed", "killed by signal 9 (SIGKILL: perhaps the memory ran out)"),
        "suicide(number=11)": ("killed", "failed", "killed by signal 11 (SIGSEGV)"),
        "unwilling": ("skipped", "refused", "unwilling never applies"),
        "late_refusal": ("skipped", "refused", "this model has no place for it"),
    }
    done = run(server, tmp_path, make_suite(*sets))
    found = by_label(done.records)
    assert found.pop("baseline").status == "ok"
    expected = {label(parse_set(text)): end for text, end in sets.items()}
    assert {label: (r.status, r.stop_reason, r.reason) for label, r in found.items()} == expected
    assert done.exit_code == 1
    assert found["boom(step=3)"].steps == 3
    assert found["nan_from(step=7)"].steps == 7  # and not the whole budget
    assert not any(record.metrics for record in found.values())


def test_failures_have_their_own_logs(server, tmp_path):
    done = run(
        server,
        tmp_path,
        make_suite("boom(text='one')", "boom(text='two')", "broken", "talkative", "suicide(number=11)"),
    )
    logs = {label: log_of(done, record) for label, record in by_label(done.records).items()}
    assert "RuntimeError: one" in logs["boom(text=one)"]
    assert "two" not in logs["boom(text=one)"]
    assert "RuntimeError: two" in logs["boom(text=two)"]
    assert 'raise ZeroDivisionError("broken at once")' in logs["broken"]
    assert logs["talkative"] == "so much to say\n"
    assert "Fatal Python error: Segmentation fault" in logs["suicide(number=11)"]
    assert logs["baseline"] == ""
    assert len(list(done.store.logs.iterdir())) == 5


def test_failures_are_told_when_they_happen(server, tmp_path):
    plugins, listener = listening()
    done = run(server, tmp_path, make_suite(seeds=(3, 1, 2)), plugins=plugins)
    assert listener.heard == [
        f"{what} {seed}{' ok' * (what == 'finished')}" for seed in (3, 1, 2) for what in ("started", "finished")
    ]
    assert done.exit_code == 0


def test_fail_fast_starts_nothing_after_a_failure(server, tmp_path):
    plugins, listener = listening()
    suite = make_suite("boom", seeds=range(4))
    done = run(server, tmp_path, suite, plugins=plugins, fail_fast=True)
    assert [record.status for record in done.records][-1] == "failed"
    assert listener.heard[-2:] == [f"started {done.records[-1].seed}", f"finished {done.records[-1].seed} failed"]
    assert len(done.records) < 8
    assert done.exit_code == 1


def test_failures_of_earlier_runs_do_not_count_for_fail_fast(server, tmp_path):
    assert run(server, tmp_path, make_suite("nan_from")).exit_code == 1
    again = run(server, tmp_path, make_suite("nan_from", "slow(seconds=0.0)"), fail_fast=True)
    assert by_label(again.records)["slow(seconds=0.0)"].status == "ok"


def test_what_is_ok_is_kept_and_what_failed_is_tried_again(server, tmp_path):
    suite = make_suite("boom", "nan_from")
    first = run(server, tmp_path, suite)
    second = run(server, tmp_path, suite)
    assert first.kept == 0
    assert second.kept == 2  # the baseline, and what would diverge again
    assert second.exit_code == 1
    lines = (tmp_path / "records.jsonl").read_text().splitlines()
    assert [json.loads(line)["status"] for line in lines[3:]] == ["failed"]
    assert "RuntimeError: boom" in log_of(second, by_label(second.records)["boom"])
    assert run(server, tmp_path, suite, fresh=True).kept == 0


def test_the_total_is_kept(server, tmp_path):
    suite = make_suite("slow(seconds=0.05)", "slow(seconds=0.06)", "slow(seconds=0.07)", budget="0.7s", total="2s")
    began = time.monotonic()
    done = run(server, tmp_path, suite)
    assert time.monotonic() - began < 2.0 + 2.0
    statuses = [record.status for record in done.records]
    assert statuses[0] == "ok"
    assert statuses[-1] == "not_started"
    assert statuses == sorted(statuses, key=["ok", "timeout", "not_started"].index)
    late = [record for record in done.records if record.status == "not_started"]
    assert all(r.stop_reason == "total" and "of the total of 2s" in r.reason for r in late)
    assert {record.stop_reason for record in done.records} <= {"budget", "total"}


def test_a_trial_that_runs_when_the_total_is_spent_is_ended(server, tmp_path):
    suite = make_suite("slow(seconds=0.02)", budget="10 epochs", total="0.9s", seeds=(0, 1))
    done = run(server, tmp_path, suite)
    slow = [record for record in done.records if record.techniques]
    assert [(record.status, record.stop_reason) for record in slow] == [("timeout", "total"), ("not_started", "total")]
    assert slow[0].reason == "still running when the suite's total was spent"
    assert 0 < slow[0].steps < 100
    assert slow[0].metrics == {}


def test_no_free_evaluation(server, tmp_path):
    suite = make_suite("slow(seconds=0.2)", budget="0.8s", workloads=("judged_slowly",))
    record = by_label(run(server, tmp_path, suite).records)["slow(seconds=0.2)"]
    assert 2 <= record.steps <= 4  # none after the budget was spent
    assert record.spent >= 0.8
    assert record.ledger["evaluation"] >= 0.3 * (len(record.curve) + 1)  # validation each time, test at the end
    assert record.ledger["forward_backward"] <= record.spent
    assert sum(record.ledger.values()) == pytest.approx(record.wall_seconds, abs=0.1)
    assert record.overrun_seconds == pytest.approx(record.spent - 0.8)
    assert [point["progress"] for point in record.curve][-1] == 1.0


@pytest.mark.parametrize("seconds", [-3600, 3600])
def test_a_jump_of_the_system_clock_changes_nothing(server, tmp_path, seconds):
    suite = make_suite(f"slow(seconds=0.05)+time_traveller(seconds={seconds}.0)", budget="0.5s")
    record = only(run(server, tmp_path, suite).records)
    assert record.status == "ok"
    assert 0.5 <= record.spent < 2.0
    assert all(0.0 <= line < 3.0 for line in record.ledger.values())
    assert 0.5 <= record.wall_seconds < 5.0
    assert record.warnings == [warning for warning in record.warnings if "busy" in warning]


def test_the_first_step_is_told_apart(server, tmp_path):
    suite = make_suite("slow(seconds=0.02, first=0.5)", budget="1s")
    record = only(run(server, tmp_path, suite).records)
    assert 0.35 < record.setup_seconds - record.ledger["setup"] < 1.0
    assert record.examples_per_second > 1.4 * record.examples / record.spent  # half of which went into the first step
    assert record.steps < 30  # it counts all the same


def test_throughput_counts_whole_steps(server, tmp_path):
    sets = ("by_example(seconds=0.0025)", "by_example(seconds=0.0025, slices=4)")
    one, four = (by_label(run(server, tmp_path, make_suite(*sets, budget="10 steps")).records)[text] for text in sets)
    assert one.examples == four.examples == 200
    assert 0.5 < four.examples_per_second / one.examples_per_second < 2.0  # and not a quarter of it
    assert one.examples_per_second < 400


def test_memory_of_one_trial_is_not_the_next_ones(server, tmp_path):
    suite = make_suite("hoard(mib=150)", "hoard(mib=151, fail=true)", seeds=range(3), budget="3 steps")
    done = run(server, tmp_path, suite)
    assert {r.status for r in done.records if "fail=True" not in r.label} == {"ok"}
    assert {r.reason for r in done.records if "fail=True" in r.label} == {"MemoryError: no memory is left"}
    at_start = [int(log_of(done, r).split(" MiB")[0]) for r in done.records if r.techniques]
    assert len(at_start) == 6
    assert max(at_start) - min(at_start) < 50  # each took 150 more


def test_a_result_does_not_depend_on_what_ran_before(server, tmp_path):
    def losses(folder, *sets):
        done = run(server, tmp_path / folder, make_suite(*sets))
        return [(r.metrics, r.curve) for r in done.records if r.label == "dice"]

    alone = losses("alone", "dice")
    assert losses("after", "rogue(step=18)", "rogue(at_once=true, step=18)", "dice") == alone
    assert losses("before", "dice", "rogue(step=18)") == alone
    assert len(alone) == 1
    assert math.isfinite(alone[0][0]["test"]["loss"])


@pytest.mark.parametrize(
    ("chosen", "budget", "reason"),
    [
        ("", "1000 flop", "1000 flop buys no step"),
        ("preparation(seconds=0.2)", "0.1s", "0.1s buys no step"),
        ("idle", "20 steps", "20 steps left all weights as they were"),
    ],
)
def test_no_work_is_no_result(server, tmp_path, chosen, budget, reason):
    sets = [chosen] if chosen else []
    done = run(server, tmp_path, make_suite(*sets, budget=budget))
    record = only(done.records) if chosen else done.records[0]
    assert (record.status, record.reason) == ("no_steps", reason)
    assert (record.metrics, record.curve, record.examples_per_second) == ({}, [], None)
    assert done.exit_code == 1


def test_an_unwritable_folder_is_found_before_the_work(server, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(EffbenchError, match=r"cannot write results to .*file/out"):
        run(server, tmp_path / "file" / "out", make_suite())


def test_what_the_disk_will_not_take_is_shown(server, tmp_path):
    said = []
    plugins = strange_plugins()

    class Vandal:
        @hookimpl
        def effbench_trial_started(self):
            (tmp_path / "records.jsonl").unlink()
            (tmp_path / "records.jsonl").mkdir()

    plugins.manager.register(Vandal(), "vandal")
    done = run(server, tmp_path, make_suite(), plugins=plugins, warn=said.append)
    assert done.exit_code == 1
    (text,) = said
    record = Record.from_json(text.partition("the record was: ")[2])
    assert record.metrics["test"]["accuracy"] == done.records[0].metrics["test"]["accuracy"]


def test_a_strange_evaluation_costs_its_own_rows(server, tmp_path):
    done = run(server, tmp_path, make_suite(workloads=("judged_strangely", "toy")))
    found = {record.workload: record for record in done.records}
    assert found["judged_strangely"].status == "failed"
    assert "says something that is no number" in found["judged_strangely"].reason
    assert found["toy"].status == "ok"
    assert [record.workload for record in Store(tmp_path).records()] == [record.workload for record in done.records]
