"""Suites that climb a ladder, compare at equal steps, and cross techniques."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from effbench import suite as suites
from effbench.errors import InvalidSuite
from effbench.planning import Settings, plan
from effbench.plugins import load
from effbench.prices import missing
from effbench.records import label
from running import composed, make_suite, strange_plugins

HEAD = 'seeds = [0, 1]\nworkloads = ["digits_mlp"]\nbudget = "1s reference"\n'
KNOWN = load()


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def written(more: str) -> suites.Suite:
        path = tmp_path / "mine.toml"
        path.write_text(HEAD + more, encoding="utf-8")
        return suites.load(path, KNOWN)

    return written


def test_a_ladder_is_shares_of_the_budget(read: Any) -> None:
    suite = read("ladder = [0.5, 1, 2]")
    workload = KNOWN.workloads["digits_mlp"]
    assert [str(rung) for rung in suite.rungs_of(workload)] == ["0.5s reference", "1s reference", "2s reference"]
    assert suite.trials == 3 * 2
    assert [str(rung) for rung in read("").rungs_of(workload)] == ["1s reference"]


def test_a_factorial_is_its_sets(read: Any) -> None:
    suite = read('[factorial]\ntechniques = ["mixup(alpha=0.1)", "ema"]')
    points = ["baseline", "ema", "mixup(alpha=0.1)", "ema+mixup(alpha=0.1)"]
    assert [label(chosen) for chosen in suite.sets] == points
    assert suite.factorial == {"techniques": ["mixup(alpha=0.1)", "ema"], "fraction": 1}
    half = read('[factorial]\ntechniques = ["mixup", "ema", "label_smoothing"]\nfraction = 2')
    assert len(half.sets) == 4


def test_what_is_listed_and_crossed_runs_once(read: Any) -> None:
    suite = read('[factorial]\ntechniques = ["mixup", "ema"]\n[[techniques]]\nmixup = {}\n[[techniques]]\nsam = {}')
    assert sorted(label(chosen) for chosen in suite.sets) == ["baseline", "ema", "ema+mixup", "mixup", "sam"]


@pytest.mark.parametrize(
    ("more", "line", "said"),
    [
        ("ladder = 2", 4, "ladder = 2: write a list of shares of the budget, such as [0.5, 1, 2]"),
        ("ladder = [0.5, -1]", 4, "ladder: -1 is no positive share of the budget"),
        ("ladder = [1, 1]", 4, "1 is listed twice"),
        ('ladder = ["1s"]', 4, 'ladder: "1s" is none of shares of the budget'),
        ("per_step = 1", 4, "per_step = 1: write per_step = true, or leave it out"),
        ("factorial = ['mixup']", 4, "write a table: [factorial] and in it techniques"),
        ("[factorial]\ntechniques = 'mixup'", 5, 'factorial.techniques = "mixup": write a table'),
        ("[factorial]\ntechniques = ['mixup', 'ema']\nfraction = 'half'", 6, "write 1, 2, 4, ..."),
        ("[factorial]\ntechniques = ['mixup', 'ema']\nfractoin = 2", 6, "did you mean 'fraction'?"),
        ("[factorial]\ntechniques = ['mixup']", 4, "1 techniques are crossed; name 2 to 10"),
        ("[factorial]", 4, "0 techniques are crossed; name 2 to 10"),
        ("[factorial]\ntechniques = ['mixup', 'emma']", 4, "there is no technique 'emma'; did you mean 'ema'?"),
        ("[factorial]\ntechniques = ['mixup(alhpa=1)', 'ema']", 4, "mixup has no option 'alhpa'"),
    ],
)
def test_faults_are_told_with_their_line(more: str, line: int, said: str, read: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidSuite) as raised:
        read(more)
    assert said in str(raised.value)
    assert str(raised.value).startswith(f"{tmp_path / 'mine.toml'}:{line}: ")


def test_equal_steps_need_a_budget_whose_steps_are_known(read: Any) -> None:
    assert read("per_step = true").trials == 4
    with pytest.raises(InvalidSuite, match=r"per_step: the steps that budget = \"1s\" buys are known only"):
        suites.load(_other(read, "1s"), KNOWN)


def _other(read: Any, budget: str) -> Path:
    suite = read("per_step = true")
    path = Path(suite.path)
    path.write_text(path.read_text(encoding="utf-8").replace("1s reference", budget), encoding="utf-8")
    return path


def test_every_set_is_planned_at_every_budget() -> None:
    suite = make_suite("slow", budget="1s reference", ladder=(0.5, 1.0), per_step=True)
    cells = composed(suite, strange_plugins(), Settings())
    found = [(cell.label, str(cell.budget)) for cell in cells]
    budgets = ["0.5s reference", "1s reference", "1000 steps", "2000 steps"]  # a step of the toy is 0.0005 s
    assert found == [(name, budget) for name in ("baseline", "slow") for budget in budgets]


def test_a_price_is_measured_once_for_all_rungs() -> None:
    suite = make_suite("slow", budget="1s reference", ladder=(0.5, 1.0, 2.0))
    cells = composed(suite, strange_plugins(), Settings())
    (group,) = missing(cells, {}, strange_plugins(), Settings())
    assert [cell.label for cell in group] == ["slow"]


def test_another_rung_is_no_reason_to_run_again() -> None:
    suite = make_suite(budget="20 steps", ladder=(0.5, 1.0))
    plugins = strange_plugins()
    cells = composed(suite, plugins, Settings())
    first, second = plan(suite, cells, {}, {}, plugins, Settings())
    from effbench.trial import blank

    done = blank(first.trial, plugins.workloads["toy"], plugins)
    done.status = "ok"
    kept, fresh = plan(suite, cells, {}, {first.trial.key: done}, plugins, Settings())
    assert kept.kept is done
    assert (fresh.kept, fresh.why) == (None, "")
    assert second.cell.budget != first.cell.budget
