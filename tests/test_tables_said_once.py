"""What is to be said of all tables stands below the last, once; what is particular to one stands below it."""

import pytest

from effbench.report.console import Screen
from effbench.report.formats.as_console import to_console
from effbench.report.formats.as_html import to_html
from effbench.report.formats.as_latex import to_latex
from effbench.report.formats.as_markdown import to_markdown
from effbench.report.said_once import said_once
from effbench.report.table import Remark, Table
from effbench.report.tables import comparison_table
from record_factory import record, several

PEOPLE = {"console": lambda tables: to_console(tables, Screen()), "html": to_html}
PEOPLE |= {"latex": to_latex, "markdown": to_markdown}
USUAL, BETTER = [0.80, 0.82, 0.81], [0.85, 0.87, 0.89]


def records(workload, *sets, **changes):
    found = several("", USUAL, workload=workload, **changes)
    return found + [r for name in sets for r in several(name, BETTER, workload=workload, **changes)]


def lines(blocks):
    return {block.title: block.lines for block in blocks}


def table(*remarks):
    return Table("", "", (), (), tuple(Remark(*remark) for remark in remarks))


def test_a_table_alone_says_everything_below_itself():
    said = said_once([table(("note", "±: half", "mean"), ("problem", "sam: failed"), ("caveat", "one seed"))])
    assert said.at_the_end == ()
    assert lines(said.below[0]) == {
        "not scored": ("sam: failed",),
        "caveats": ("one seed",),
        "how to read it": ("±: half",),
    }


def test_notes_are_of_all_tables_unless_one_says_otherwise():
    first = table(("note", "±: half", "mean"), ("note", "target: 0.9", "target"), ("note", "made here", "machine"))
    second = table(("note", "±: half", "mean"), ("note", "★: best", "best"), ("note", "target: 0.8", "target"))
    said = said_once([first, second])
    assert lines(said.at_the_end) == {"how to read the tables": ("±: half", "★: best", "made here")}
    assert [lines(below) for below in said.below] == [{"": ("target: 0.9",)}, {"": ("target: 0.8",)}]


def test_a_caveat_is_of_all_tables_only_where_each_has_it():
    said = said_once([table(("caveat", "busy"), ("caveat", "one seed")), table(("caveat", "busy"))])
    assert lines(said.at_the_end) == {"caveats of all tables": ("busy",)}
    assert [lines(below) for below in said.below] == [{"caveats": ("one seed",)}, {}]


def test_what_was_not_scored_stays_below_its_table():
    said = said_once([table(("problem", "sam: failed"))] * 2)
    assert [lines(below) for below in said.below] == [{"not scored": ("sam: failed",)}] * 2


@pytest.mark.parametrize("name", PEOPLE)
def test_every_format_for_people_says_the_same_once(name):
    tables = comparison_table(records("one", "ema") + records("two", "ema", target=0.7))
    text = PEOPLE[name](tables)
    for once in ("the verdict follows from it", "interpolated between evaluations", "set-up s: geometric mean"):
        assert text.count(once) == 1, once
    ends = [text.index(said) for said in ("target: accuracy 0.75", "target: accuracy 0.7 ", "interpolated between")]
    assert ends == sorted(ends)
    assert text.rindex("target: accuracy 0.7") < ends[2]
    assert text.lower().count("how to read the tables") == 1
    alone = PEOPLE[name](tables[:1])
    assert alone.count("interpolated between") == alone.count("target: accuracy 0.75") == 1
    assert "tables" not in alone.lower().partition("how to read it")[2]


def test_the_number_of_comparisons_stands_where_it_differs():
    alike = to_markdown(comparison_table(records("one", "ema", "sam") + records("two", "ema", "lion")))
    assert alike.count("widened for 2 comparisons (Holm)") == 1
    apart = to_markdown(comparison_table(records("one", "ema", "sam") + records("two", "ema", "sam", "lion")))
    assert apart.index("widened for 2 comparisons") < apart.index("### two") < apart.index("widened for 3 comparisons")
    assert apart.index("widened for 3 comparisons") < apart.index("### How to read the tables")


def test_tables_keep_their_captions_in_latex_and_notes_do_not_repeat_them():
    text = to_latex(comparison_table(records("one", "ema") + records("two", "ema")))
    assert text.count(r"half of its 95 \% interval") == text.count("evaluation left out") == text.count("Test CPU") == 2
    assert [line for line in text.splitlines() if r"\label" in line] == [
        r"  \label{tab:one-5s-reference}",
        r"  \label{tab:two-5s-reference}",
    ]
    assert text.count(r"\caption{") == text.count(r"\end{table}") == 2
    assert text.index("How to read the tables:") > text.rindex(r"\end{table}")
    assert r"Test accuracy on two (more is better): mean over n = 3 seeds and half of its 95 \% interval" in text


def test_reasons_stand_below_the_table_of_their_trials():
    found = [*records("one"), *records("two"), record("sam", workload="two", status="failed", reason="no memory")]
    text = to_console(comparison_table(found), Screen())
    assert text.index("no memory") > text.index("two, 5s reference")
    assert text.index("no memory") < text.index("how to read the tables")
