"""effbench from Python: one call from a suite to a frame of results, and errors before anything is trained."""

from __future__ import annotations

import threading

import pandas as pd
import pytest

import effbench
from effbench import api, machine
from effbench.errors import EffbenchError, InvalidBudget, InvalidSuite, UnknownName
from running import STRANGERS, make_suite, run, suite_file


def test_a_suite_becomes_a_frame(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    suite = suite_file(tmp_path, "slow(seconds=0.001)", seeds=(0, 1))
    asked = ["boom(step=1)", {"nan_from": {"step": 3}, "slow": {"seconds": 0.0}}]
    frame = effbench.run(suite, plugins=[STRANGERS], techniques=asked, seeds=[4], jobs=1)
    assert sorted(zip(frame.label, frame.status, strict=True)) == [
        ("baseline", "ok"),
        ("boom(step=1)", "failed"),
        ("nan_from(step=3)+slow(seconds=0.0)", "diverged"),
        ("slow(seconds=0.001)", "ok"),
    ]
    assert set(frame.seed) == {4}
    assert (tmp_path / "results" / "strange" / "records.jsonl").is_file()
    pd.testing.assert_frame_equal(frame, effbench.load_results("results/strange"))
    said = capsys.readouterr()
    assert "strange: 4 trials to run" in said.err
    assert "boom(step=1)  seed 4: failed: RuntimeError: boom" in said.err
    assert said.out == ""


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"suite": "quick", "workloads": "kjv_gpt"}, EffbenchError, r"give a list, be it of one: \['kjv_gpt'\]"),
        ({"suite": "quick", "seeds": "0,1"}, EffbenchError, "seeds = '0,1': give a list"),
        ({"suite": "quik"}, UnknownName, "did you mean 'quick'"),
        ({"techniques": ["bomm"]}, InvalidSuite, "did you mean 'boom'"),
        ({"techniques": ["boom(stepp=1)"]}, InvalidSuite, "boom has no option 'stepp'"),
        ({"workloads": ["toi"]}, InvalidSuite, "did you mean 'toy'"),
        ({"budget": "5 stps"}, InvalidSuite, "did you mean 'steps'"),
        ({"total": "-1s"}, (InvalidSuite, InvalidBudget), "-1s"),
        ({"seeds": [1, 1]}, InvalidSuite, "listed twice"),
        ({"data": {"digitz": "."}}, UnknownName, "did you mean 'digits'"),
        ({"data": {"digits": "."}}, EffbenchError, "'digits' is not taken from a folder"),
        ({"plugins": ["nowhere.py"]}, EffbenchError, "there is no such file"),
    ],
)
def test_what_is_wrong_is_said_before_anything_trains(tmp_path, monkeypatch, changes, error, text):
    monkeypatch.chdir(tmp_path)
    asked = {"suite": suite_file(tmp_path), "plugins": [STRANGERS], "out": "out", "progress": False, **changes}
    with pytest.raises(error, match=text):
        effbench.run(**asked)
    assert not list(tmp_path.glob("out/logs/*"))
    assert not (tmp_path / "out" / "suite.json").exists()


def test_a_broken_plugin_is_a_warning(tmp_path, monkeypatch):
    (tmp_path / "broken.py").write_text("import nothing_of_this_name\n")
    with (
        pytest.warns(UserWarning, match="plugin broken .* is not loaded: ModuleNotFoundError"),
        pytest.raises(UnknownName),
    ):
        api.run("quik", plugins=[tmp_path / "broken.py"], progress=False)


def test_a_run_in_a_thread(server, tmp_path):
    done = []
    thread = threading.Thread(target=lambda: done.append(run(server, tmp_path, make_suite())))
    thread.start()
    thread.join()
    assert done[0].exit_code == 0


def test_the_default_is_one_trial_a_core(monkeypatch):
    monkeypatch.setattr(machine, "cores", lambda: 5)
    assert [api.default_jobs(threads) for threads in (1, 2, 8)] == [5, 2, 1]
