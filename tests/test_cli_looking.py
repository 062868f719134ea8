"""What list, show, data and table write, for people and for programs."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest

from command_line import shown, told
from effbench.commands.table import newest
from effbench.errors import EffbenchError
from effbench.store import Store
from effbench.taxonomy import LEAVES
from effbench.verbs import KINDS
from record_factory import record

pytestmark = pytest.mark.usefixtures("elsewhere")


# --- list ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_lists_for_programs_are_objects_with_a_name(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    things = json.loads(shown(capsys, "list", kind, "--json"))
    names = [thing["name"] for thing in things]
    assert names
    assert len(set(names)) == len(names)
    assert all(name.rpartition("/")[2] in shown(capsys, "list", kind) for name in names)


def test_techniques_stand_below_their_leaf(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, "list").splitlines()
    assert lines[0] == "data_centric/regularization  augment the examples"
    mixup = next(line for line in lines if line.startswith("  mixup "))
    assert mixup.endswith("  Train on convex combinations of two examples and of their labels.")
    leaves = [line.split()[0] for line in lines if line and not line.startswith(" ")]
    assert leaves == sorted(leaves, key=LEAVES.index)


def test_the_taxonomy_shows_what_is_covered(capsys: pytest.CaptureFixture[str]) -> None:
    things = json.loads(shown(capsys, "list", "taxonomy", "--json"))
    assert [thing["name"] for thing in things] == list(LEAVES)
    assert "mixup" in things[0]["techniques"]
    assert all(thing["techniques"] for thing in things)  # every leaf of the taxonomy holds some
    assert "none yet" not in shown(capsys, "list", "taxonomy")


def test_technique_of_a_plugin_is_listed_with_its_plugin(capsys: pytest.CaptureFixture[str]) -> None:
    shown(capsys, "new", "technique", "data_centric/sampling/my_noise")
    things = json.loads(shown(capsys, "list", "--json", "--plugin", "my_noise.py"))
    mine = next(thing for thing in things if thing["name"] == "my_noise")
    assert mine["plugin"] == "my_noise"
    assert mine["options"] == {"strength": 0.1}
    assert mine["neutral"] == {"strength": 0.0}


def test_suites_are_listed_with_their_trials(capsys: pytest.CaptureFixture[str]) -> None:
    quick = next(thing for thing in json.loads(shown(capsys, "list", "suites", "--json")) if thing["name"] == "quick")
    assert quick["trials"] == 3 * 5 * 3
    assert quick["techniques"][0] == "baseline"
    assert "45 x 5s reference" in shown(capsys, "list", "suites")


# --- show ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("mixup", ["mixup", "Options and their defaults", '  effbench run quick --technique "mixup(alpha=0.2)"']),
        ("digits_mlp", ["  data set   digits", "  target     accuracy >= 0.99 on validation"]),
        ("smoke", ["  trials  6, of 2 seeds (0, 1)", "  digits_mlp  40 steps"]),
        ("kjv", ["  task     language modelling", "  here     yes"]),
    ],
)
def test_everything_is_shown_by_name(name: str, lines: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "show", name).splitlines()
    assert [line for line in lines if line not in text] == []


def test_what_has_one_name_is_shown_together(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "show", "kjv_books")
    assert text.count("\nkjv_books\n") + text.startswith("kjv_books\n") == 2
    assert "  licence  " in text
    assert "  model      " in text


def test_a_suite_is_shown_by_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.toml").write_text('seeds = [7]\nworkloads = ["digits_mlp"]\n[[techniques]]\nema = {}', encoding="utf-8")
    text = shown(capsys, "show", "mine.toml")
    assert text.startswith("mine\n\n  trials  2, of 1 seed (7)\n")
    assert text.endswith("Techniques\n  baseline\n  ema\n")
    assert "suite.schema.json, for editors" in text


# --- data ---------------------------------------------------------------------------------------------------------


def test_data_sets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "data")
    assert text == shown(capsys, "data", "list") == shown(capsys, "list", "datasets")
    assert text.splitlines()[0].split() == ["data", "set", "here", "MiB", "what", "it", "is"]


def test_what_is_here_is_not_fetched(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "data", "fetch", "kjv") == "kjv is here already.\n"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["fetch"], 2, "needs the name of a data set. There is: "),
        (["fetch", "kvj"], 2, "there is no data set 'kvj'; did you mean 'kjv'?"),
        (["list", "kjv"], 2, "takes no name; `effbench show NAME` tells about one data set"),
        (["fetch", "kjv", "--from", "."], 3, "data set 'kjv' is not taken from a folder; it comes from"),
        (["fetch", "cifar10", "--from", "nowhere"], 3, "--from nowhere: there is no such folder"),
    ],
)
def test_what_cannot_be_fetched(arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert said in told(capsys, "data", *arguments, code=code)


# --- table --------------------------------------------------------------------------------------------------------


def results(folder: str, value: float) -> None:
    store = Store(folder)
    store.check_writable()
    for seed in range(3):
        store.append(record(seed=seed))
        store.append(record("mixup", seed=seed, value=value + 0.002 * seed))


def test_the_newest_results_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    results("results/old", 0.7)
    results("results/new", 0.9)
    os.utime("results/old/records.jsonl", (1, 1))
    rows = list(csv.DictReader(shown(capsys, "table", "--format", "csv").splitlines()))
    assert [(row["technique"], round(float(row["mean"]), 3)) for row in rows] == [("baseline", 0.801), ("mixup", 0.902)]
    assert shown(capsys, "table", "results/old") != shown(capsys, "table") == shown(capsys, "table", "results/new")


def test_no_results_is_an_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert f"there are no results below {tmp_path / 'results'}; run a suite first" in told(capsys, "table")
    with pytest.raises(EffbenchError, match="no results below"):
        newest(tmp_path)
    (tmp_path / "empty").mkdir()
    assert "there are no records in empty; run a suite into it first" in told(capsys, "table", "empty")


def test_tables_are_written_to_a_file_as_utf8(capsys: pytest.CaptureFixture[str]) -> None:
    results("results/one", 0.9)
    assert shown(capsys, "table", "--format", "markdown", "-o", "one.md") == ""
    assert "Δ vs baseline" in Path("one.md").read_text(encoding="utf-8")
    Store("results/one").append(record(workload="\ud800"))
    assert shown(capsys, "table", "results/one", "--format", "csv", "-o", "one.csv") == ""
    assert "\n\\ud800,5s reference," in Path("one.csv").read_text(encoding="utf-8")
    assert "nowhere/one.md: No such file or directory" in told(capsys, "table", "-o", "nowhere/one.md")


def test_a_plugin_may_offer_a_format(capsys: pytest.CaptureFixture[str]) -> None:
    results("results/one", 0.9)
    hook = "def effbench_table_formats():\n    return {'count': lambda tables: str(len(tables))}"
    Path("mine.py").write_text(f"import effbench\n@effbench.hookimpl\n{hook}", encoding="utf-8")
    assert shown(capsys, "table", "--format", "count", "--plugin", "mine.py") == "1\n"
    assert "there is no format 'coutn'; did you mean 'count'?" in told(
        capsys, "table", "--format", "coutn", "--plugin", "mine.py"
    )
