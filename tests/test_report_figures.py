"""Figures show the numbers of the comparison, on axes with units; the page and matplotlib draw the same ones."""

import json
import math

import pytest

from effbench import cli, verbs
from effbench.analysis.comparison import compare
from effbench.errors import EffbenchError, UnknownName
from effbench.report import paper
from effbench.report.figures.curves import curves
from effbench.report.figures.forest import forest
from effbench.report.figures.kinds import KINDS
from effbench.report.figures.ledger import ledger
from effbench.report.html.plots import TEMPLATE, plot, text, to_json
from effbench.store import Store
from many_records import many
from record_factory import several

BASELINE = [0.80, 0.82, 0.81]


@pytest.fixture(scope="module")
def comparisons():
    crossed = [{"ema": {}}, {"sam": {}}, {"ema": {}, "sam": {}}]
    records = several("", BASELINE) + [
        r for i, each in enumerate(crossed) for r in several(each, [0.8 + i / 50, 0.83 + i / 60, 0.82])
    ]
    return compare(
        [*many(3, 3, budgets=(5.0, 10.0), workloads=2), *(r for r in records if not setattr(r, "workload", "crossed"))]
    )


def test_curves_are_means_over_seeds_at_equal_shares_and_times():
    (comparison,) = compare(several("", BASELINE) + several("ema", [0.85, 0.87, 0.89]))
    figure = curves(comparison)
    baseline, ema = figure.lines
    assert (baseline.label, baseline.slot, ema.slot) == ("baseline", 0, 1)
    assert baseline.x == pytest.approx((20, 40, 60, 80, 100))
    assert ema.y == pytest.approx([0.87 * share for share in (0.2, 0.4, 0.6, 0.8, 1.0)])
    half = 4.302652729696142 * 0.02 / math.sqrt(3)  # Student's t with 2 degrees of freedom
    assert (ema.low[-1], ema.high[-1]) == pytest.approx((0.87 - half, 0.87 + half))
    assert (figure.level, figure.x.title) == (0.75, "share of the budget, %")
    seconds = curves(comparison, "time").lines[0].x
    assert seconds[-1] == pytest.approx(0.2 + 4.0 + 0.8)  # the lines of the ledger that are on the clock


def test_curves_of_unequal_evaluations_meet_on_one_grid():
    from record_factory import curve

    records = several("", BASELINE)
    records[0].curve = curve(0.8, points=10)
    (line,) = curves(compare(records)[0]).lines
    assert line.x == pytest.approx(range(20, 101, 10))
    assert line.y[-1] == pytest.approx(0.81)


def test_curves_of_very_large_numbers_have_bands():
    (comparison,) = compare(several("", [1e200, 2e200, 3e200]))
    (line,) = curves(comparison).lines
    half = 4.302652729696142 * 1e200 / math.sqrt(3)
    assert (line.low[-1], line.y[-1], line.high[-1]) == pytest.approx((2e200 - half, 2e200, 2e200 + half))


def test_a_forest_keeps_the_best_and_the_worst():
    records = several("", BASELINE) + [
        r for i in range(30) for r in several(f"t{i:02}", [0.7 + i / 200, 0.72 + i / 200, 0.73])
    ]
    (comparison,) = compare(records)
    figure = forest(comparison, most=9)
    assert (len(figure.rows), figure.left_out) == (9, 21)
    assert figure.rows[0].label == "t29"
    assert figure.rows[-1].label == "t00"


def test_a_ledger_adds_up_to_the_wall_time():
    (comparison,) = compare(several("", BASELINE))
    figure = ledger(comparison)
    assert figure.parts == ("forward_backward", "update", "data", "setup")
    assert sum(figure.rows[0][1]) == pytest.approx(5.4)
    records = several("", BASELINE)
    records[0].ledger = {"data": math.inf}  # as no trial of ours has
    assert ledger(compare(records)[0]).rows[0][1] == pytest.approx(figure.rows[0][1])


def test_every_kind_has_figures_and_plotly_takes_them(comparisons):
    import plotly.graph_objects as go

    for kind, figures_of in KINDS.items():
        figures = figures_of(comparisons)
        assert figures, kind
        for figure in figures:
            drawn = json.loads(to_json(plot(figure)))
            drawn["layout"]["template"] = TEMPLATE
            found = go.Figure(drawn)  # it refuses what Plotly does not know
            assert found.layout.xaxis.title.text == text(figure.x.title)
            assert len(found.data) >= 1
    assert set(KINDS) == set(verbs.FIGURES)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_papers_get_vectors_with_units_and_the_same_bytes_again(kind, comparisons, tmp_path):
    pytest.importorskip("matplotlib", reason="figures for papers need matplotlib: pip install 'effbench[plots]'")
    figures = KINDS[kind](comparisons)
    for name in ("a.svg", "b.svg"):
        paper.save(figures, tmp_path / name)
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert text == (tmp_path / "b.svg").read_text(encoding="utf-8")
    assert f">{figures[0].x.title}<" in text
    assert f">{figures[0].title}<" in text


@pytest.mark.parametrize("kind", ["curves", "forest", "ledger", "pareto", "profiles"])
def test_names_that_no_font_has_are_shown_as_they_are_written(kind, tmp_path):
    pytest.importorskip("matplotlib", reason="figures for papers need matplotlib: pip install 'effbench[plots]'")
    records = several("", BASELINE) + several("a\nb\x1b\ud800", [0.85, 0.87, 0.89], peak_memory_mib=40.0)
    paper.save(KINDS[kind](compare(records)), file := tmp_path / f"{kind}.svg")
    assert r"a\nb\x1b\ud800" in file.read_text(encoding="utf-8")


def test_the_command_draws_pdf_and_png(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib", reason="figures for papers need matplotlib: pip install 'effbench[plots]'")
    monkeypatch.chdir(tmp_path)
    store = Store("results/quick")
    store.check_writable()
    for each in several("", BASELINE) + several("$x_1$", [0.85, 0.87, 0.89]):
        store.append(each)
    assert cli.main(["plot", "forest"]) == 0
    assert (tmp_path / "forest.pdf").read_bytes().startswith(b"%PDF")
    assert cli.main(["plot", "curves", "-o", "c.png"]) == 0
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    assert "c.png: 1 figure. Mean accuracy on validation" in capsys.readouterr().out
    assert cli.main(["plot", "forst"]) == 2
    assert "did you mean 'forest'?" in capsys.readouterr().err


def test_what_cannot_be_drawn_is_refused(comparisons, tmp_path):
    with pytest.raises(UnknownName, match=r"there is no kind of figure '\.gif'"):
        paper.save(KINDS["forest"](comparisons), tmp_path / "f.gif")
    with pytest.raises(EffbenchError, match="nothing for such a figure"):
        paper.save([], tmp_path / "f.pdf")
