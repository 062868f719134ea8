"""Processes: deadlines are kept, nobody is left behind, and no death takes others along."""

from __future__ import annotations

import random
import shutil
import signal
import socket
import time

import pytest

from effbench.errors import EffbenchError
from effbench.execution import Job, Limits
from effbench.execution.channel import Channel
from effbench.execution.local import Local
from effbench.store import Store
from running import (
    STRANGERS,
    by_label,
    log_of,
    make_suite,
    only,
    process,
    run,
    suite_file,
    survivors,
    wait_for,
)


def test_a_hanging_trial_is_stopped_at_its_deadline(server, tmp_path):
    done = run(server, tmp_path, make_suite("hang", budget="0.3s"))
    record = only(done.records)
    assert (record.status, record.stop_reason, record.steps, record.metrics) == ("timeout", "deadline", 2, {})
    assert record.wall_seconds < 15
    assert "time.sleep(3600)" in log_of(done, record)  # where it hung
    assert [record.status for record in done.records if not record.techniques] == ["ok"]


def test_a_deaf_one_is_killed(server, tmp_path):
    done = run(server, tmp_path, make_suite("hang(deaf=true)", budget="0.2s"))
    record = only(done.records)
    assert (record.status, record.reason) == ("timeout", "did not stop at its deadline, and was killed")
    assert record.overrun_seconds > server.limits.grace_seconds
    assert "misbehaving.py" in log_of(done, record)  # where it hung, told by its own process


def test_hanging_workers_are_ended_with_their_trial(server, tmp_path):
    done = run(server, tmp_path, make_suite("hanging_workers", budget="0.2s"))
    assert only(done.records).status == "timeout"
    assert only(done.records).ledger.get("data", 0.0) < 12
    assert survivors(server) == []


def test_a_hanging_rank_is_ended_with_its_trial(server, tmp_path):
    done = run(server, tmp_path, make_suite("pair(fate='hangs', step=0)", budget="0.2s"), jobs=2)
    assert only(done.records).status == "timeout"
    assert survivors(server) == []


def test_what_a_trial_leaves_behind_is_ended(server, tmp_path):
    done = run(server, tmp_path, make_suite("spawner"))
    assert {record.status for record in done.records} == {"ok"}
    assert survivors(server) == []


def test_rank_0_tells_how_another_rank_failed(server, tmp_path):
    fates = ("pair", "pair(fate='raises')", "pair(fate='is killed')")
    done = run(server, tmp_path, make_suite(*fates), jobs=2)
    found = by_label(done.records)
    assert (found["pair"].status, found["pair"].processes, found["pair"].examples) == ("ok", 2, 400)
    assert found["pair"].flop == found["baseline"].flop  # two halves
    assert found["pair(fate=raises)"].status == "failed"
    assert "rank 1 has had enough" in found["pair(fate=raises)"].reason
    assert "signal 9 (SIGKILL)" in found["pair(fate=is killed)"].reason
    assert survivors(server) == []


@pytest.mark.parametrize(("first", "cli"), [(signal.SIGINT, True), (signal.SIGTERM, False), (signal.SIGHUP, True)])
def test_ctrl_c(tmp_path, first, cli):
    sets = ("slow(seconds=0.02)", "slow(seconds=0.03)+pair+beacon")
    suite = suite_file(tmp_path, *sets, budget="100000 steps", seeds=range(3))
    with process(tmp_path, suite, jobs=3, cli=cli) as running:
        wait_for(tmp_path / "beacon")
        began = time.monotonic()
        running.send_signal(first)
        time.sleep(0.2)
        running.send_signal(signal.SIGINT)
        said = running.stderr.read()
        assert running.wait() == (130 if cli else -signal.SIGINT)  # which a shell reports as 130
    assert time.monotonic() - began < 8
    assert said.count("stopping: what runs is ended and recorded first") == 1
    assert "Traceback" not in said or not cli
    assert survivors(tmp_path) == []
    assert {record.seed for record in Store(tmp_path / "out").records()} == {0, 1, 2}  # the planned ones
    interrupted = [record for record in Store(tmp_path / "out").records() if record.status == "interrupted"]
    assert all(record.reason == "Ctrl-C" and not record.metrics for record in interrupted)
    (pair,) = [record for record in interrupted if record.processes == 2]
    assert pair.steps >= 3


def test_after_any_death_records_are_readable_and_the_next_run_goes_on(tmp_path):
    suite = suite_file(tmp_path, "slow(seconds=0.002)+beacon", budget="50 steps", seeds=range(8))
    dice = random.Random(0)
    counted = []
    for _ in range(2):
        with process(tmp_path, suite, jobs=2) as running:
            wait_for(tmp_path / "beacon")
            time.sleep(dice.random())
            running.send_signal(signal.SIGKILL)
            running.wait()
        assert survivors(tmp_path) == []
        counted.append(len(Store(tmp_path / "out").latest()))
        (tmp_path / "beacon").unlink(missing_ok=True)
    with process(tmp_path, suite, jobs=2) as running:
        said = running.stderr.read()
        assert running.wait() == 0
    assert f"{16 - counted[-1]} trials to run" in said
    assert counted == sorted(counted)
    found = Store(tmp_path / "out").latest()
    assert len(found) == 16
    assert {record.status for record in found.values()} == {"ok"}


def test_the_death_of_the_server_costs_what_runs_and_no_more(tmp_path):
    local = Local(1, (str(STRANGERS),))
    try:
        done = run(local, tmp_path, make_suite("regicide", seeds=(0, 1)))
    finally:
        local.close()
    found = {(record.label, record.seed): record for record in done.records}
    assert {found["baseline", seed].status for seed in (0, 1)} == {"ok"}
    assert {found["regicide", seed].status for seed in (0, 1)} == {"failed"}
    assert "the process that it was forked from ended" in found["regicide", 0].reason


def test_a_server_that_cannot_start_says_why(tmp_path):
    plugin = tmp_path / "fatal.py"
    plugin.write_text("import os, sys\nsys.stderr.write('no such luck')\nsys.stderr.flush()\nos._exit(3)\n")
    local = Local(1, (str(plugin),))
    with pytest.raises(EffbenchError, match=r"ended with exit code 3. Its last words:\nno such luck"):
        list(local.run([], lambda job, event: None))
    local.close()


def test_a_file_of_the_working_directory_is_no_module(tmp_path, monkeypatch):
    for name in ("torch", "json", "socket"):
        (tmp_path / f"{name}.py").write_text(f"raise ImportError('this is not {name}')\n")
    monkeypatch.chdir(tmp_path)
    local = Local(1)
    assert list(local.run([], lambda job, event: None)) == []
    local.close()


def test_plugins_are_named_from_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    shutil.copy(STRANGERS / "toy_workload.py", tmp_path / "mine" / "strange.py")
    monkeypatch.chdir(tmp_path)
    local = Local(1, ("mine/strange.py",))
    payload = {"trial": {"suite": "s", "workload": "toy", "techniques": {}, "seed": 0, "budget": "3 steps"}}
    ((_, outcome),) = local.run([Job("trial", payload)], lambda job, event: None)
    local.close()
    assert outcome.result["status"] == "ok"


def test_a_server_ends_with_its_parent_even_while_it_imports():
    local = Local(1)
    local.start()
    local._control.close()
    assert local._server.wait(60) == 0  # and not by finding, long after, that there is nobody to tell that it is ready
    local._control = None
    local.close()


def test_a_line_that_was_cut_off_is_left_out():
    one, other = map(Channel, socket.socketpair())
    one.send({"event": "a"})
    one._socket.sendall(b'{"event": "b\n[1, 2]\n{"event": "c"}\n{"event":')
    assert other.receive() == [{"event": "a"}, {"event": "c"}]
    one._socket.sendall(b' "d"}\n')
    assert other.drain() == [{"event": "d"}]
    assert other.drain() == []
    one.close()
    assert other.receive() is None
    other.close()


def test_a_job_is_taken_only_when_there_is_room(server):
    taken = []

    def jobs():
        for seed in range(3):
            taken.append(seed)
            plain = {"suite": "s", "workload": "toy", "techniques": {}, "seed": seed, "budget": "3 steps"}
            yield Job("trial", {"trial": plain})

    server.jobs = 1
    seen = [list(taken) for _ in server.run(jobs(), lambda job, event: None)]
    assert seen == [[0], [0, 1], [0, 1, 2]]


def test_places_are_shared_by_processes(server):
    running, seen = [], []

    def hear(job, event):
        if event["event"] == "setup":
            running.append(job.processes)
            seen.append(sorted(running))

    plain = {
        "suite": "s",
        "workload": "toy",
        "techniques": {"slow": {"seconds": 0.01}},
        "seed": 0,
        "budget": "20 steps",
    }
    jobs = [Job("trial", {"trial": plain}, processes=count) for count in (1, 2, 1, 1, 3, 1)]
    server.jobs = 2
    for job, outcome in server.run(jobs, hear):
        running.remove(job.processes)
        assert outcome.result["status"] == "ok"
    assert seen == [[1], [2], [1], [1, 1], [3], [1]]  # what needs more places than there are gets them all


def test_the_wall_time_of_the_first_trial_is_not_the_servers(tmp_path):
    local = Local(1, (str(STRANGERS),))
    try:
        began = time.monotonic()
        done = run(local, tmp_path, make_suite(seeds=(0, 1)))
        took = time.monotonic() - began
    finally:
        local.close()
    first, second = done.records
    assert took - first.wall_seconds - second.wall_seconds > 1.0  # torch alone takes longer to import
    assert first.wall_seconds < took / 2


def test_two_runs_at_once_on_one_machine(tmp_path, monkeypatch):
    folders = [tmp_path / "one", tmp_path / "other"]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setenv("MASTER_PORT", str(taken.getsockname()[1]))
        for folder in folders:
            folder.mkdir()
        suite = suite_file(tmp_path, "pair", budget="10 steps", seeds=range(2))
        with process(folders[0], suite, jobs=2) as one, process(folders[1], suite, jobs=2) as other:
            assert (one.wait(), other.wait()) == (0, 0)
    records = [record for folder in folders for record in Store(folder / "out").records()]
    assert {record.status for record in records} == {"ok"}
    assert len(records) == 8
    losses = {(record.label, record.seed, record.metrics["test"]["loss"]) for record in records}
    assert len(losses) == 4  # whoever ran it


def test_one_thread_each(server, tmp_path):
    done = run(server, tmp_path, make_suite("slow(seconds=0.001)"), jobs=2)
    assert {(record.threads, record.jobs) for record in done.records} == {(1, 2)}
    assert not [warning for record in done.records for warning in record.warnings if "threads" in warning]
    rogue = only(run(server, tmp_path / "rogue", make_suite("rogue(step=18)")).records)
    assert "a technique changed the number of threads from 1 to 2" in rogue.warnings


def test_limits_are_patient_by_default():
    assert Limits().grace_seconds >= 3.0
