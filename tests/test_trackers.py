"""Trackers write what the record says, each checked with the real package and its own way to read it back."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from effbench import cli, trackers, verbs
from effbench.errors import EffbenchError, UnknownName
from effbench.trackers import told
from record_factory import record

RECORDS = [
    record({"mixup": {"alpha": 0.1}}, seed=3, value=0.875),
    record("sam", seed=1, status="diverged", reason="nan", metrics={"test": {"accuracy": math.nan}}),
]


def written(name, folder):
    """Let a tracker hear of the trials in a process of its own: such packages keep state, threads and services."""
    lines = [each.to_json() for each in RECORDS]
    code = (
        "import sys\nfrom pathlib import Path\nfrom effbench.records import Record\nfrom effbench import trackers\n"
        f"tracker = trackers.open_tracker({name!r}, Path({str(folder)!r}))\n"
        f"for line in {lines!r}:\n    tracker.effbench_trial_finished(Record.from_json(line))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder.parent, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == ""  # results are on standard output


def test_a_tracker_is_told_what_was_asked_and_what_came_of_it():
    first, second = RECORDS
    assert told.name_of(first) == "mnist1d_cnn mixup(alpha=0.1) seed 3"
    assert told.file_name_of(first).startswith("mnist1d_cnn_mixup_alpha=0.1_seed_3-")
    assert told.settings_of(first)["mixup.alpha"] == 0.1
    assert [step for step, _ in told.curve_of(first)] == [80, 160, 240, 320, 400]
    assert list(told.curve_of(first))[-1][1] == {"progress": 1.0, "spent": 5.0, "validation/accuracy": 0.875}
    assert told.results_of(first)["test/accuracy"] == 0.875
    assert told.results_of(first)["seconds/forward_backward"] == 4.0
    assert "test/accuracy" not in told.results_of(second)  # no tracker need know what NaN is


def test_tensorboard_shows_curves_and_results(tmp_path):
    pytest.importorskip("tensorboard", reason="pip install 'effbench[tensorboard]'")
    written("tensorboard", tmp_path / "tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    (folder,) = (tmp_path / "tensorboard").glob("mnist1d_cnn_mixup*")
    found = EventAccumulator(str(folder)).Reload()
    assert [(each.step, each.value) for each in found.Scalars("validation/accuracy")][-1] == (400, 0.875)
    assert found.Scalars("result/test/accuracy")[0].value == 0.875
    assert len(list((tmp_path / "tensorboard").iterdir())) == 2


def test_wandb_keeps_a_run_for_each_trial_on_disk(tmp_path):
    pytest.importorskip("wandb", reason="pip install 'effbench[wandb]'")
    written("wandb", tmp_path / "wandb")
    runs = list((tmp_path / "wandb").rglob("*.wandb"))
    assert len(runs) == 2
    text = b"".join(run.read_bytes() for run in runs)
    assert b"mixup.alpha" in text
    assert b"validation/accuracy" in text
    assert b"0.875" in text


def test_mlflow_finds_the_runs_again(tmp_path):
    pytest.importorskip("mlflow", reason="pip install 'effbench[mlflow]'")
    pytest.importorskip("sqlalchemy", reason="pip install 'effbench[mlflow]'")
    written("mlflow", tmp_path / "mlflow")
    import sqlite3

    with sqlite3.connect(tmp_path / "mlflow" / "mlflow.db") as store:
        runs = dict(store.execute("select name, status from runs"))
        assert runs == {"mnist1d_cnn mixup(alpha=0.1) seed 3": "FINISHED", "mnist1d_cnn sam seed 1": "FAILED"}
        rows = store.execute(
            "select step, value from metrics where key = 'validation/accuracy' order by step"
        ).fetchall()
        assert rows[-1] == (400, 0.875)
        assert ("0.1",) in store.execute("select value from params where key = 'mixup.alpha'").fetchall()


def test_trackio_keeps_the_values(tmp_path, monkeypatch):
    pytest.importorskip("trackio", reason="pip install 'effbench[trackio]'")
    monkeypatch.delenv("TRACKIO_DIR", raising=False)
    written("trackio", tmp_path / "trackio")
    import sqlite3

    (file,) = (tmp_path / "trackio").glob("*.db")
    with sqlite3.connect(file) as store:
        rows = [json.loads(row[0]) for row in store.execute("select metrics from metrics")]
    assert any(row.get("validation/accuracy") == 0.875 for row in rows)
    assert any(row.get("result/test/accuracy") == 0.875 for row in rows)


def test_a_missing_package_is_named_before_anything_trains(tmp_path, monkeypatch):
    for module in ("wandb", "trackio"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(EffbenchError, match=r"pip install 'effbench\[wandb\]'"):
        trackers.open_tracker("wandb", tmp_path)
    with pytest.raises(UnknownName, match="did you mean 'tensorboard'"):
        trackers.open_tracker("tensorbord", tmp_path)


def test_a_run_is_tracked_from_the_command_line(tmp_path, monkeypatch, capfd):
    pytest.importorskip("tensorboard", reason="pip install 'effbench[tensorboard]'")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["run", "smoke", "--seeds", "0", "--budget", "2 steps", "--track", "tensorboard"]) == 0
    assert "hears no more" not in capfd.readouterr().err
    assert len(list(Path("results/smoke/tensorboard").iterdir())) == 3
    assert cli.main(["run", "smoke", "--track", "tensorbord"]) == 2


def test_the_words_of_the_command_line_are_the_trackers():
    assert set(verbs.TRACKERS) == set(trackers.TRACKERS)
