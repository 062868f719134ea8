"""The suite of parallel methods, run small: that it runs, and what its methods send, on which its outcome rests."""

from __future__ import annotations

from pathlib import Path

import pytest

import effbench
from effbench.records import Record
from effbench.store import read_records

ROOT = Path(__file__).parent.parent
STEPS = 8
WEIGHTS = 4 * 144_650  # bytes

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Record]:
    """What became of each set, by the technique that is not the network."""
    folder = tmp_path_factory.mktemp("parallel")
    effbench.run(ROOT / "suites" / "parallel.toml", budget=f"{STEPS} steps", seeds=[0], out=folder, jobs=1)
    found = {}
    for record in read_records(folder):
        techniques = {name: options for name, options in record.techniques.items() if name != "emulated_network"}
        name, options = next(iter(techniques.items()), ("baseline", {}))
        found["".join([name, *(f" {option}={value}" for option, value in options.items())])] = record
    return found


def sent(record: Record, rank: int = 0) -> float:
    """Bytes that a rank sends in a step on the average."""
    return sum(each["bytes"] for each in record.traffic[rank].values())


def test_every_set_trains(records: dict[str, Record]) -> None:
    assert {name: (record.status, record.reason) for name, record in records.items() if record.status != "ok"} == {}
    assert len(records) == 9
    for record in records.values():
        assert record.steps == STEPS
        assert record.examples == STEPS * 128
        assert [point["steps"] for point in record.curve] == [3, 5, 7, 8]


def test_who_communicates_rarely_sends_what_the_closed_forms_say(records: dict[str, Record]) -> None:
    assert sent(records["ddp"]) == pytest.approx(WEIGHTS, rel=1e-4)  # 2 (2 - 1) / 2 of all weights
    assert sent(records["local_sgd"]) == pytest.approx(2 * WEIGHTS / STEPS)  # at the eighth step, and at the end
    assert sent(records["diloco"]) == pytest.approx(WEIGHTS / STEPS)  # at the end
    assert sent(records["powersgd"]) < WEIGHTS / 10


def test_a_server_sends_weights_and_workers_changes(records: dict[str, Record]) -> None:
    waiting = records["parameter_server processes=5"]
    racing = records["parameter_server asynchronous=True processes=5"]
    bulk, stale = records["ssp staleness=0 processes=5"], records["ssp staleness=5 processes=5"]
    for record in (waiting, racing, bulk):
        assert record.processes == 5
        assert sent(record) == pytest.approx(4 * WEIGHTS, rel=1e-4)  # to each worker in each step
    assert 4 / STEPS * WEIGHTS < sent(stale) < 4 * 3 / STEPS * WEIGHTS * 1.01  # of steps 6, 7 and 8 the first must read
    for record in (bulk, stale):
        assert sent(record, 1) == pytest.approx(WEIGHTS * (STEPS + 1) / STEPS, rel=1e-4)
    assert bulk.measured["largest_clock_gap_steps"] == 0
    assert stale.measured["largest_clock_gap_steps"] <= 5
    assert racing.measured["largest_staleness_steps"] >= racing.measured["mean_staleness_steps"] > 0.0
