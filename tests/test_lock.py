"""Two runs in one folder are kept apart, and a lock dies with its process."""

import errno
import fcntl
import os
import signal
import subprocess
import sys

import pytest

from effbench import lock
from effbench.errors import EffbenchError
from effbench.store import Store
from record_factory import record
from running import make_suite, run

HOLD = "import sys, time; from pathlib import Path; from effbench import lock; "
HOLD += "held = lock.hold(Path(sys.argv[1]), print); print('held', flush=True); time.sleep(600)"


def no_warning(text: str) -> None:
    pytest.fail(text)


def test_the_second_is_told_who_holds_it(tmp_path):
    with lock.hold(tmp_path, no_warning), pytest.raises(EffbenchError) as told:
        lock.hold(tmp_path, no_warning)
    assert f"(process {os.getpid()}, since 2" in str(told.value)
    assert str(tmp_path) in str(told.value)
    assert "--out" in str(told.value)
    assert told.value.exit_code == 2
    lock.hold(tmp_path, no_warning).close()  # free again


def test_another_folder_is_free(tmp_path):
    (tmp_path / "other").mkdir()
    with lock.hold(tmp_path, no_warning), lock.hold(tmp_path / "other", no_warning):
        pass


def test_a_killed_process_leaves_no_lock(tmp_path):
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(EffbenchError, match=f"process {holder.pid},"):
            lock.hold(tmp_path, no_warning)
        holder.send_signal(signal.SIGKILL)
    lock.hold(tmp_path, no_warning).close()


def test_a_holder_that_has_not_said_who_it_is(tmp_path):
    with lock.hold(tmp_path, no_warning):
        (tmp_path / lock.NAME).write_text("[]")
        with pytest.raises(EffbenchError, match=r"a run is under way in .*; wait"):
            lock.hold(tmp_path, no_warning)


def test_without_locks_it_goes_on_with_a_warning(tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    warned: list[str] = []
    lock.hold(tmp_path, warned.append).close()
    assert warned == [f"the file system of {tmp_path} has no locks (No locks available): start no second run there"]


def test_a_run_refuses_a_folder_that_is_held_and_frees_its_own(server, tmp_path):
    store = Store(tmp_path)
    store.check_writable()
    store.append(record())
    with lock.hold(tmp_path, no_warning):
        with pytest.raises(EffbenchError, match="a run is under way"):
            run(server, tmp_path, make_suite())
        assert Store(tmp_path).records() == [record()]  # who reads need not wait, and nothing was trained
    run(server, tmp_path, make_suite())
    lock.hold(tmp_path, no_warning).close()
