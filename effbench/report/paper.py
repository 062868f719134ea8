"""Figures for papers, drawn by matplotlib: vector or pixels, colour-blind safe, with axes, units and intervals."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from effbench.errors import EffbenchError, UnknownName
from effbench.report.console import visible
from effbench.report.figures import labels
from effbench.report.figures.figure import Axis, Chart, Dot, Figure, Forest, Stacks
from effbench.report.figures.ledger import title
from effbench.report.files import write
from effbench.report.palette import LIGHT, SLOTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ENDINGS = (".pdf", ".svg", ".png")

#: Slot -> its dash, which tells lines apart without colour; the baseline's first.
DASHES: tuple[Any, ...] = (
    *("-", "-", (0, (5, 2)), (0, (2.5, 2)), (0, (0.1, 2)), (0, (6, 2, 0.1, 2)), (0, (4, 2, 0.1, 2, 0.1, 2))),
    *((0, (1.5, 2.5)), "-"),
)
MARKS = {"better": "^", "worse": "v", "breaks": "X"}
_STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e6ea",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 7,
    "pdf.fonttype": 42,  # text that can be searched and edited
    "svg.fonttype": "none",
    "svg.hashsalt": "effbench",  # the same records give the same file
    "text.parse_math": False,  # a name with dollar signs is a name
}
_SMALL, _CHARACTER = 6.0, 3.5  # points of the names of dots, and the width of one of their characters, roughly
_WIDTH = 3.4  # inches of a drawing: a column of most journals


def save(figures: Sequence[Figure], file: Path) -> None:
    """Draw figures side by side into one file.

    Raises:
        UnknownName: the ending of the file is none that can be written.
        EffbenchError: matplotlib is not installed, there is nothing to draw, or the file cannot be written.
    """
    if file.suffix not in ENDINGS:
        raise UnknownName("kind of figure", file.suffix, ENDINGS, where=f"{file}: ")
    if not figures:
        raise EffbenchError("these records have nothing for such a figure")
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure as Canvas
    except ImportError:
        raise EffbenchError("figures for papers need matplotlib; run: pip install 'effbench[plots]'") from None
    with mpl.rc_context(_STYLE):
        columns = min(3, len(figures))
        rows = -(-len(figures) // columns)
        heights = [_height(figure) for figure in figures]
        canvas = Canvas(figsize=(_WIDTH * columns, rows * max(heights)), layout="constrained")
        places = canvas.subplots(rows, columns, squeeze=False)
        for place, figure in zip(places.flat, figures, strict=False):
            draw(figure, place)
        for place in places.flat[len(figures) :]:
            place.remove()
        if isinstance(figures[0], Stacks):  # all have the same parts
            canvas.legend(*places.flat[0].get_legend_handles_labels(), ncols=3, loc="outside lower center")
        canvas.draw_without_rendering()  # lays out the axes, which names are placed by
        if any(isinstance(figure, Chart) and figure.dots for figure in figures):
            canvas.set_layout_engine("none")
            for place, figure in zip(places.flat, figures, strict=False):
                name_dots(figure.dots if isinstance(figure, Chart) else (), place)
        metadata = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}.get(file.suffix)
        drawn = io.BytesIO()  # a file that could be written in part only would make matplotlib stumble
        canvas.savefig(drawn, format=file.suffix.removeprefix("."), dpi=300, metadata=metadata)
    write(file, drawn.getvalue())


def _height(figure: Figure) -> float:
    """Return the inches that a figure needs."""
    if isinstance(figure, Chart):
        return 2.6 + 0.14 * -(-len(figure.lines) // 2)
    return 1.2 + 0.2 * len(figure.rows)


def draw(figure: Figure, place: Axes) -> None:
    """Draw one figure on matplotlib's axes."""
    place.set_title(visible(figure.title), fontsize=8, loc="left", fontweight="bold")
    if isinstance(figure, Chart):
        _chart(figure, place)
    elif isinstance(figure, Forest):
        _forest(figure, place)
    else:
        _stacks(figure, place)


def _chart(figure: Chart, place: Axes) -> None:
    for line in figure.lines:
        wide = line.slot == 0  # the baseline's line is the widest, and lies below the others
        look = {"color": SLOTS[line.slot], "linestyle": DASHES[line.slot], "dash_capstyle": "round"}
        look |= {"linewidth": 2.6 if wide else 1.4, "alpha": 0.7 if wide else 1.0, "zorder": 2.0 if wide else 2.5}
        style = "steps-post" if line.stepped else "default"
        place.plot(line.x, line.y, drawstyle=style, label=visible(line.label), **look)
        if line.low:
            place.fill_between(line.x, line.low, line.high, color=SLOTS[line.slot], alpha=0.14, linewidth=0)
    for dot in figure.dots:
        _dot(dot, place)
    front = sorted((dot.x, dot.y) for dot in figure.dots if dot.ringed)
    if len(front) > 1:
        look = {"color": SLOTS[1], "linewidth": 0.7, "alpha": 0.4}
        place.plot([x for x, _ in front], [y for _, y in front], drawstyle="steps-post", **look)
    if figure.level is not None:
        place.axhline(
            figure.level, color=LIGHT["quiet"], linestyle=(0, (4, 3)), linewidth=0.9, label=visible(figure.level_title)
        )
    if figure.lines:
        place.legend(ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.2), handlelength=2.8)
    _axis(figure.x, place, "x")
    _axis(figure.y, place, "y")


def _dot(dot: Dot, place: Axes) -> None:
    """Draw a point with its intervals; those that nothing beats stand out."""
    spans = [
        None if ends is None else [[at - ends[0]], [ends[1] - at]]
        for at, ends in ((dot.x, dot.x_interval), (dot.y, dot.y_interval))
    ]
    named = dot.ringed or dot.slot == 0
    _, _, lines = place.errorbar(
        dot.x,
        dot.y,
        xerr=spans[0],
        yerr=spans[1],
        fmt="o",
        color=SLOTS[dot.slot],
        linewidth=0.8,
        alpha=1.0 if named else 0.45,
        markersize=4.0 if named else 2.5,
        zorder=2.5 if named else 2.0,
    )
    for line in lines:
        line.set_alpha(0.6 if named else 0.15)


def name_dots(dots: Sequence[Dot], place: Axes) -> None:
    """Write the names of the points that stand out where they lie over nothing; the axes must be laid out by then."""
    named = [dot for dot in dots if dot.ringed or dot.slot == 0]
    others = [dot for dot in dots if not dot.ringed and dot.slot]
    unit = place.figure.dpi / 72.0  # pixels a point

    def at(dot: Dot) -> tuple[float, float]:
        across, up = place.transData.transform((dot.x, dot.y))
        return across / unit, -up / unit

    box = place.get_window_extent()
    field = (box.x0 / unit, -box.y1 / unit, box.x1 / unit, -box.y0 / unit)
    sizes = [(_CHARACTER * len(visible(dot.label)), 1.3 * _SMALL) for dot in named]
    points = [at(dot) for dot in named]
    found = labels.place(points, sizes, [at(dot) for dot in others], field)
    for dot, (across, down), label in zip(named, points, found, strict=True):
        if label is not None:
            left, top, right, bottom = label.box
            offset = ((left if label.at_right else right) - across, down - (top + bottom) / 2)
            line: dict[str, Any] = {
                "arrowstyle": "-",
                "linewidth": 0.4,
                "color": LIGHT["quiet"],
                "shrinkA": 0,
                "shrinkB": 2,
            }
            line["relpos"] = (0.0 if label.at_right else 1.0, 0.5)
            place.annotate(
                visible(dot.label),
                (dot.x, dot.y),
                xytext=offset,
                textcoords="offset points",
                fontsize=_SMALL,
                ha="left" if label.at_right else "right",
                va="center",
                arrowprops=line if label.leader else None,
                bbox={"boxstyle": "square,pad=0.05", "facecolor": "white", "edgecolor": "none", "alpha": 0.75},
                zorder=4,
            )


def _axis(axis: Axis, place: Axes, which: str) -> None:
    getattr(place, f"set_{which}label")(visible(axis.title))
    if axis.log:
        getattr(place, f"set_{which}scale")("log")
    if axis.ticks:
        getattr(place, f"set_{which}ticks")(axis.ticks, [f"{tick:g}" for tick in axis.ticks])
        getattr(place, f"{which}axis").set_minor_locator(_no_ticks())
    if axis.low is not None or axis.high is not None:
        getattr(place, f"set_{which}lim")(axis.low, axis.high)
    if axis.flipped:
        getattr(place, f"invert_{which}axis")()


def _no_ticks() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()


def _forest(figure: Forest, place: Axes) -> None:
    place.axvline(0.0, color=LIGHT["quiet"], linewidth=0.9)
    for number, row in enumerate(figure.rows):
        colour, marker = LIGHT.get(row.verdict, LIGHT["quiet"]), MARKS.get(row.verdict, "o")
        span = None if row.low is None or row.high is None else [[row.value - row.low], [row.high - row.value]]
        place.errorbar(row.value, number, xerr=span, fmt=marker, markersize=4.5, color=colour, linewidth=1.2)
    _rows([row.label for row in figure.rows], figure.x, place)


def _stacks(figure: Stacks, place: Axes) -> None:
    before = [0.0] * len(figure.rows)
    for slot, part in enumerate(figure.parts):
        widths = [amounts[slot] for _, amounts in figure.rows]
        colour = SLOTS[1:][slot % (len(SLOTS) - 1)]
        place.barh(range(len(widths)), widths, left=before, color=colour, height=0.7, label=visible(title(part)))
        before = [start + width for start, width in zip(before, widths, strict=True)]
    _rows([label for label, _ in figure.rows], figure.x, place)


def _rows(labels: Sequence[str], axis: Axis, place: Axes) -> None:
    place.set_yticks(range(len(labels)), list(map(visible, labels)))
    place.invert_yaxis()
    place.grid(visible=False, axis="y")
    _axis(axis, place, "x")
