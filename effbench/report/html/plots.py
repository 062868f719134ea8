"""Figures as Plotly takes them: data and layout as plain JSON, in the colours of a light page."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup

from effbench.report.console import visible
from effbench.report.figures.figure import Axis, Chart, Figure, Forest
from effbench.report.palette import LIGHT

Plot = dict[str, Any]  # {"data": [trace, ...], "layout": {...}}

_MARGIN = 0.04  # of what an axis spans, on each side
_FINE = 4  # decimals of what an axis spans that can be seen

_AXIS = {
    "gridcolor": LIGHT["hair"],
    "linecolor": LIGHT["faint"],
    "tickcolor": LIGHT["faint"],
    "tickfont": {"color": LIGHT["quiet"], "size": 11},
    "title": {"font": {"color": LIGHT["quiet"], "size": 12}, "standoff": 8},
    "zeroline": False,
}

#: What all figures have in common, as a template of Plotly's.
TEMPLATE: Plot = {
    "layout": {
        "autosize": True,
        "font": {"color": LIGHT["ink"], "family": "system-ui, -apple-system, 'Segoe UI', sans-serif", "size": 12},
        "hoverlabel": {
            "align": "left",
            "bgcolor": LIGHT["ink"],
            "bordercolor": LIGHT["ink"],
            "font": {"color": LIGHT["page"], "size": 12},
            "namelength": -1,
        },
        "hovermode": "closest",
        "margin": {"b": 44, "l": 60, "pad": 0, "r": 14, "t": 12},
        "modebar": {"activecolor": LIGHT["link"], "bgcolor": "rgba(0, 0, 0, 0)", "color": LIGHT["quiet"]},
        "paper_bgcolor": "rgba(0, 0, 0, 0)",
        "plot_bgcolor": "rgba(0, 0, 0, 0)",
        "showlegend": False,
        "xaxis": _AXIS,
        "yaxis": _AXIS,
    }
}


def plot(figure: Figure) -> Plot:
    """Return a figure for Plotly; `TEMPLATE` goes with it."""
    from effbench.report.html import plot_charts, plot_rows

    if isinstance(figure, Chart):
        return plot_charts.chart(figure)
    return plot_rows.forest(figure) if isinstance(figure, Forest) else plot_rows.stacks(figure)


def to_json(value: Any) -> Markup:
    """Write JSON for a script element: nothing in it ends that element."""
    written = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(written.replace("<", "\\u003c"))  # noqa: S704 - a script element holds text until its end tag


def text(words: str) -> str:
    """Return words as Plotly shows them letter by letter: in its texts `<b>`, `&lt;` and `%{x}` mean something."""
    found = visible(words).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return found.replace("{", "&#123;")


def span(values: Iterable[float], axis: Axis, *, zero: bool = False) -> tuple[float, float]:
    """Return the ends of an axis that holds all finite values, with a margin; what it cuts off is not counted.

    zero: begin at zero, without a margin there.
    """
    low = -math.inf if axis.low is None else axis.low
    high = math.inf if axis.high is None else axis.high
    found = [min(high, max(low, value)) for value in values if math.isfinite(value) and (value > 0.0 or not axis.log)]
    low, high = (min(found), max(found)) if found else (1.0, 2.0)
    if axis.log:
        factor = (high / low) ** _MARGIN if high > low else 1.5
        return low / factor, high * factor
    margin = _MARGIN * (high - low) or 0.05 * abs(high) or 1.0
    return (0.0, max(high, 0.0) + margin) if zero else (low - margin, high + margin)


def axis(about: Axis, ends: tuple[float, float]) -> Plot:
    """Return an axis of Plotly's from one end to the other."""
    low, high = map(math.log10, ends) if about.log else ends
    found: Plot = {"range": [high, low] if about.flipped else [low, high], "title": {"text": text(about.title)}}
    if about.log:
        found["type"] = "log"
    if about.ticks:
        found |= {"tickvals": list(about.ticks), "ticktext": [f"{tick:g}" for tick in about.ticks]}
    return found


def rounded(values: Sequence[float | None], ends: tuple[float, float]) -> list[float | None]:
    """Return numbers as finely as they can be told apart on an axis; None where one is not finite."""
    decimals = _FINE - math.floor(math.log10(ends[1] - ends[0]))
    return [None if value is None or not math.isfinite(value) else round(value, decimals) for value in values]
