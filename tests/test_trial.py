"""One trial in this process: its record, its curve, what it tells meanwhile, and what faults mean."""

from __future__ import annotations

import json
import time

import pytest
import torch

from effbench import trial as trials
from effbench.errors import Conflict, Diverged, NotApplicable
from effbench.meters import Meter, count_flop
from effbench.pricing import Phase, Price
from effbench.records import Record
from effbench.sets import parse_set
from effbench.trial import Stop, Trial, what_it_means
from running import strange_plugins


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def run(text: str = "", budget: str = "40 steps", **changes) -> tuple[Record, list[dict]]:
    told: list[dict] = []
    asked = Trial("strange", changes.pop("workload", "toy"), parse_set(text) if text else {}, 0, budget, **changes)
    return trials.run(asked, strange_plugins(), told.append), told


def test_a_record_says_what_happened():
    began = time.monotonic()
    asked = Trial("strange", "toy", {}, 7, "40 steps", threads=1, jobs=2, identity={"seed": "7"}, key="k")
    record = trials.run(asked, strange_plugins(), since=began - 1.0)
    assert (record.status, record.stop_reason, record.steps, record.examples, record.spent) == (
        "ok",
        "budget",
        40,
        800,
        40,
    )
    assert (record.seed, record.jobs, record.key, record.identity) == (7, 2, "k", {"seed": "7"})
    assert record.parameters == 8 * 16 + 16 + 32 + 16 * 2 + 2
    assert record.ledger["setup"] > 1.0  # the time before it began to run
    assert record.setup_seconds >= record.ledger["setup"]
    assert record.flop == 40 * 20 * 2 * (8 * 16 * 2 + 16 * 2 * 3)
    assert record.peak_memory_mib > 0
    assert set(record.metrics) == {"validation", "test"}
    assert Record.from_json(record.to_json()) == record


def test_the_curve_rises_to_the_end():
    record, _ = run()
    assert [point["steps"] for point in record.curve] == [11, 21, 31, 40]  # the first step at or after each quarter
    assert [point["progress"] for point in record.curve] == [11 / 40, 21 / 40, 31 / 40, 1.0]
    assert record.curve[-1]["accuracy"] == record.metrics["validation"]["accuracy"]
    assert record.metrics["test"]["accuracy"] > 0.7  # it learns


def test_the_same_trial_twice_is_bit_equal():
    (one, _), (other, _) = run("dice"), run("dice")
    assert (one.metrics, one.curve) == (other.metrics, other.curve)
    assert run()[0].metrics != one.metrics


def test_it_tells_in_time_how_far_it_is():
    _, told = run("slow(seconds=0.02)", "0.5s")
    assert [event["event"] for event in told[:2]] == ["setup", "progress"]
    assert told[1]["within"] == 5.5  # the budget and its grace, from before the first step
    progress = [event for event in told if event["event"] == "progress"]
    assert all(event["within"] == pytest.approx(5.0 + 0.5 * (1 - event["progress"])) for event in progress)
    assert [event["event"] for event in told[-2:]] == ["evaluation", "metering"]
    assert len(progress) < 12  # a few times a second
    assert json.loads(json.dumps(told)) == told


def test_where_no_seconds_are_bounded_a_step_may_take_longer():
    _, told = run("slow(seconds=0.02, first=0.1)")
    within = [event["within"] for event in told if event["event"] == "progress"]
    assert within[0] == 900.0  # the first step may compile
    assert min(within[1:]) == 60.0


def test_a_first_step_like_the_others_is_no_setup():
    record, _ = run("slow(seconds=0.1)", "5 steps")
    assert record.setup_seconds - record.ledger["setup"] < 0.08


def test_what_was_bought_is_known_before():
    price = Price("reference", (Phase(0.0, 0.1, 1, 1, 1, 100, 1.0), Phase(0.5, 0.2, 2, 2, 2, 100, 2.0))).to_plain()
    record, _ = run(budget="4s reference", price=price)
    assert (record.steps, record.spent) == (30, 4.0)
    unpriced, _ = run(budget="4s reference")
    assert (unpriced.status, unpriced.reason) == (
        "failed",
        "4s reference needs a price; `effbench calibrate SUITE` measures it",
    )


def test_a_failure_keeps_what_is_known():
    record, _ = run("boom(step=10)")
    assert (record.status, record.steps, record.examples, record.spent) == ("failed", 10, 200, 10)
    assert [point["steps"] for point in record.curve] == []
    late, _ = run("boom(step=30)")
    assert [point["steps"] for point in late.curve] == [11, 21]


def test_a_workload_that_says_nonsense_is_named():
    record, _ = run(workload="judged_strangely")
    assert record.status == "failed"
    assert record.reason.startswith("an evaluation of judged_strangely says something that is no number")


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize(
    ("fault", "meaning"),
    [
        (NotApplicable("no images"), ("skipped", "refused", "no images")),
        (Conflict("a and b"), ("skipped", "refused", "a and b")),
        (Diverged("nan"), ("diverged", "diverged", "nan")),
        (Stop(), ("timeout", "deadline", "still running at its deadline")),
        (KeyboardInterrupt(), ("interrupted", "interrupted", "Ctrl-C")),
        (ValueError("odd"), ("failed", "failed", "ValueError: odd")),
        (ValueError("odd:\n  one\n  two\n"), ("failed", "failed", "ValueError: odd: ... two")),
        (ValueError("y" * 10**6), ("failed", "failed", f"ValueError: {'y' * 488} ...")),
        (ValueError(f"odd\n{'y' * 10**6}"), ("failed", "failed", f"ValueError: odd ... {'y' * 500} ...")),
        (AssertionError(), ("failed", "failed", "AssertionError")),
        (SystemExit(3), ("failed", "failed", "SystemExit: 3")),
        (UnspeakableError(), ("failed", "failed", "UnspeakableError: it cannot say what it is")),
    ],
)
def test_what_faults_mean(fault, meaning):
    assert what_it_means(fault) == meaning


def test_a_trial_survives_json():
    asked = Trial(
        "s", "toy", {"slow": {"seconds": 0.1}}, 3, "4 steps", price={"unit": "flop"}, identity={"a": "b"}, key="k"
    )
    assert Trial.from_plain(json.loads(json.dumps(asked.to_plain()))) == asked


def test_a_meter_that_fails_costs_its_number():
    def fail(training) -> float:
        raise RuntimeError("odd\nand more")

    plugins = strange_plugins()
    extra = [Meter("odd_kelvin", fail), Meter("joules", lambda training: 3), Meter("unknown", lambda training: None)]
    plugins.offers["effbench_meters"] |= {meter.name: meter for meter in extra}
    record = trials.run(Trial("strange", "toy", {}, 0, "3 steps"), plugins)
    assert record.status == "ok"
    assert record.measured["joules"] == 3.0
    assert not record.measured.keys() & {"odd_kelvin", "unknown"}
    assert record.warnings == ["odd_kelvin could not be measured: RuntimeError: odd"]
    assert record.flop is not None


def test_a_meter_that_is_stopped_costs_no_result():
    def stopped(training) -> float:
        raise Stop

    plugins = strange_plugins()
    plugins.offers["effbench_meters"] |= {"endless": Meter("endless", stopped)}
    record = trials.run(Trial("strange", "toy", {}, 0, "3 steps"), plugins)
    assert (record.status, record.warnings) == ("ok", ["the meters could not be read in time"])
    assert record.metrics["test"]


def test_flop_of_compiled_code_are_counted():
    weight, inputs = torch.ones(8, 4), torch.ones(3, 8)
    compiled = torch.compile(lambda x: (x @ weight).relu(), backend="eager", fullgraph=True)
    compiled(inputs)
    assert count_flop(lambda: compiled(inputs)) == 2 * 3 * 8 * 4


def test_a_record_says_what_each_rank_sends_in_a_step():
    record, _ = run("ddp", budget="5 steps", processes=2)
    assert record.status == "ok", record.reason
    assert len(record.traffic) == 2
    for sent in record.traffic:
        # the gradient, once around the ring of two; not the weights and buffers that set-up broadcast
        assert sent["all_reduce"]["bytes"] == 4 * record.parameters
        assert sent.keys() <= {"all_reduce", "broadcast"}
    buffers = 4 * 2 * 16 + 8  # statistics of a BatchNorm, by which rank 0 keeps the others in step
    once = 32 / 5  # in which order gradients come, in the first of 5 steps
    assert record.traffic[0]["broadcast"]["bytes"] == pytest.approx(buffers + once, abs=once)
    assert record.traffic[1]["broadcast"]["bytes"] == 0
    assert Record.from_json(record.to_json()) == record
    assert run()[0].traffic == [{}]
