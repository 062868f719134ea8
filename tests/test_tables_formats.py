"""Every format shows every name as it is, and nothing that a name contains is obeyed."""
# ruff: noqa: RUF001 - a multiplication sign is one here

import csv
import io
import json
import math
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest
from wcwidth import wcswidth

from effbench.report.console import Screen, display_width
from effbench.report.formats import formats
from effbench.report.formats.as_console import to_console
from effbench.report.formats.as_csv import to_csv
from effbench.report.formats.as_html import to_html
from effbench.report.formats.as_json import to_json
from effbench.report.formats.as_latex import to_latex
from effbench.report.formats.as_markdown import to_markdown
from effbench.report.layouts import laid_out
from effbench.report.tables import comparison_table
from record_factory import record, several

BASELINE = [0.80, 0.82, 0.81]
IDS = ["42924e28", "20200407_2", "1.10", "0012", "1E10", "None", "NA", "nan", "0012e3"]
HOSTILE = [
    "a|b",
    'mix,up "v2"',
    "line\nbreak",
    "<script>alert(1)</script>",
    "$ { } ~ ^ \\ # % & _",
    "\x1b[31mred",
    "a\\|b",
]
PLAIN = Screen()


def tables(*names):
    records = several("", BASELINE)
    for name in names:
        records += several(name, [0.85, 0.87, 0.89])
    return comparison_table(records)


def rows_of(markdown):
    return [line for line in markdown.splitlines() if line.startswith("|")]


GOLDEN = """\
mnist1d_cnn, 5s reference  test accuracy, more is better, 3 seeds

technique    n  accuracy       Δ vs baseline            verdict   s to target        examples/s    peak MiB  set-up s
─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
baseline   3/3  0.810 ± 0.025  —                        —         4.63 [4.49, 4.77]  2561          31.5      0.400
ema        3/3  0.870 ± 0.050  +0.060 [+0.017, +0.103]  better ★  4.31 [4.07, 4.56]  2561 (1.00×)  31.5      0.400
sam        1/3  0.9000         +0.100                   breaks    1/3 reached        2560 (1.00×)  31.5      0.400

not scored
  sam: diverged, seeds 1, 2: the loss was nan at step 7

how to read it
  ±: half of the 95 % interval of the mean over seeds (Student's t)
  Δ: paired by seed, with its 95 % interval; the verdict follows from it
  ★: better than the baseline, and not told apart from the best mean of the complete sets
  sets with missing seeds stand below complete ones: the seeds that are left may be the lucky ones
  target: accuracy 0.75 on validation
  to target: interpolated between evaluations; geometric mean and its 95 % interval
  examples/s: geometric mean, without set-up; ×: over that of the baseline, by seed
  peak MiB: of the seed with most
  set-up s: geometric mean of what comes before the first step
  budgets are counted in seconds at the prices of the reference machine, evaluation left out
  Test CPU, 2 cores, Linux x86_64; 1 thread a trial, 2 at a time; effbench 0.1.0, torch 2.13.0"""


def test_the_console_table_as_a_person_sees_it():
    records = several("", BASELINE) + several("ema", [0.85, 0.87, 0.89]) + several("sam", [0.9])
    records += [record("sam", seed=s, status="diverged", reason="the loss was nan at step 7") for s in (1, 2)]
    assert to_console(comparison_table(records), PLAIN) == GOLDEN


def test_columns_align_by_display_width():
    table = to_console(tables("混合精度", "amp"), PLAIN).splitlines()[2:7]
    starts = {wcswidth(line[: line.index("3/3")]) for line in table[2:]}
    assert len(starts) == 1
    assert {wcswidth(line[: line.index("0.8")]) for line in table[2:]} == {
        wcswidth(table[0][: table[0].index("accuracy")])
    }


@pytest.mark.parametrize("name", ["markdown", "csv", "latex", "console", "html", "json"])
def test_ids_are_never_taken_for_numbers(name):
    text = formats()[name](tables(*IDS)).replace(r"20200407\_2", "20200407_2")
    assert [each for each in IDS if each not in text] == []


def test_markdown_rows_keep_their_columns():
    lines = rows_of(to_markdown(tables(*HOSTILE)))
    assert len(lines) == 2 + 1 + len(HOSTILE)
    # As GitHub splits: a backslash takes the next character with it.
    assert {len(re.findall(r"\\.|(\|)", line)) - len(re.findall(r"\\.", line)) for line in lines} == {10}
    assert any("line<br>break" in line for line in lines)
    assert any(r"\<script>" in line for line in lines)
    assert any(r"a\\\|b" in line for line in lines)


def test_csv_reads_back_as_it_was():
    names = [*IDS, *HOSTILE]
    records = several("", [0.1 + 0.2]) + [r for name in names for r in several(name, [0.1 + 0.2])]
    found = list(csv.DictReader(io.StringIO(to_csv(comparison_table(records)), newline="")))
    assert {row["technique"] for row in found} == {"baseline", *names}
    assert {float(row["mean"]) for row in found} == {0.1 + 0.2}
    assert {row["mean_low"] for row in found} == {""}
    assert {json.loads(row["techniques"]).popitem()[0] for row in found[1:]} == set(names)


def test_csv_has_every_workload_under_one_header():
    text = to_csv(comparison_table(several("", BASELINE) + several("", BASELINE, workload="kjv_gpt", metric="loss")))
    assert [row["metric"] for row in csv.DictReader(io.StringIO(text))] == ["accuracy", "loss"]


def test_json_is_a_strict_list_of_objects():
    found = json.loads(to_json(tables("ema")), parse_constant=lambda constant: pytest.fail(constant))
    assert [row["technique"] for row in found] == ["baseline", "ema"]
    assert found[1]["difference_low"] < found[1]["difference"] < found[1]["difference_high"]
    assert found[0]["difference"] is None


def test_latex_has_no_bare_special_character():
    text = to_latex(tables("label_smoothing", *HOSTILE))
    assert r"label\_smoothing" in text
    body = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    for known in (r"\\[\\{}$&#%_,]", r"\$(\\[a-zA-Z]+|-)\$", r" & ", r"\\[a-zA-Z]+(\{[a-z0-9]*\})?", r"[{}]"):
        body = re.sub(known, "", body)
    assert re.findall(r"[\\$#%_~^&]", body) == []
    assert body.isascii()


@pytest.mark.skipif(
    shutil.which("pdflatex") is None, reason="there is no LaTeX here; the check above does not need one"
)
def test_latex_compiles(tmp_path):
    if subprocess.run(["kpsewhich", "booktabs.sty", "siunitx.sty"], capture_output=True, check=False).returncode:
        pytest.skip("this LaTeX has no booktabs or no siunitx")
    found = tables("label_smoothing", "acc (%)", "p50 & p90", "#params", *HOSTILE)
    odd = comparison_table(several("", BASELINE, target=0.9) + several("amp", [0.5, 0.5, math.nan], target=0.9))
    text = to_latex([*found, *laid_out(found, style="paper"), *laid_out(odd, by="workload"), *odd])
    packages = "\\usepackage{booktabs,graphicx,siunitx}"
    page = f"\\documentclass{{article}}{packages}\\begin{{document}}\n{text}\n\\end{{document}}"
    (tmp_path / "t.tex").write_text(page, encoding="utf-8")
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
    assert b"Overfull" not in done.stdout  # wide tables are made as narrow as the page


def test_latex_aligns_numbers_and_states_how_they_were_made():
    (table,) = laid_out(tables("ema"), style="paper")
    text = to_latex([table])
    assert "n = 3 seeds" in text
    assert "Budget of a trial: 5s reference, counted in seconds at the prices of the reference machine" in text
    assert "Test CPU, 2 cores, Linux x86\\_64" in text
    assert r"{lrS[table-format=1.3]@{\,}S[table-format=1.3]S[table-format=+1.3]rr}" in text
    assert r"\textbf{ema} & 3/3 & 0.870 & 0.050 & +0.060 & {[}+0.017, +0.103{]} & 0.027 \\" in text


class Reader(HTMLParser):
    """Collects the tags, and the text of the cells."""

    def __init__(self):
        super().__init__()
        self.tags, self.cells, self.inside = [], [], False

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag == "td":
            self.cells.append("")
            self.inside = True

    def handle_endtag(self, tag):
        self.inside = self.inside and tag != "td"

    def handle_data(self, data):
        if self.inside:
            self.cells[-1] += data


def test_html_shows_names_and_obeys_none():
    reader = Reader()
    reader.feed(to_html(tables(*HOSTILE, *IDS)))
    assert "script" not in reader.tags
    assert {"<script>alert(1)</script>", "a|b", "$ { } ~ ^ \\ # % & _", *IDS} <= set(reader.cells)
    assert reader.tags.count("tr") == 2 + len(HOSTILE) + len(IDS)
    assert reader.tags.count("svg") == len(HOSTILE) + len(IDS)  # each difference is drawn


def test_html_needs_no_network():
    assert re.findall(r"(?:src|href)\s*=|url\(|@import|https?:", to_html(tables("ema"))) == []


def test_html_draws_an_interval_where_it_lies():
    text = to_html(tables("ema"))
    (low, high) = re.search(r'<line x1="([\d.-]+)" y1="0" x2="([\d.-]+)"', text).groups()
    assert (float(high), float(low)) == (60.0, pytest.approx(60 * 0.0170 / 0.1030, abs=0.1))


def test_colours_are_for_terminals_alone():
    coloured = to_console(tables("ema"), Screen(colour=True))
    assert "\033[1;32mbetter ★\033[0m" in coloured
    assert re.sub(r"\033\[[\d;]*m", "", coloured) == to_console(tables("ema"), PLAIN)
    assert "\033" not in to_console(tables("\x1b[31mred"), PLAIN)
    assert r"\x1b[31mred" in to_console(tables("\x1b[31mred"), PLAIN)


def test_tables_align_in_ascii_too():
    text = to_console(tables("混合精度", "ema"), Screen(encoding="ascii"))
    assert text.isascii()
    lines = text.splitlines()[2:7]
    assert len({line.index("3/3") for line in lines[2:]}) == 1
    assert len({line.index("+-") for line in lines[2:]}) == 1


@pytest.mark.parametrize("width", [60, 90, 110, 150])
def test_a_narrow_console_loses_optional_columns_and_says_so(width):
    names = ["ema", "label_smoothing", "progressive_resizing", "selective_backprop"]
    records = several("", BASELINE) + several({name: {} for name in names}, [0.85, 0.87, 0.89])
    text = to_console(comparison_table(records), Screen(width=width))
    widest = max(map(display_width, text.splitlines()))
    assert widest <= max(width, 90)  # what is needed is never cut off
    assert ("No room for:" in text) == (width < 150)
    assert "+selective_backprop" in text
    assert "verdict" in text


def test_a_narrow_console_loses_the_same_columns_of_all_tables():
    records = several("", BASELINE, workload="one") + several("ema", [0.85, 0.87, 0.89], workload="one")
    both = records + several("", [0.8, 0.81], workload="two") + several("averaged_weights", [0.8, 0.9], workload="two")
    alone = to_console(comparison_table(records), Screen(width=108))
    assert "peak MiB" in alone.splitlines()[2]
    text = to_console(comparison_table(both), Screen(width=108))
    heads = [line for line in text.splitlines() if line.startswith("technique")]
    assert [head.split()[-1] for head in heads] == ["examples/s", "examples/s"]
    assert text.count("No room for: peak MiB, set-up s.") == text.count("peak MiB") == 1  # what is gone needs no note


def test_no_tables_make_no_text_and_no_error():
    assert to_csv([]) == ""
    assert json.loads(to_json([])) == []
    assert to_console([], PLAIN) == ""
    assert "<main>" in to_html([])
