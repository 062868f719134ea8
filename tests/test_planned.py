"""A run that is killed leaves no record of what it did not come to; its folder says what was planned all the same."""

import pytest

from effbench.errors import EffbenchError
from effbench.planned import without_record
from effbench.report.tables import comparison_table
from effbench.store import Store, read_records
from record_factory import record, several
from running import make_suite, run

PLACE = {"workload": "mnist1d_cnn", "budget": "5s reference", "clock": "reference", "metric": "accuracy"}
PLACE |= {"higher_is_better": True, "target": 0.75}
SUITE = {"name": "quick", "seeds": [0, 1, 2], "sets": [{}, {"ema": {}}], "only": {}, "planned": [PLACE]}


def kept(folder, suite, records):
    store = Store(folder)
    store.check_writable()
    store.write_json("suite", suite)
    for each in records:
        store.append(each)
    return folder


def n_of(table):
    return {row.values["technique"]: row.cells[1] for row in table.rows}


def test_tables_count_the_seeds_that_were_planned(tmp_path):
    records = [*several("", [0.8, 0.81]), record("ema"), *several("sam", [0.7, 0.8])]
    suite = {**SUITE, "sets": [*SUITE["sets"], {"sam": {}}]}
    (table,) = comparison_table(read_records(kept(tmp_path, suite, records)))
    assert (n_of(table), table.caption) == (
        {"baseline": "2/3", "ema": "1/3", "sam": "2/3"},
        "test accuracy, more is better, 3 seeds",
    )
    assert [row.verdict for row in table.rows] == ["", "incomplete", "incomplete"]
    why = "it left no record: the run ended before its turn, or is not there yet"
    problems = [remark.text for remark in table.remarks if remark.kind == "problem"]
    assert problems == [f"baseline and sam: not started, seed 2: {why}", f"ema: not started, seeds 1, 2: {why}"]


def test_sets_and_workloads_that_nothing_is_known_of_are_there(tmp_path):
    two = {**PLACE, "workload": "kjv_gpt", "metric": "loss", "higher_is_better": False}
    suite = {**SUITE, "planned": [PLACE, two], "only": {"kjv_gpt": [{"sam": {"rho": 0.1}}]}}
    first, second = comparison_table(read_records(kept(tmp_path, suite, several("", [0.8, 0.81, 0.82]))))
    assert n_of(first) == {"baseline": "3/3", "ema": "0/3"}
    assert n_of(second) == {"baseline": "0/3", "ema": "0/3", "sam(rho=0.1)": "0/3"}
    assert (second.caption, second.columns[2].title) == ("test loss, less is better, 3 seeds", "loss")


def test_many_missing_seeds_are_named_as_a_span_and_make_no_warning_rarer(tmp_path):
    suite = {**SUITE, "seeds": [0, 1, 2, 3, 4, 7]}
    records = read_records(kept(tmp_path, suite, several("", [0.8, 0.81], warnings=["busy"])))
    (table,) = comparison_table(records)
    said = [remark.text for remark in table.remarks]
    assert any(text.startswith("baseline: not started, seeds 2-4,7: it left no record") for text in said)
    assert "busy (all records)" in said


def test_what_has_a_record_is_planned_no_more(tmp_path):
    whole = several("", [0.8, 0.81, 0.82]) + several("ema", [0.8, 0.81, 0.82])
    assert len(read_records(kept(tmp_path / "whole", SUITE, whole))) == 6
    halves = [kept(tmp_path / "one", SUITE, whole[:3]), kept(tmp_path / "two", SUITE, whole[3:])]
    assert len(read_records(halves)) == 6
    assert len(read_records(halves[0])) == 6
    assert len(read_records(halves[0] / "records.jsonl")) == 3  # the file by itself knows of no suite


def test_folders_that_do_not_say_what_was_planned_are_read_as_ever(tmp_path):
    old = {key: value for key, value in SUITE.items() if key != "planned"}
    assert len(read_records(kept(tmp_path / "old", old, several("", [0.8])))) == 1
    assert read_records(kept(tmp_path / "empty", SUITE, [])) == []  # nothing came of it, so there is nothing to show


def test_a_damaged_suite_is_an_error_that_names_it():
    with pytest.raises(EffbenchError, match=r"suite\.json of the results does not say what was planned"):
        without_record({**SUITE, "planned": [{}]}, [])


def test_a_run_notes_what_it_plans(server, tmp_path):
    suite = make_suite("label_smoothing", seeds=(0, 1), ladder=(0.5, 1.0), only={"toy": ({"ema": {}},)})
    run(server, tmp_path, suite)
    file = tmp_path / "records.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:7]))  # as kill -9 leaves it: seeds are run one after the other
    found, labels = read_records(tmp_path), ("baseline", "ema", "label_smoothing")
    whole = {(each.workload, each.budget, each.label, each.seed) for each in found}
    assert len(found) == len(whole) == len(lines) == 12
    assert [each.status for each in found].count("not_started") == 5
    assert {frozenset(n_of(table)) for table in comparison_table(found)} == {frozenset(labels)}
    assert all(cell.endswith("/2") for table in comparison_table(found) for cell in n_of(table).values())
    assert {each.metric for each in found} == {"accuracy"}
