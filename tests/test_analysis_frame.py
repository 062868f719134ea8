"""The frame has one row a record, and its text stays text."""

import math

from effbench.analysis.frame import load_results, to_frame
from effbench.store import Store
from record_factory import record

NAMES = ["None", "NA", "nan", "0012e3", "1E10", "42924e28", "0012", "1.10", "true"]


def test_names_and_ids_stay_text(tmp_path):
    store = Store(tmp_path)
    for name in NAMES:
        store.append(record(name, key=name))
    frame = load_results(tmp_path)
    assert list(frame["label"]) == NAMES
    assert list(frame["key"]) == NAMES
    assert list(frame.groupby("label").size().sort_index().index) == sorted(NAMES)


def test_nested_fields_become_columns_with_their_unit():
    frame = to_frame([record(seed=1, value=0.1 + 0.2), record(seed=2, status="failed")])
    assert frame["test_accuracy"][0] == 0.1 + 0.2
    assert math.isnan(frame["test_accuracy"][1])
    assert frame["ledger_data_seconds"][0] == 0.2
    assert list(frame["version_torch"]) == ["2.13.0", "2.13.0"]
    assert frame["techniques"][0] == "{}"
    assert frame["seed"].dtype == "int64"
    assert "curve" not in frame


def test_no_record_is_an_empty_frame_with_its_columns(tmp_path):
    Store(tmp_path).check_writable()
    frame = load_results([tmp_path])
    assert len(frame) == 0
    assert {"workload", "label", "status"} <= set(frame.columns)


def test_huge_seeds_do_not_overflow():
    assert list(to_frame([record(seed=2**70)])["seed"]) == [2.0**70]
