"""What run, its dry run and calibrate do and write."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import shown, told
from effbench import cli
from effbench.store import Store
from running import STRANGERS

pytestmark = pytest.mark.usefixtures("elsewhere")


def test_a_suite_runs_and_goes_on_where_it_was(capfd: pytest.CaptureFixture[str]) -> None:
    asked = ["run", "smoke", "--seeds", "0", "--budget", "6 steps", "--technique", "seq_length_warmup"]
    assert cli.main([*asked, "--dry-run"]) == 0
    plan = capfd.readouterr().out
    assert plan.startswith("smoke: 3 of 4 trials to run\n")
    assert "1 will be skipped\n  digits_mlp  seq_length_warmup  seq_length_warmup cuts sequences" in plan
    assert not Path("results").exists()

    assert cli.main(asked) == 0
    out, err = capfd.readouterr()
    assert "mixup(alpha=0.1)+ema" in out or "ema+mixup(alpha=0.1)" in out
    assert out.endswith("The records are in results/smoke; `effbench table results/smoke` shows this again.\n")
    assert "[4/4]" in err
    records = Store("results/smoke").records()
    assert sorted(each.status for each in records) == ["ok", "ok", "ok", "skipped"]
    assert {each.steps for each in records if each.status == "ok"} == {6}

    assert cli.main([*asked, "--dry-run"]) == 0
    plan = capfd.readouterr().out
    assert plan.startswith("smoke: 0 of 4 trials to run\n")
    assert "3 are finished: their records in results/smoke are kept." in plan
    assert plan.endswith("Nothing is left to train.\n")
    assert cli.main([*asked, "--dry-run", "--fresh"]) == 0
    assert capfd.readouterr().out.startswith("smoke: 3 of 4 trials to run\n")


def test_a_dry_run_tells_what_comes_first_and_last(capsys: pytest.CaptureFixture[str]) -> None:
    plan = shown(capsys, "run", "smoke", "--dry-run", "--budget", "1s reference", "--total", "1h", "--jobs", "1")
    assert "First it is measured what a step costs, for 2 pairs of workload and techniques: 3 s or more, once." in plan
    assert "Training, 1 at a time, 1 thread each: about 6 s, and set-up and evaluation on top." in plan
    assert plan.endswith("What cannot end within 1h will not be started.\n")


def test_a_dry_run_tells_what_will_be_skipped_and_what_will_fail(capsys: pytest.CaptureFixture[str]) -> None:
    sets = ["--technique", "broken", "--technique", "unwilling", "--technique", "slow"]
    plan = shown(capsys, "run", "smoke", "--workload", "toy", "--plugin", str(STRANGERS), *sets, "--dry-run")
    skipped = plan.index("will be skipped")
    assert "smoke: 8 of 12 trials to run" in plan  # two seeds of six sets
    assert "broken" not in plan[:skipped]
    assert "2 will fail\n  toy  broken  ZeroDivisionError: broken at once\n" in plan
    assert "toy  unwilling" in plan[skipped : plan.index("will fail")]


def test_what_needs_no_prices_is_not_calibrated(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["calibrate", "smoke"]) == 0
    assert capsys.readouterr().out == "smoke needs no prices: its budgets are not in reference-seconds or FLOP.\n"


def test_a_folder_that_cannot_be_written_is_found_before_anything_trains(capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").write_text("", encoding="utf-8")
    assert "file/results" in told(capsys, "run", "smoke", "--out", "file/results")
