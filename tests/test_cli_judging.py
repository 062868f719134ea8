"""The verbs that judge results: aa, seeds, explain, merge, and runs that stop when it is decided."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from command_line import shown, told
from effbench import cli
from effbench.analysis.noise import TWIN
from effbench.analysis.stopping import until_decided
from effbench.execution.local import Local
from effbench.records import Record
from effbench.store import Store
from record_factory import record, several
from running import make_suite, run

pytestmark = pytest.mark.usefixtures("elsewhere")


def folder(name: str, records: Iterable[Record]) -> Store:
    store = Store(name)
    store.check_writable()
    for each in records:
        store.append(each)
    return store


STUDY = several("", [0.80, 0.82, 0.81]) + several("ema", [0.81, 0.82, 0.83])


def test_seeds_are_counted_for_each_workload(capsys: pytest.CaptureFixture[str]) -> None:
    folder("results/quick", STUDY)
    lines = shown(capsys, "seeds", "--effect", "1%").splitlines()
    assert lines[0].split("  ")[0] == "workload"
    assert lines[1].split()[:5] == ["mnist1d_cnn", "5s", "reference", "accuracy", "0.0081"]
    (found,) = json.loads(shown(capsys, "seeds", "results/quick", "--effect", "1%", "--json"))
    assert (found["spread"], found["comparisons"]) == (pytest.approx(0.01), 1)
    assert f" {found['alone']} " in lines[1]
    more = json.loads(shown(capsys, "seeds", "--effect", "1%", "--power", "0.95", "--json"))
    assert more[0]["alone"] > found["alone"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--effect", "big"], "'big' is no size of an effect; write 0.5%"),
        (["--power", "80"], "'80' should be a number between 0 and 1"),
        (["--metric", "acuracy"], "did you mean 'accuracy'?"),
        (["nowhere"], "there is no such folder"),
    ],
)
def test_what_seeds_cannot_tell(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder("results/quick", STUDY)
    assert said in told(capsys, "seeds", *arguments)


def test_differences_of_folders_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    folder("one", STUDY)
    folder("two", several("", [0.80, 0.82, 0.85], versions={"effbench": "0.1.0", "torch": "2.9.1"}))
    text = shown(capsys, "explain", "one", "two")
    assert text.startswith(
        "first   one\nsecond  two\n\n3 trials in common: 2 with the same results bit by bit, 1 with others\n"
    )
    assert "  workload     budget        seeds  techniques\n  mnist1d_cnn  5s reference  0-2    ema\n" in text
    assert "  torch  2.13.0  2.9.1\n" in text
    assert "  mnist1d_cnn  forward and backward   10.0 ms a step  10.0 ms a step  1.00 " in text
    assert "  mnist1d_cnn  set-up                 400 ms a run    400 ms a run    1.00 " in text
    assert "  mnist1d_cnn  baseline    5s reference  2     before step 80  0.8100  0.8500\n" in text
    found = json.loads(shown(capsys, "explain", "one", "two", "--json"))
    assert (found["common"], found["partings"][0]["seed"]) == (3, 2)
    same = shown(capsys, "explain", "one", "one")
    assert "Versions, code, data, machine, threads and prices are the same." in same
    assert "part" not in same


def test_folders_that_compare_are_merged(capsys: pytest.CaptureFixture[str]) -> None:
    one, two = folder("one", STUDY[:3]), folder("two", STUDY[2:])
    one.write_json("prices", {"a": 1})
    two.write_json("prices", {"b": 2})
    two.write_json("suite", {"name": "quick"})
    (two.logs / "x.log").write_text("boom", encoding="utf-8")
    folder("one/aa", several("", [0.8, 0.9]))
    assert shown(capsys, "merge", "one", "two", "--into", "both").startswith("6 records of 2 folders are in both;")
    both = Store("both")
    assert len(both.records()) == 6
    assert both.read_json("prices") == {"a": 1, "b": 2}
    assert both.read_json("suite") == {"name": "quick"}
    assert len(Store("both/aa").records()) == 2
    assert (both.logs / "x.log").read_text(encoding="utf-8") == "boom"
    assert "both holds results already" in told(capsys, "merge", "one", "two", "--into", "both")


def test_apples_and_pears_are_refused_with_all_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    folder("one", STUDY)
    folder("two", several("sam", [0.8], threads=2, suite="other"))
    said = told(capsys, "merge", "one", "two")
    assert "these results do not compare with those of one:" in said
    assert "two: suite: quick against other" in said
    assert "two: threads of a trial: 1 against 2" in said
    assert not Path("results/merged").exists()
    assert "merge needs two folders" in told(capsys, "merge", "one")


@pytest.mark.parametrize("again", ["one", "./two/../one", "link"])
def test_one_folder_is_not_merged_with_itself(again: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder("one", STUDY)
    folder("two", STUDY)
    Path("link").symlink_to("one")
    said = told(capsys, "merge", "one", "two", again)
    assert f"one and {again} are one folder; name each folder of results once" in said
    assert not Path("results/merged").exists()


def test_the_baseline_is_run_against_itself(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.toml").write_text(
        'seeds = [0, 1]\nworkloads = ["digits_mlp"]\nbudget = "5 steps"\n[[techniques]]\nema = {}\n', encoding="utf-8"
    )
    assert cli.main(["aa", "mine.toml", "--jobs", "1"]) == 0
    text = capsys.readouterr().out
    assert text.split()[:4] == ["workload", "budget", "metric", "baseline"]
    assert "digits_mlp  5 steps  accuracy" in text
    records = Store("results/mine/aa").records()
    assert sorted((r.label, r.seed) for r in records) == [("baseline", s) for s in (0, 1, TWIN, TWIN + 1)]
    assert all(r.status == "ok" for r in records)


def test_a_run_stops_what_is_decided(server: Local, tmp_path: Path) -> None:
    suite = make_suite("slow(seconds=0)", budget="5 steps", seeds=range(6))
    done = run(server, tmp_path / "out", suite, enough=until_decided(suite.sets_of, suite.seeds, "1%"))
    by_seed = {(r.label == "baseline", r.seed): r for r in done.records}
    ran = [seed for seed in range(6) if by_seed[False, seed].status == "ok"]
    assert ran == [0, 1, 2]
    left = by_seed[False, 5]
    assert (left.status, left.stop_reason) == ("not_started", "decided")
    assert left.reason == "no difference beyond 1% after 3 of 6 seeds"
    assert by_seed[True, 5].reason == "all sets are decided"
    assert done.exit_code == 0


def test_a_margin_that_is_none_is_told_before_anything_runs(capsys: pytest.CaptureFixture[str]) -> None:
    said = told(capsys, "run", "smoke", "--until-decided", "--margin", "0%", "--dry-run")
    assert "'0%' is no size of an effect" in said


def test_what_was_stopped_runs_when_it_is_asked_for(server: Local, tmp_path: Path) -> None:
    suite = make_suite("slow(seconds=0)", budget="5 steps", seeds=range(4))
    run(server, tmp_path / "out", suite, enough=until_decided(suite.sets_of, suite.seeds, "1%"))
    whole = run(server, tmp_path / "out", suite)
    assert {record.status for record in whole.records} == {"ok"}
    assert len(whole.records) == 8


def test_claims_lie_beside_the_records(server: Local, tmp_path: Path) -> None:
    run(server, tmp_path / "out", make_suite("slow(seconds=0)", budget="2 steps"))
    assert set(Store(tmp_path / "out").read_json("claims")["slow"]) == {"paper", "claim", "leaf"}


def test_a_record_may_say_that_it_was_decided() -> None:
    assert Record.from_json(record(stop_reason="decided").to_json()).stop_reason == "decided"


def test_claims_stand_beside_what_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    at_steps = {"budget": "400 steps", "clock": "steps"}
    store = folder("results/quick", [*STUDY, *several("", [0.8, 0.82, 0.81], **at_steps)])
    for each in several("ema", [0.85, 0.872, 0.86], **at_steps):
        store.append(each)
    store.write_json(
        "claims", {"ema": {"paper": "Polyak, arXiv:0000.00000", "claim": "error 5 % -> 4 %", "leaf": "a/b"}}
    )
    lines = shown(capsys, "claims").splitlines()
    assert lines[:3] == ["ema", "  Polyak, arXiv:0000.00000", "  claim: error 5 % -> 4 %"]
    row = next(line for line in lines if "5s reference" in line)
    assert row.endswith(" helps at equal steps; no evidence that it pays for itself")
    assert "+0.0507 [" in row  # at equal steps
    assert "together: what Δ and waived tell of it, in words" in lines
    cards = json.loads(shown(capsys, "claims", "--json"))
    assert [card["budget"] for card in cards] == ["5s reference", "400 steps"]
    assert cards[0]["records"][0] == [0, "ok", STUDY[3].key]


def test_scores_are_shown_for_each_set(capsys: pytest.CaptureFixture[str]) -> None:
    folder("results/quick", [*STUDY, *several("sam", [0.90, 0.911, 0.92]), record("late", seed=0, status="failed")])
    lines = shown(capsys, "scores").splitlines()
    assert lines[0] == "mnist1d_cnn in 5s reference"
    assert [line.split()[0] for line in lines[2:6]] == ["sam", "ema", "baseline", "late"]
    assert lines[2].split()[1:3] == ["1/1", "1.124"]
    assert lines[5].split()[1:3] == ["0/1", "—"]
    rows = json.loads(shown(capsys, "scores", "--json"))
    assert [row["label"] for row in rows] == ["sam", "ema", "baseline", "late"]
    assert rows[0]["ratio"]["mean"] == pytest.approx(1.1238, abs=1e-3)
    assert rows[0]["algoperf"] == 1.0


@pytest.mark.parametrize("verb", ["scores", "claims", "seeds"])
def test_without_records_there_is_nothing_to_judge(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder("empty", [])
    assert "there are no records in empty; run a suite into it first" in told(capsys, verb, "empty", "--json")


def test_sets_that_are_written_alike_are_scored_apart(capsys: pytest.CaptureFixture[str]) -> None:
    one, text = several({"a": {"by": 1}}, [0.9, 0.911, 0.92]), several({"a": {"by": "1"}}, [0.7, 0.711, 0.72])
    for number, each in enumerate(records := [*STUDY[:3], *one, *text]):
        each.key = str(number)
    folder("results/quick", records)
    rows = json.loads(shown(capsys, "scores", "--json"))
    assert [(row["label"], row["algoperf"] > 0.0) for row in rows] == [
        ("a(by=1)", True),
        ("baseline", True),
        ("a(by=1)", False),
    ]
