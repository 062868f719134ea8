"""What a suite will do: cells, order, what is kept and why not, how long it takes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from effbench import planning
from effbench.budget import Budget
from effbench.data.source import DataSource
from effbench.errors import DataUnavailable, EffbenchError, UnknownName
from effbench.planning import Cell, Composed, Settings, in_running_order, plan, seconds_of, use_copies
from effbench.pricing import Phase, Price, Trouble
from effbench.records import Record
from effbench.trial import Trial
from record_factory import record
from running import composed, make_suite, strange_plugins


def planned(suite, done=None, settings=None, prices=None):
    plugins, settings = strange_plugins(), settings or Settings()
    return plan(suite, composed(suite, plugins, settings), prices or {}, done or {}, plugins, settings)


def finished(trial: Trial, status: str = "ok", reason: str = "", **changes) -> Record:
    """The record that a trial would have left."""
    facts = {"workload": trial.workload, "budget": trial.budget, "identity": dict(trial.identity), "key": trial.key}
    return record(dict(trial.techniques), seed=trial.seed, **{**facts, "status": status, "reason": reason, **changes})


def test_cells_say_what_is_refused_and_what_is_broken():
    before = torch.get_num_threads()
    suite = make_suite("unwilling", "broken", "leaver", "quitter", "pair+slow", "rogue(at_once=true)")
    cells = {cell.label: cell for cell in composed(suite, strange_plugins(), Settings())}
    assert cells["unwilling"].composed.refusal == "unwilling never applies"
    troubles = {cell.label: cell.composed.trouble for cell in cells.values() if cell.composed.trouble}
    assert {name: why.reason for name, why in troubles.items()} == {
        "broken": "ZeroDivisionError: broken at once",
        "leaver": "GeneratorExit: left at once",
    }
    assert (cells["pair+slow"].composed, cells["baseline"].composed) == (Composed(processes=2), Composed())
    assert torch.get_num_threads() == before
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.parametrize(
    "settings", [{"jobs": 0}, {"jobs": 2.0}, {"jobs": True}, {"threads": -1}, {"threads": 10**9}, {"device": "gpu"}]
)
def test_what_no_machine_has_is_refused(settings):
    with pytest.raises(EffbenchError, match=r"write (a whole number from 1 to 1024|cpu)"):
        Settings(**settings)


def test_trials_run_seed_by_seed_in_an_order_of_their_own():
    suite = make_suite(*(f"slow(seconds={i}.0)" for i in range(6)), seeds=(5, 3))
    order = [(one.seed, one.cell.label) for one in planned(suite)]
    assert [seed for seed, _ in order] == [5] * 7 + [3] * 7
    first, second = ([label for seed, label in order if seed == wanted] for wanted in (5, 3))
    assert sorted(first) == sorted(second)
    assert first != second
    assert order == [(one.seed, one.cell.label) for one in planned(suite)]
    assert {cell.label for cell, _ in in_running_order(suite, composed(suite, strange_plugins(), Settings()))} == set(
        first
    )


def test_what_is_finished_is_kept():
    suite = make_suite("slow", seeds=(0, 1))
    trials = [one.trial for one in planned(suite)]
    assert len({trial.key for trial in trials}) == 4
    done = {trial.key: finished(trial) for trial in trials[:3]}
    again = planned(suite, done)
    assert [one.kept is not None for one in again] == [True, True, True, False]
    assert again[3].why == ""


@pytest.mark.parametrize("status", ["failed", "timeout", "killed", "interrupted", "no_steps", "not_started"])
def test_what_came_to_no_end_runs_again(status):
    suite = make_suite()
    (one,) = planned(suite)
    (again,) = planned(suite, {one.trial.key: finished(one.trial, status, "why\nand more")})
    assert (again.kept, again.why) == (None, f"{status} last time: why")


def test_why_a_finished_trial_runs_again_is_said():
    suite = make_suite("slow")
    one = next(one for one in planned(suite) if one.cell.techniques)
    old = dict(one.trial.identity) | {"torch": "1.0", "code of slow": "0000", "budget": "10 steps"}
    done = {"another": finished(one.trial, identity=old, key="another")}
    again = next(one for one in planned(suite, done) if one.cell.techniques)
    assert again.kept is None
    assert again.why == f"budget: 10 steps -> 20 steps; another code of slow; torch: 1.0 -> {torch.__version__}"


def test_other_settings_make_other_trials():
    suite = make_suite()
    (one,), (threads,) = planned(suite), planned(suite, settings=Settings(threads=2))
    (jobs,) = planned(suite, settings=Settings(jobs=2))
    assert one.trial.key != threads.trial.key
    assert one.trial.key == jobs.trial.key  # neighbours slow it down, and change no result of a counted budget


def test_a_trial_without_a_price_is_not_known_yet():
    suite = make_suite("slow", "unwilling", budget="1s reference")
    found = {one.cell.label: one for one in planned(suite)}
    assert found["baseline"].trial.price["phases"][0]["cost"] == 0.0005  # given
    assert found["slow"].trial is None
    assert found["unwilling"].trial.price is None


@pytest.mark.parametrize(
    ("budget", "processes", "seconds"),
    [("5s", 2, 5.0), ("6s cpu", 2, 3.0), ("5s reference", 2, 5.0), ("100 steps", 1, 1.0), ("3 epochs", 1, None)],
)
def test_how_long_a_trial_takes(budget, processes, seconds):
    cell = Cell("toy", {}, Budget.parse(budget), Composed(processes))
    assert seconds_of(cell, None, 0.01) == pytest.approx(seconds)


def test_what_was_seen_tells_more_than_the_budget():
    cell = Cell("toy", {"slow": {}}, Budget.parse("100 steps"))
    price = Price("reference", (Phase(0.0, 0.05, 5, 5, 5, 100, 1.0),))
    assert seconds_of(cell, price, 0.01) == 5.0
    others = [record("", workload="toy", budget="100 steps", wall_seconds=w) for w in (2.0, 4.0)]
    assert seconds_of(cell, None, 0.01, others) == 3.0
    own = record("slow", workload="toy", budget="100 steps", wall_seconds=9.0)
    assert seconds_of(cell, None, 0.01, [*others, own]) == 9.0
    assert seconds_of(cell, None, 0.01, [record("slow", workload="toy", budget="50 steps")]) == 1.0


def test_data_is_taken_from_copies(tmp_path):
    plugins, taken = strange_plugins(), list[Path]()
    source = DataSource("mine", "s", "t", "l", "afar", 1.0, load=lambda: None, from_folder=taken.append)
    plugins.offers["effbench_datasets"] |= {
        "mine": source,
        "fixed": DataSource("fixed", "s", "t", "l", "afar", 1.0, dict),
    }
    use_copies(Settings(data={"mine": str(tmp_path)}), plugins)
    assert taken == [tmp_path]
    with pytest.raises(DataUnavailable, match="'fixed' is not taken from a folder; it comes from afar"):
        use_copies(Settings(data={"fixed": "."}), plugins)
    with pytest.raises(UnknownName, match="did you mean 'mine'"):
        use_copies(Settings(data={"mnie": "."}), plugins)


def test_only_priced_units_need_prices():
    wanted = {"1s": False, "1s cpu": False, "9 steps": False, "1s reference": True, "1e9 flop": True}
    found = {text: planning.is_priced(Cell("toy", {}, Budget.parse(text))) for text in wanted}
    assert found == wanted
    assert not planning.is_priced(
        Cell("toy", {}, Budget.parse("1s reference"), Composed(trouble=Trouble("failed", "failed", "odd")))
    )
