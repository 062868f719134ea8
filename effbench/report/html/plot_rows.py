"""What has one row a set, for Plotly: forests and stacked bars, with names at the left and numbers at the right."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from effbench.report.figures.figure import Effect, Forest, Stacks
from effbench.report.figures.ledger import title
from effbench.report.html.plots import Plot, axis, rounded, span, text
from effbench.report.numbers import significant
from effbench.report.palette import LIGHT, SLOTS
from effbench.report.words import shortened

#: Verdict -> its mark, so that colour says nothing that shape does not.
MARKS = {
    "better": "triangle-up",
    "worse": "triangle-down",
    "breaks": "x-thin-open",
    "no evidence": "circle",
    "incomplete": "circle-open",
}
_LONGEST = 28  # characters of a name; the rest is in what is said where the pointer rests
_CHARACTER = 6.9  # pixels of a character of a name, roughly

#: The colours of parts, in the order in which they are stacked.
PARTS = (*SLOTS[1:8], LIGHT["quiet"], SLOTS[0], LIGHT["faint"])

Ends = tuple[float, float]


def forest(figure: Forest) -> Plot:
    """Return the rows' intervals around a line at zero; right of it is better."""
    every = [end for row in figure.rows for end in (row.low, row.value, row.high) if end is not None]
    ends = span([*(_usual(figure.rows) or every), 0.0], figure.x)
    verdicts = dict.fromkeys(row.verdict for row in figure.rows)
    marks = [_marks(verdict, figure.rows, ends) for verdict in verdicts]
    across = {**axis(figure.x, ends), "zeroline": True, "zerolinecolor": LIGHT["quiet"]}
    layout = _rows([row.label for row in figure.rows], [row.text for row in figure.rows], across)
    return {"data": [*marks, *_beyond(figure, ends), _RIGHT], "layout": layout}


def _marks(verdict: str, every: Sequence[Effect], ends: Ends) -> Plot:
    """Return the rows of one verdict; what lies beyond the edge is drawn on it."""
    found = [(number, row) for number, row in enumerate(every) if row.verdict == verdict]
    rows = [row for _, row in found]
    colour, mark = LIGHT.get(verdict, LIGHT["quiet"]), MARKS.get(verdict, "circle")
    at = [_within(row.value, ends) for row in rows]
    high = [_within(_or(row.high, row.value), ends) for row in rows]
    low = [_within(_or(row.low, row.value), ends) for row in rows]
    line = {"color": colour, "width": 2 if "open" in mark else 0}
    return {
        "type": "scatter",
        "name": text(verdict),
        "x": rounded(at, ends),
        "y": [number for number, _ in found],
        "mode": "markers",
        "marker": {"color": colour, "size": 9, "symbol": mark, "line": line},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": rounded([b - a for a, b in zip(at, high, strict=True)], ends),
            "arrayminus": rounded([b - a for a, b in zip(low, at, strict=True)], ends),
            "color": colour,
            "thickness": 2,
            "width": 0,
        },
        "text": [text(row.label) for row in rows],
        "customdata": [text(row.text) for row in rows],
        "hovertemplate": f"<b>%{{text}}</b><br>%{{customdata}}<br>{text(verdict)}<extra></extra>",
    }


def _or(end: float | None, value: float) -> float:
    return value if end is None else end


def _usual(rows: Sequence[Effect]) -> list[float]:
    """Return the ends that set the scale: those of rows that ran to the end, so that one broken set squeezes none."""
    usual = [row for row in rows if row.verdict not in {"breaks", "incomplete"}]
    return [end for row in usual for end in (row.low, row.value, row.high) if end is not None]


def _within(value: float, ends: Ends) -> float:
    return min(ends[1], max(ends[0], value))


def _beyond(figure: Forest, ends: Ends) -> Iterator[Plot]:
    """Yield arrows which say that a value lies beyond the edge on which it is drawn."""
    found = [(n, row.value > ends[1]) for n, row in enumerate(figure.rows) if not ends[0] <= row.value <= ends[1]]
    if found:
        yield {
            "type": "scatter",
            "x": [ends[1] if above else ends[0] for _, above in found],
            "y": [number for number, _ in found],
            "mode": "text",
            "text": ["▸" if above != figure.x.flipped else "◂" for _, above in found],
            "textfont": {"color": LIGHT["quiet"], "size": 14},
            "textposition": ["middle right" if above != figure.x.flipped else "middle left" for _, above in found],
            "cliponaxis": False,
            "hoverinfo": "skip",
        }


def stacks(figure: Stacks) -> Plot:
    """Return stacked bars, with their sums at the right."""
    sums = [math.fsum(amounts) for _, amounts in figure.rows]
    ends = span(sums, figure.x, zero=True)
    bars = [
        {
            "type": "bar",
            "orientation": "h",
            "name": text(title(part)),
            "legendgroup": f"p{slot}",
            "x": rounded([amounts[slot] for _, amounts in figure.rows], ends),
            "y": list(range(len(figure.rows))),
            "marker": {"color": PARTS[min(slot, len(PARTS) - 1)], "line": {"color": LIGHT["page"], "width": 1}},
            "text": [text(label) for label, _ in figure.rows],
            "textposition": "none",
            "hovertemplate": f"<b>%{{text}}</b><br>{text(title(part))} %{{x:.3g}} {figure.unit}<extra></extra>",
        }
        for slot, part in enumerate(figure.parts)
    ]
    numbers = [f"{significant(each)} {figure.unit}" for each in sums]
    layout = _rows([label for label, _ in figure.rows], numbers, axis(figure.x, ends))
    return {"data": [*bars, _RIGHT], "layout": {**layout, "barmode": "stack", "bargap": 0.3}}


#: An axis is drawn where a trace has it: this one, which nobody sees, is on the axis with the numbers at the right.
_RIGHT: Plot = {"type": "scatter", "x": [0], "y": [0], "yaxis": "y2", "opacity": 0, "hoverinfo": "skip"}


def _rows(names: Sequence[str], numbers: Sequence[str], across: Plot) -> Plot:
    """Return a layout of rows from above to below."""
    ends = [len(names) - 0.5, -0.5]
    rows = {"range": ends, "fixedrange": True, "showgrid": False, "tickvals": list(range(len(names)))}
    ink = {"color": LIGHT["ink"], "size": 12}
    quiet = {"color": LIGHT["quiet"], "size": 11}
    left = {**rows, "ticktext": [f"{text(shortened(name, _LONGEST))} " for name in names], "tickfont": ink}
    right = {**rows, "ticktext": [f" {text(each)}" for each in numbers], "tickfont": quiet}
    right |= {"overlaying": "y", "side": "right"}
    margin = {"l": _room(min(_LONGEST, max(map(len, names), default=0))), "r": _room(max(map(len, numbers), default=0))}
    return {"xaxis": across, "yaxis": left, "yaxis2": right, "hoverdistance": 24, "margin": margin}


def _room(characters: int) -> int:
    """Return the pixels that words beside the rows need."""
    return round(16 + _CHARACTER * characters)
