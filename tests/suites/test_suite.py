"""Suites: where they are found, what a file says, and what is changed on the command line."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from effbench import plugins as plugin_finder
from effbench import suite as suites
from effbench.errors import InvalidBudget, InvalidSuite, UnknownName
from effbench.plugins import Plugins
from effbench.suite import Suite
from effbench.suite_file import KEYS, read
from suite_text import ALONE, GOOD


def test_what_a_file_says(written: Any, known: Plugins) -> None:
    path = written(GOOD)
    assert suites.load(path, known) == Suite(
        name="mine",
        summary="Two techniques.",
        budget="5s",
        budgets={"kjv_gpt": "100 joules"},
        total="10m",
        seeds=(0, 1, 2),
        workloads=("digits_mlp", "kjv_gpt"),
        sets=({}, {"mixup": {}}, {"mixup": {"alpha": 0.1}, "ema": {"decay": 0.9, "steps": 2}}),
        path=str(path),
    )


def test_a_file_needs_little(written: Any, known: Plugins) -> None:
    suite = suites.load(written('seeds = [4]\nworkloads = ["kjv_gpt"]'), known)
    assert (suite.name, suite.sets, suite.trials, suite.total_seconds) == ("mine", ({},), 1, None)
    assert suite.budget_of(known.workloads["kjv_gpt"]) == "20s"


def test_budget_is_the_workloads_own_then_the_suites_then_the_one_for_it(written: Any, known: Plugins) -> None:
    suite = suites.load(written(GOOD), known)
    assert suite.total_seconds == 600.0
    assert suite.budget_of(known.workloads["digits_mlp"]) == "5s"
    assert suite.budget_of(known.workloads["kjv_gpt"]) == "100 joules"
    assert suite.trials == 2 * 3 * 3


def test_the_baseline_comes_first_and_once(written: Any, known: Plugins) -> None:
    suite = suites.load(written(GOOD + "[[techniques]]\n"), known)
    assert [bool(chosen) for chosen in suite.sets] == [False, True, True]


def test_windows_files_are_read(written: Any, known: Plugins) -> None:
    plain = suites.load(written(GOOD), known)
    assert suites.load(written(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode()), known) == plain
    bad = GOOD.replace("mixup = {}", "mixpu = {}").replace("\n", "\r\n")
    with pytest.raises(InvalidSuite, match=r"mine\.toml:12: there is no technique 'mixpu'"):
        suites.load(written(bad.encode()), known)


def test_suites_are_found_by_name_and_by_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert suites.find("quick") == suites.packaged()["quick"]
    (tmp_path / "quick").write_text("")
    (tmp_path / "own").write_text("")
    (tmp_path / "own.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    assert suites.find("quick").is_absolute()
    assert suites.find("./quick") == Path("quick")
    assert suites.find("own") == Path("own")
    assert suites.find("own.toml") == Path("own.toml")
    assert suites.find(tmp_path / "own.toml") == tmp_path / "own.toml"


def test_suites_of_an_installed_wheel_lie_in_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "effbench"
    (package / "suites").mkdir(parents=True)
    (package / "suites" / "inside.toml").write_text("")
    (tmp_path / "site" / "suites").mkdir()
    (tmp_path / "site" / "suites" / "somebody_elses.toml").write_text("")
    monkeypatch.setattr(suites, "__file__", str(package / "suite.py"))
    assert suites.packaged() == {"inside": package / "suites" / "inside.toml"}


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("quik", UnknownName, r"there is no suite 'quik'; did you mean 'quick'\?"),
        ("none.toml", InvalidSuite, r"there is no file none\.toml; effbench comes with these suites: .*quick"),
        ("./quick/", UnknownName, r"there is no suite|no file"),
        (".", InvalidSuite, r"\. is a folder; give the TOML file"),
    ],
)
def test_what_is_no_suite(name: str, error: type[Exception], said: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((error, InvalidSuite), match=said):
        suites.find(name)


def test_overriding(written: Any, known: Plugins) -> None:
    suite = suites.load(written(GOOD), known)
    other = suite.override(
        budget="2s",
        total="1m",
        seeds=[7],
        techniques=[{"ema": {}}, {"mixup": {}}, {"ema": {}}, {}],
        workloads=["kjv_gpt"],
    )
    assert (other.budget, other.total, other.seeds, other.workloads) == ("2s", "1m", (7,), ("kjv_gpt",))
    assert other.sets == (*suite.sets, {"ema": {}})
    assert other.budget_of(known.workloads["kjv_gpt"]) == "2s"
    other.check(known)
    assert suite.override() == suite
    only = suite.override(workloads=["digits_mlp"])
    assert only.budgets == {}
    only.check(known)


def test_total_is_wall_time() -> None:
    assert suites.wall_seconds("1h30m", "--total") == 5400
    with pytest.raises(InvalidBudget, match="--total = 'soon'"):
        suites.wall_seconds("soon", "--total")


def test_sets_may_be_compared_on_one_workload_alone(written: Any, known: Plugins) -> None:
    suite = suites.load(written(ALONE), known)
    own = [{"ema": {"decay": 0.5}}, {"mixup": {"alpha": 0.3}}]
    assert suite.sets_of("kjv_gpt") == [*suite.sets, *own]
    assert suite.sets_of("digits_mlp") == list(suite.sets)
    assert suite.trials == 3 * (2 * len(suite.sets) + 2)
    assert suite.override(workloads=["digits_mlp"]).only == {}
    assert suite.override(seeds=[7]).only == suite.only


def test_plain_values_survive_json(written: Any, known: Plugins) -> None:
    plain = dataclasses.asdict(suites.load(written(GOOD), known))
    assert json.loads(json.dumps(plain))["sets"][2] == {"mixup": {"alpha": 0.1}, "ema": {"decay": 0.9, "steps": 2}}


@pytest.mark.parametrize("name", suites.packaged())
def test_packaged_suites_are_right(name: str) -> None:
    suite = suites.load(name, plugin_finder.load(strict=True))
    assert suite.name == name
    assert suite.summary.endswith(".")


def test_the_taxonomy_suite_holds_every_technique_on_a_workload_that_takes_it() -> None:
    known = plugin_finder.load(strict=True)
    suite = suites.load("taxonomy", known)
    held = [name for sets in suite.only.values() for chosen in sets for name in chosen]
    assert sorted(held) == sorted(known.techniques)


def test_the_quick_suite_is_what_the_readme_promises() -> None:
    quick = read(suites.find("quick"))
    assert (len(quick.workloads), len(quick.sets), len(quick.seeds), quick.budget) == (3, 5, 3, "5s reference")


def test_every_key_is_explained() -> None:
    assert set(KEYS) == set(Suite.__dataclass_fields__) - {"sets", "path"} | {"techniques"}
