"""Names of points lie over no other name, and drawings with wide intervals or many sets stay readable."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effbench.analysis.comparison import compare
from effbench.analysis.pareto import fronts
from effbench.report import paper
from effbench.report.figures.curves import curves, shared_slots
from effbench.report.figures.figure import Axis, Chart, Dot, Effect, Forest
from effbench.report.figures.kinds import KINDS
from effbench.report.figures.labels import place
from effbench.report.figures.pareto import pareto
from effbench.report.html.plots import plot
from effbench.report.words import shortened
from record_factory import several

FIELD = (60.0, 8.0, 408.0, 230.0)
PLACES = st.tuples(st.floats(70, 400), st.floats(20, 220))


def overlap(one, other):
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


@given(st.lists(PLACES, min_size=1, max_size=16))
def test_no_name_lies_over_another_or_outside(points):
    boxes = [label.box for label in place(points, [(100.0, 12.0)] * len(points), [], FIELD) if label]
    assert boxes
    assert not any(overlap(one, other) for one, other in itertools.combinations(boxes, 2))
    assert all(FIELD[0] <= left and right <= FIELD[2] for left, _, right, _ in boxes)
    assert all(FIELD[1] <= top and bottom <= FIELD[3] for _, top, _, bottom in boxes)


def test_long_names_keep_their_ends_by_which_they_differ():
    assert shortened("ssp(staleness=5)", 28) == "ssp(staleness=5)"
    found = [shortened(f"emulated_network[2]+ssp(processes=5, staleness={s})", 28) for s in (0, 5)]
    assert found == [
        "emulated_ne\N{HORIZONTAL ELLIPSIS}=5, staleness=0)",
        "emulated_ne\N{HORIZONTAL ELLIPSIS}=5, staleness=5)",
    ]
    assert {len(each) for each in found} == {28}


def test_a_name_keeps_off_points_and_gets_a_line_where_it_is_far():
    around = [(200.0 + 25.0 * x, 100.0 + 8.0 * y) for x in range(-3, 4) for y in range(-3, 4) if (x, y) != (0, 0)]
    (label,) = place([(200.0, 100.0)], [(60.0, 12.0)], around, FIELD)
    left, top, right, bottom = label.box
    assert not any(left < x < right and top < y < bottom for x, y in around)
    assert label.leader is not None
    (near,) = place([(200.0, 100.0)], [(60.0, 12.0)], [], FIELD)
    assert near.leader is None


def test_what_does_not_fit_has_no_name():
    assert place([(100.0, 100.0)], [(500.0, 12.0)], [], FIELD) == [None]


def crowded(sets=14):
    """A front of so many sets that lie close to each other."""
    dots = [Dot(f"technique_number_{i}", 1, 5.0 + 0.01 * i, 0.8 + 0.002 * i, ringed=True) for i in range(sets)]
    return Chart(
        "t", "a", Axis("training, s", low=4.9, high=5.3), Axis("accuracy", low=0.78, high=0.84), dots=tuple(dots)
    )


def test_a_crowded_front_is_named_in_the_page_without_overlaps():
    drawn = plot(crowded())
    field = drawn["layout"]["xaxis"]["range"], drawn["layout"]["yaxis"]["range"]
    boxes = []
    for each in drawn["layout"]["annotations"]:
        (x, y) = ((each[name] - low) / (high - low) for name, (low, high) in zip("xy", field, strict=True))
        across, down = each.get("ax", each.get("xshift")), each.get("ay", -each.get("yshift", 0))
        left = 300.0 * x + across - (5.9 * len(each["text"]) if each["xanchor"] == "right" else 0.0)
        top = 228.0 * (1.0 - y) + down - 6.0
        boxes.append((left, top, left + 5.8 * len(each["text"]), top + 12.0))
    assert len(boxes) == 14
    assert not any(overlap(one, other) for one, other in itertools.combinations(boxes, 2))
    assert [trace["mode"] for trace in drawn["data"]] == ["lines", "markers"]  # the stairs, and the front
    assert drawn["data"][1]["marker"]["symbol"] == "circle-open-dot"


def test_a_crowded_front_is_named_on_paper_too(tmp_path):
    pytest.importorskip("matplotlib", reason="figures for papers need matplotlib: pip install 'effbench[plots]'")
    paper.save([crowded()], tmp_path / "f.svg")
    text = (tmp_path / "f.svg").read_text(encoding="utf-8")
    assert all(f">technique_number_{i}<" in text for i in range(14))


def test_one_wide_interval_does_not_squeeze_a_front():
    records = several("", [0.80, 0.82, 0.81]) + several("ema", [0.85, 0.87, 0.86])
    for each, factor in zip(records, (0.1, 1.0, 4.0, 1.0, 1.01, 1.02), strict=True):
        each.ledger = {"forward_backward": 4.0 * factor}
    (comparison,) = compare(records)
    axis = pareto(fronts(comparison)[0]).x
    assert (axis.low, axis.high) == pytest.approx(
        (3.074, 7.766)
    )  # the interval of the means, 4.04 and 6.8, is [-13, 27]


def test_a_set_has_one_colour_in_all_drawings_that_can_share_them():
    records = several("", [0.80, 0.82, 0.81]) + several("a", [0.85, 0.87, 0.86]) + several("b", [0.81, 0.82, 0.80])
    records += several("", [0.80, 0.82, 0.81], workload="w") + several("a", [0.70, 0.72, 0.71], workload="w")
    records += several("b", [0.81, 0.84, 0.80], workload="w")
    comparisons = compare(records)
    slots = shared_slots(comparisons)
    seen = [{line.label: line.slot for line in curves(each, slots=slots).lines} for each in comparisons]
    assert seen[0] == seen[1] == {"baseline": 0, "a": 1, "b": 2}
    many = [r for i in range(9) for r in several(f"t{i}", [0.8, 0.82, 0.81], workload=f"w{i // 3}")]
    many += [r for i in range(3) for r in several("", [0.80, 0.82, 0.83], workload=f"w{i}")]
    assert shared_slots(compare(many)) == {}


def test_a_mark_beyond_the_edge_has_an_arrow():
    rows = tuple(
        Effect(*each) for each in (("a", 0.1, 0.0, 0.2, "better", ""), ("b", -9.0, None, None, "incomplete", ""))
    )
    found = plot(Forest("t", "a", Axis("x"), rows))
    beyond = [trace for trace in found["data"] if trace.get("text") == ["\N{BLACK LEFT-POINTING SMALL TRIANGLE}"]]
    assert [(trace["y"], trace["x"]) for trace in beyond] == [([1], [found["layout"]["xaxis"]["range"][0]])]


def test_sets_that_all_cost_the_same_have_no_front_to_draw():
    records = several("", [0.80, 0.82, 0.81]) + several("ema", [0.85, 0.87, 0.86]) + several("sam", [0.7, 0.71, 0.72])
    drawn = [figure.x.title for figure in KINDS["pareto"](compare(records))]
    assert drawn == []  # all took 5 s and 31.5 MiB
    for each in records:
        each.peak_memory_mib = 30.0 + len(each.label)
    assert [figure.x.title for figure in KINDS["pareto"](compare(records))] == ["peak memory, MiB"]


def test_a_set_at_one_budget_alone_is_no_ladder():
    records = [
        r for budget in ("5s reference", "10s reference") for r in several("", [0.80, 0.82, 0.81], budget=budget)
    ]
    records += [r for b in ("5s reference", "10s reference") for r in several("ema", [0.85, 0.87, 0.89], budget=b)]
    records += several("sam", [0.9, 0.91, 0.92])
    (figure,) = KINDS["ladder"](compare(records))
    assert [line.label for line in figure.lines] == ["ema"]
    assert figure.x.title == "budget, reference-seconds"
