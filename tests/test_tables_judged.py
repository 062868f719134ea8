"""What tables show of noise floors, waived work, and sets that were stopped when they were decided."""

from effbench.analysis.noise import TWIN
from effbench.report.console import Screen
from effbench.report.formats.as_console import to_console
from effbench.report.formats.as_html import to_html
from effbench.report.html.page import report
from effbench.report.tables import comparison_table
from record_factory import record, several

USUAL = [0.80, 0.82, 0.81]
NOISY = [*several("", USUAL), *(record(seed=TWIN + s, value=v, key=f"twin {s}") for s, v in enumerate(USUAL))]


def table(records, **options):
    (found,) = comparison_table(records, **options)
    return found


def test_what_lies_under_the_floor_is_grey():
    records = several("", USUAL) + several("ema", [0.81, 0.82, 0.80]) + several("sam", [0.95, 0.93, 0.90])
    found = table(records, aa=NOISY)
    assert {row.cells[0]: row.is_under_floor for row in found.rows} == {"baseline": False, "sam": False, "ema": True}
    assert [row.values["under_floor"] for row in found.rows] == [False, False, True]
    line = next(line for line in to_console([found], Screen(colour=True)).splitlines() if "ema" in line)
    assert line.startswith("\033[2m")
    assert '<tr class="no-evidence under-floor">' in to_html([found])
    assert any(remark.text.startswith("grey: no larger than 0.019, which") for remark in found.remarks)
    assert not any(row.is_under_floor for row in table(records).rows)


def test_work_is_waived_where_equal_steps_were_run_too():
    records = several("", USUAL, steps=400) + several("sam", [0.79, 0.80, 0.80], steps=200)
    assert "waived" not in [column.key for column in table(records).columns]
    free = {"budget": "400 steps", "clock": "steps", "steps": 400}
    both = records + several("", USUAL, **free) + several("sam", [0.83, 0.84, 0.84], **free)
    paying, _ = tables = comparison_table(both)
    place = [column.key for column in paying.columns].index("waived")
    assert paying.columns[place].title == "Δ, own work waived"
    assert paying.rows[1].cells[place].startswith("+0.027 [+0.012, +0.041]")
    assert paying.rows[0].cells[place] == "—"
    for page in (to_html(tables), report(both)):
        assert page.count(">Δ, own work waived</th>") == 1  # not in the table of equal steps
        assert ">+0.027 [+0.012, +0.041]</td>" in page


def test_a_decided_set_says_so():
    records = several("", USUAL) + several("ema", [0.90, 0.921, 0.91])
    why = {"status": "not_started", "stop_reason": "decided", "reason": "better after 3 of 4 seeds"}
    found = table([*records, record("", seed=3), record("ema", seed=3, **why)])
    row = next(row for row in found.rows if row.cells[0] == "ema")
    assert (row.cells[1], row.values["decided"]) == ("3/3", "better after 3 of 4 seeds")
    assert any(remark.text.endswith("which holds however often one looks") for remark in found.remarks)
    assert not any("Holm)" in remark.text for remark in found.remarks)
