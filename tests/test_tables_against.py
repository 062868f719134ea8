"""Another set may take the place of the baseline, and long options that sets share are told once."""

import pytest

import effbench
from effbench import cli
from effbench.analysis.comparison import compare
from effbench.analysis.verdicts import Verdict
from effbench.errors import InvalidSuite, UnknownName
from effbench.report.abbreviations import short_names
from effbench.report.html.page import report
from effbench.report.layouts import laid_out
from effbench.report.tables import comparison_table
from effbench.store import Store
from record_factory import several

BASELINE, EMA, BOTH = [0.80, 0.82, 0.81], [0.85, 0.88, 0.86], [0.88, 0.91, 0.895]


def records():
    return several("", BASELINE) + several("ema", EMA) + several({"ema": {}, "mixup": {}}, BOTH)


@pytest.fixture
def folder(tmp_path):
    store = Store(tmp_path)
    for each in records():
        store.append(each)
    return store.path


def test_differences_are_to_the_set_that_is_asked_for():
    (found,) = compare(records(), against={"ema": {}})
    by_label = {each.label: each for each in found.results}
    assert found.against == "ema"
    assert by_label["ema"].difference is None
    assert by_label["ema+mixup"].difference.mean == pytest.approx((0.03 + 0.03 + 0.035) / 3)
    assert by_label["ema+mixup"].verdict is Verdict.BETTER
    assert by_label["baseline"].verdict is Verdict.WORSE
    assert by_label["baseline"].relative_speed == pytest.approx(1.0)


def test_the_set_stands_first_and_is_named_wherever_the_baseline_would_be():
    (table,) = laid_out(comparison_table(records(), against={"ema": {}}), sort="-mean")
    assert [row.values["technique"] for row in table.rows] == ["ema", "ema+mixup", "baseline"]
    assert {row.values["against"] for row in table.rows} == {"ema"}
    assert "Δ vs ema" in [column.title for column in table.columns]
    assert "the difference to ema, paired" in table.statement
    assert any(remark.text.startswith("★: better than ema,") for remark in table.remarks)


def test_a_set_that_was_not_run_is_refused_with_those_that_were():
    with pytest.raises(UnknownName, match="no set 'emma'; did you mean 'ema'"):
        compare(records(), against={"emma": {}})


def test_where_the_set_was_not_run_there_is_nothing_to_compare_with():
    elsewhere = several("", BASELINE, workload="kjv_gpt") + several("sam", EMA, workload="kjv_gpt")
    _, other = compare(records() + elsewhere, against={"ema": {}})
    assert [each.difference for each in other.results] == [None, None]
    assert "there is no record of ema here, so there is nothing to compare with" in other.caveats


def test_the_command_and_python_ask_for_it_as_tables_write_it(folder, capsys):
    assert cli.main(["table", str(folder), "--against", "mixup+ema", "--style", "compact"]) == 0
    shown = capsys.readouterr().out
    assert "Δ vs ema+mixup" in shown
    assert shown.index("ema+mixup ") < shown.index("baseline ")
    frame = effbench.table(folder, against="ema").set_index("technique")
    assert frame.loc["ema+mixup", "difference"] == pytest.approx(0.095 / 3)
    with pytest.raises(InvalidSuite, match="names ema twice"):
        effbench.table(folder, against="ema+ema")


NETWORK = {"bandwidth": 1250000.0, "latency": 0.001}
SLOWER = {"bandwidth": 125000.0, "latency": 0.001}


def test_long_options_that_sets_share_become_numbers():
    sets = [
        {},
        {"ddp": {}, "network": NETWORK},
        {"local_sgd": {"interval": 8}, "network": NETWORK},
        {"local_sgd": {"interval": 8}},
        {"powersgd": {}, "network": SLOWER},
    ]
    names, lines = short_names(sets)
    assert list(names.values()) == [
        "baseline",
        "ddp+network[1]",
        "local_sgd(interval=8)+network[1]",
        "local_sgd(interval=8)",
        "network(bandwidth=125000.0, latency=0.001)+powersgd",  # no other set has it
    ]
    assert lines == ["network[1]: bandwidth=1250000.0, latency=0.001"]


@pytest.mark.parametrize("style", ["full", "compact", "paper"])
def test_every_style_tells_what_a_number_stands_for(style):
    found = several("", BASELINE) + several({"ddp": {}, "network": NETWORK}, EMA)
    found += several({"local_sgd": {}, "network": NETWORK}, BOTH)
    (table,) = laid_out(comparison_table(found), style=style)
    assert [row.cells[0] for row in table.rows] == ["baseline", "local_sgd+network[1]", "ddp+network[1]"]
    assert table.rows[2].values["technique"] == "ddp+network(bandwidth=1250000.0, latency=0.001)"
    assert [r.text for r in table.remarks if r.about == "sets"] == ["network[1]: bandwidth=1250000.0, latency=0.001"]


def on_two_networks():
    found = several("", BASELINE) + several({"ddp": {}, "network": NETWORK}, EMA)
    return found + several({"local_sgd": {}, "network": NETWORK}, BOTH)


def test_numbers_mean_the_same_in_all_tables_of_a_text_and_stand_where_they_are_used():
    elsewhere = several("", BASELINE, workload="kjv_gpt") + several({"network": SLOWER}, EMA, workload="kjv_gpt")
    elsewhere += several({"ddp": {}, "network": SLOWER}, BOTH, workload="kjv_gpt")
    first, other = comparison_table(on_two_networks() + elsewhere)
    assert [row.cells[0] for row in other.rows] == ["baseline", "ddp+network[1]", "network[1]"]
    assert [r.text for r in first.remarks if r.about == "sets"] == ["network[2]: bandwidth=1250000.0, latency=0.001"]
    assert [r.text for r in other.remarks if r.about == "sets"] == ["network[1]: bandwidth=125000.0, latency=0.001"]


def test_the_page_tells_the_numbers_and_finds_records_by_whole_names():
    page = report(on_two_networks())
    assert "<li>network[1]: bandwidth=1250000.0, latency=0.001</li>" in page
    assert "ddp+network[1]" in page
    assert 'data-set="ddp+network(bandwidth=1250000.0, latency=0.001)"' in page
