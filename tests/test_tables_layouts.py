"""Other layouts of the tables: the same numbers, in another order or under other titles."""

import io
import json
import math
import subprocess
import sys

import pandas as pd
import pytest

import effbench
from effbench import cli, verbs
from effbench.analysis.comparison import compare
from effbench.errors import UnknownName
from effbench.report import layouts
from effbench.report.formats.as_csv import to_csv
from effbench.report.frames import to_frame
from effbench.report.layouts import laid_out
from effbench.report.method import method
from effbench.report.tables import comparison_table
from effbench.store import Store
from record_factory import record, several, study


def records():
    short, series = {"budget": "2s reference"}, {"budget": "2s reference", "workload": "kjv_gpt", "metric": "loss"}
    found = several("", [0.70, 0.72, 0.71], **short) + several("ema", [0.70, 0.73, 0.70], **short)
    found += several("", [0.80, 0.82, 0.81]) + several("ema", [0.85, 0.87, 0.89]) + several("sam", [0.70, 0.71, 0.69])
    return found + several("", [2.6, 2.7, 2.5], **series) + several("ema", [2.4, 2.5, 2.3], **series)


def at_five_seconds(tables):
    return next(table for table in tables if table.title == "mnist1d_cnn, 5s reference")


def labels(table):
    return [row.values["technique"] for row in table.rows]


def keys(table):
    return [column.key for column in table.columns]


def test_full_tables_by_technique_are_the_tables_themselves():
    tables = comparison_table(records())
    assert laid_out(tables) == tables


def test_a_table_for_each_set_has_a_row_for_each_workload_and_budget():
    baseline, ema, sam = laid_out(comparison_table(records()), by="workload", style="compact")
    assert (baseline.title, ema.title, sam.title) == ("baseline", "ema", "sam")
    assert keys(ema) == ["workload", "budget", "metric", "mean", "difference", "verdict"]
    assert [row.cells[:3] for row in ema.rows] == [
        ("mnist1d_cnn", "2s reference", "accuracy"),
        ("mnist1d_cnn", "5s reference", "accuracy"),
        ("kjv_gpt", "2s reference", "loss"),
    ]
    assert [column.title for column in ema.columns][3] == "mean"  # of two metrics
    assert ema.rows[1].cells[3] == "0.870 ± 0.050"


def test_a_table_for_each_workload_has_all_budgets_of_a_set_together():
    cnn, gpt = laid_out(comparison_table(records()), by="budget")
    assert (cnn.title, gpt.title) == ("mnist1d_cnn", "kjv_gpt")
    pairs = [(row.values["technique"], row.values["budget"]) for row in cnn.rows]
    assert pairs == [
        ("baseline", "2s reference"),
        ("baseline", "5s reference"),
        ("ema", "2s reference"),
        ("ema", "5s reference"),
        ("sam", "5s reference"),
    ]


def test_what_one_workload_has_alone_says_so_where_workloads_share_a_table():
    found = several("", [0.80, 0.82, 0.81]) + several("ema", [0.85, 0.87, 0.89])
    found += several("", [2.6, 2.7, 2.5], workload="kjv_gpt", metric="loss", target=2.4, warnings=["busy"])
    found += several("ema", [2.4, 2.5, 2.3], workload="kjv_gpt", metric="loss", target=2.4, warnings=["busy"])
    found += [record("ema", seed=3, workload="kjv_gpt", target=2.4, status="failed", reason="no memory")]
    baseline, ema = laid_out(comparison_table(found), by="workload")
    said = [remark.text for remark in ema.remarks]
    assert "kjv_gpt: ema: failed, seed 3: no memory" in said
    assert "kjv_gpt: busy (6 of 7 records)" in said
    targets = ["mnist1d_cnn: target: accuracy 0.75 on validation", "kjv_gpt: target: loss 2.4 on validation"]
    assert [text for text in said if "target: " in text and text.startswith(("mnist", "kjv"))] == targets
    assert sum(text.startswith("±: half") for text in said) == 1
    assert keys(baseline)[-5:] == ["mean", "time_to_target", "examples_per_second", "peak_memory_mib", "setup_seconds"]


def test_a_table_of_one_metric_needs_no_column_that_names_it():
    cnn, _ = laid_out(comparison_table(records()), by="budget")
    assert keys(cnn)[:4] == ["technique", "budget", "n", "mean"]
    assert cnn.columns[3].title == "accuracy"


def test_notes_go_with_the_columns_that_they_explain():
    found = at_five_seconds(laid_out(comparison_table(records()), columns=["technique", "mean"]))
    said = " ".join(remark.text for remark in found.remarks)
    assert "±: half" in said
    assert "evaluation left out" in said
    assert not any(word in said for word in ("Δ", "★", "target", "examples/s", "peak MiB", "set-up s"))


def test_rows_by_leaf_stand_in_the_order_of_the_survey():
    leaves = {"sam": "data_centric/sampling", "ema": "optimization_centric/averaged_weights"}
    first = at_five_seconds(laid_out(comparison_table(records()), by="leaf", leaves=leaves))
    assert labels(first) == ["baseline", "sam", "ema"]
    assert [row.cells[0] for row in first.rows] == [
        "",
        "data_centric/sampling",
        "optimization_centric/averaged_weights",
    ]


def test_columns_are_those_asked_for_numbers_behind_the_rows_too():
    tables = laid_out(comparison_table(records()), columns=["p_holm", "technique", "statuses", "best"])
    first = at_five_seconds(tables)
    assert keys(first) == ["p_holm", "technique", "statuses", "best"]
    assert first.rows[0].cells == ("—", "baseline", "ok=3", "no")
    assert first.rows[1].cells[1:] == ("ema", "ok=3", "yes")
    assert float(first.rows[1].cells[0]) == pytest.approx(first.rows[1].values["p_holm"], abs=0.0005)
    full = at_five_seconds(comparison_table(records()))
    full.rows[2].values["p_holm"] = 0.0009
    assert laid_out([full], columns=["p_holm"])[0].rows[2].cells == ("< 0.001",)


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("mean", ["baseline", "sam", "ema"]),
        ("-mean", ["baseline", "ema", "sam"]),
        ("technique", ["baseline", "ema", "sam"]),
        ("-technique", ["baseline", "sam", "ema"]),
    ],
)
def test_the_baseline_stays_first_however_rows_are_sorted(sort, expected):
    assert labels(at_five_seconds(laid_out(comparison_table(records()), sort=sort))) == expected


def test_what_is_not_known_comes_last():
    found = several("", [0.8, 0.81]) + several("amp", [math.nan, math.nan]) + several("ema", [0.7, 0.71])
    for sort in ("mean", "-mean"):
        assert labels(laid_out(comparison_table(found), sort=sort)[0])[-1] == "amp"


@pytest.mark.parametrize("words", [{"columns": ["technik"]}, {"sort": "technik"}])
def test_a_column_that_is_not_there_is_refused_with_the_near_one(words):
    with pytest.raises(UnknownName, match="did you mean 'technique'"):
        laid_out(comparison_table(records()), **words)


def test_styles_differ_in_columns_and_remarks():
    tables = comparison_table(records())
    compact, paper = (laid_out(tables, style=style)[0] for style in ("compact", "paper"))
    assert keys(compact) == ["technique", "mean", "difference", "verdict"]
    assert keys(paper) == ["technique", "n", "mean", "difference", "p_holm"]
    assert compact.remarks == paper.remarks == ()
    assert tables[0].remarks


def test_the_words_of_the_command_line_are_those_of_the_layouts():
    assert (verbs.BY, verbs.STYLES) == (layouts.BY, layouts.STYLES)


def test_the_command_lays_tables_out(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    store = Store("results/quick")
    store.check_writable()
    for each in records():
        store.append(each)
    asked = ["table", "--style", "compact", "--sort=-mean", "--columns", "technique, n", "--workload", "mnist1d_cnn"]
    assert cli.main([*asked, "--format", "csv", "-o", "t.csv"]) == 0
    assert list(pd.read_csv("t.csv")["technique"]) == ["baseline", "ema", "baseline", "ema", "sam"]
    assert cli.main(["table", "--by", "technic"]) == 2
    assert "did you mean 'technique'?" in capsys.readouterr().err


def test_leaves_of_techniques_that_are_not_installed_are_those_of_the_run(tmp_path, capsys):
    store = Store(tmp_path)
    store.check_writable()
    for each in several("", [0.8, 0.9]) + several("elsewhere", [0.7, 0.8]) + several("ema", [0.8, 0.9]):
        store.append(each)
    store.write_json("claims", {"elsewhere": {"paper": "", "claim": "", "leaf": "data_centric/sampling"}})
    asked = ["table", str(tmp_path), "--by", "leaf", "--format", "markdown", "--columns", "leaf,technique"]
    assert cli.main(asked) == 0
    cells = [line.split("|")[1:3] for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert [(leaf.strip(), name.strip()) for leaf, name in cells[1:]] == [
        ("", "baseline"),
        ("data_centric/sampling", "elsewhere"),
        ("optimization_centric/averaged_weights", "ema"),
    ]


def test_csv_reads_back_to_the_last_bit():
    tables = comparison_table(study(sets=5, seeds=4))
    found = pd.read_csv(io.StringIO(to_csv(tables)), keep_default_na=False, na_values={"difference_low": [""]})
    values = [row.values for row in tables[0].rows]
    assert list(found["mean"]) == [each["mean"] for each in values]
    assert [x for x in found["difference_low"] if x == x] == [v for each in values if (v := each["difference_low"])]
    sets = [json.loads(each) for each in found["techniques"]]
    assert sets == [json.loads(str(each["techniques"])) for each in values]


def test_a_frame_has_numbers_as_numbers_and_units_in_its_columns(tmp_path):
    store = Store(tmp_path)
    store.check_writable()
    for each in records():
        store.append(each)
    frame = effbench.table(tmp_path, workload="mnist1d_cnn")
    assert {"peak_memory_mib", "setup_seconds", "examples_per_second", "speed_over_baseline"} <= set(frame.columns)
    ema = frame[(frame["technique"] == "ema") & (frame["budget"] == "5s reference")].iloc[0]
    assert ema["difference"] == pytest.approx(0.06)
    assert ema["verdict"] == "better"
    assert frame["mean"].dtype == frame["spent_at_target_in_clock_units"].dtype == "float64"
    assert frame["technique"].tolist().count("baseline") == 2
    assert to_frame([]).empty


def test_a_frame_needs_no_torch(tmp_path):
    Store(tmp_path).check_writable()
    code = f"import sys, effbench; effbench.table({str(tmp_path)!r}); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_method_is_written_from_the_records():
    text = method(compare(records()))
    assert text.startswith(
        "2 sets of techniques and the baseline were trained on 2 workloads (mnist1d_cnn and kjv_gpt), "
        "each with 3 seeds (0-2)."
    )
    assert "The budget of a trial was 2s reference or 5s reference, counted in seconds at the prices" in text
    assert "Student's t, 95 %; those of differences are widened by Holm's correction" in text
    assert "Test CPU, 2 cores, Linux x86_64, 1 thread a trial, 2 trials at a time, effbench 0.1.0" in text
    assert text.endswith("Trials: 21 ok.")
    assert method([]) == ""
