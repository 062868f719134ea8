"""A results folder loses nothing but what a crash cut off, and says what that was."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from effbench.errors import EffbenchError
from effbench.records import Record
from effbench.store import Store, StoreWarning, read_records
from record_factory import record

WRITER = """
import sys
from effbench.records import Record
from effbench.store import Store
store, name = Store(sys.argv[1]), sys.argv[2]
for number in range(int(sys.argv[3])):
    store.append(Record("s", "w", {name: {}}, number, "5s", "ok", reason="x" * 3000, key=f"{name}{number}"))
    print(number, flush=True)
"""


def writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def store(tmp_path) -> Store:
    made = Store(tmp_path / "results")
    made.check_writable()
    return made


def test_records_come_back_in_order(store):
    written = [record(seed=seed) for seed in range(3)]
    for each in written:
        store.append(each)
    assert store.records() == written
    assert len(store.records_file.read_bytes().splitlines()) == 3
    store.append(record("mixup"))
    assert len(store.records()) == 4  # what was read before is not stale


def test_a_new_folder_holds_nothing(store):
    assert store.records() == []
    assert sorted(each.name for each in store.path.iterdir()) == ["logs", "records.jsonl"]  # the probe is gone


def test_two_runs_append_at_once(store):
    writers = [writer(store.path, name, 100) for name in ("a", "b")]
    for each in writers:
        each.communicate(timeout=60)
        assert each.returncode == 0
    assert len(store.latest()) == 200


def test_killed_writers_cost_no_finished_record(store):
    seen = 0
    for moment in range(1, 9):
        child = writer(store.path, f"run{moment}-", 10_000)
        for _ in range(moment):
            assert child.stdout is not None
            child.stdout.readline()
        child.send_signal(signal.SIGKILL)
        child.communicate(timeout=60)
        seen += moment
        store.append(record("after", seed=moment))
        seen += 1
    assert len(store.records()) >= seen
    assert [r.seed for r in store.records() if r.label == "after"] == list(range(1, 9))


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_torn_line_is_left_out_with_a_warning(store, cut):
    store.append(record(seed=0))
    store.append(record(seed=1))
    store.records_file.write_bytes(store.records_file.read_bytes()[:-cut])
    if cut == 1:  # only the line break is missing: the record is whole
        assert [r.seed for r in store.records()] == [0, 1]
    else:
        with pytest.warns(StoreWarning, match=r"line 2 is no record"):
            assert [r.seed for r in store.records()] == [0]
    store.append(record(seed=2))
    if cut == 1:
        assert [r.seed for r in store.records()] == [0, 1, 2]
    else:
        with pytest.warns(StoreWarning, match=r"line 2 is no record"):
            assert [r.seed for r in store.records()] == [0, 2]


def test_a_record_that_cannot_be_written_leaves_the_file_as_it_was(store):
    store.append(record())
    before = store.records_file.read_bytes()
    with pytest.raises(TypeError, match="plain values"):
        store.append(record(environment={"x": object()}))
    assert store.records_file.read_bytes() == before


def test_text_that_utf8_cannot_hold_is_kept(store):
    store.append(record(reason="file \udcff not found"))
    assert store.records()[0].reason == "file \udcff not found"


def test_line_separators_inside_names_break_no_lines(store):
    store.append(record({"a\u2028b\x85c": {}}))
    assert [r.label for r in store.records()] == ["a\u2028b\x85c"]


def test_a_folder_below_a_file_is_refused_before_any_compute(tmp_path):
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "results"
    with pytest.raises(EffbenchError, match=rf"cannot write results to {path}: Not a directory") as caught:
        Store(path).check_writable()
    assert caught.value.exit_code == 2


def test_a_full_disk_is_an_error_with_the_path(store):
    store.records_file.unlink()
    store.records_file.symlink_to("/dev/full")
    with pytest.raises(EffbenchError, match=r"cannot append to .*records.jsonl: No space left"):
        store.append(record())


def test_a_disk_that_fills_up_leaves_the_file_as_it_was(store):
    script = """
import resource, sys
from effbench.errors import EffbenchError
from effbench.records import Record
from effbench.store import Store
store = Store(sys.argv[1])
store.append(Record("s", "w", {}, 0, "5s", "ok"))
before = store.records_file.read_bytes()
limit = len(before) + 100
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
for act in (lambda: store.append(Record("s", "w", {}, 1, "5s", "ok")), store.check_writable):
    try:
        act()
    except EffbenchError as fault:
        print(fault)
assert store.records_file.read_bytes() == before
"""
    done = subprocess.run([sys.executable, "-c", script, str(store.path)], capture_output=True, text=True, check=True)
    assert done.stdout.count("File too large") == 2
    assert [r.seed for r in store.records()] == [0]


def test_stray_temporary_files_are_no_results(store):
    store.append(record())
    (store.path / ".suite.99.tmp").write_text('{"half')
    (store.path / "records.jsonl.tmp").write_text(record(seed=7).to_json())
    assert [r.seed for r in read_records(store.path)] == [0]


@pytest.mark.parametrize(
    ("statuses", "counts"),
    [
        (["failed", "ok"], "ok"),
        (["ok", "interrupted"], "ok"),
        (["ok", "ok"], "ok"),
        (["killed", "timeout"], "timeout"),
        (["failed", "skipped"], "skipped"),
        (["ok", "diverged"], "diverged"),
    ],
)
def test_finished_work_outlives_later_failures(store, statuses, counts):
    for status in statuses:
        store.append(record(status=status, key="k"))
    assert store.latest()["k"].status == counts


@pytest.mark.parametrize("status", ["failed", "timeout", "killed", "interrupted", "no_steps", "not_started"])
def test_what_came_to_no_end_is_tried_again(store, status):
    store.append(record(status=status, key="k"))
    assert store.finished("k") is None
    store.append(record(status="ok", key="k"))
    assert store.finished("k") == record(status="ok", key="k")


@pytest.mark.parametrize("status", ["ok", "skipped", "diverged"])
def test_what_came_to_an_end_is_kept(store, status):
    store.append(record(status=status, key="k"))
    assert store.finished("k") is not None
    assert store.finished("another") is None


def test_nothing_is_finished_where_there_is_no_folder(tmp_path):
    assert Store(tmp_path / "none").finished("k") is None
    with pytest.raises(EffbenchError, match=r"none: there is no such folder"):
        Store(tmp_path / "none").records()


def test_several_folders_are_read_as_one(tmp_path):
    for name, status in (("one", "failed"), ("two", "ok")):
        made = Store(tmp_path / name)
        made.check_writable()
        made.append(record(status=status, key="shared"))
        made.append(record(seed=1, key=name))
    found = read_records([tmp_path / "one", tmp_path / "two" / "records.jsonl"])
    assert [(r.key, r.status) for r in found] == [("one", "ok"), ("shared", "ok"), ("two", "ok")]


def test_records_without_a_key_are_told_apart_by_what_was_asked(store):
    for seed in (0, 1, 1):
        store.append(Record("s", "w", {"a": {}}, seed, "5s", "ok"))
    assert len(read_records(store.path)) == 2


def test_json_files_are_replaced_at_one_stroke(store):
    assert store.read_json("prices") is None
    store.write_json("prices", {"mnist1d_cnn": {"baseline": 1.5e-3}})
    assert store.merge_json("prices", {"kjv_gpt": {}}) == {"mnist1d_cnn": {"baseline": 1.5e-3}, "kjv_gpt": {}}
    before = (store.path / "prices.json").read_bytes()
    with pytest.raises(TypeError, match="plain values"):
        store.write_json("prices", {"x": object()})
    assert (store.path / "prices.json").read_bytes() == before
    assert json.loads(before) == store.read_json("prices")
    (store.path / "prices.json").write_text("[]")
    with pytest.raises(EffbenchError, match="holds no JSON object; delete it"):
        store.read_json("prices")
    (store.path / "prices.json").write_text("[" * 50_000 + "]" * 50_000)
    with pytest.raises(EffbenchError, match="is no JSON"):
        store.read_json("prices")
    (store.path / "prices.json").write_text("{")
    with pytest.raises(EffbenchError, match="is no JSON"):
        store.read_json("prices")


def test_reading_and_tables_never_import_torch():
    script = """
import pkgutil, sys, importlib
import effbench.store, effbench.analysis, effbench.report
for package in (effbench.analysis, effbench.report):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(found.name)
from effbench.records import Record
from effbench.report.formats import formats
from effbench.report.tables import comparison_table
records = [Record("s", "w", sets, seed, "5s", "ok", metric="accuracy", metrics={"test": {"accuracy": seed}})
           for sets in ({}, {"a": {}}) for seed in range(3)]
for name, write in formats().items():
    write(comparison_table(records))
print(sorted({"torch", "pandas", "scipy.stats"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
