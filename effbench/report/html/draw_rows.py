"""Draw what has one row a set: forests, stacked bars, and grids of numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from markupsafe import Markup

from effbench.report.figures.figure import Effect, Forest, Stacks
from effbench.report.figures.ledger import title
from effbench.report.figures.scales import Scale, scale, written
from effbench.report.html.svg import drawing, element, path, shortened, text, tip
from effbench.report.numbers import significant

WIDTH = 420
_ROW = 21  # units a row
_TOP, _BOTTOM, _RIGHT = 8, 42, 12
_CHARACTER = 6.3  # units of a character of a label, roughly
_LONGEST = 28  # characters of a label; the rest is in the tip

#: Verdict -> the shape of its mark, so that colour says nothing that shape does not.
SHAPES = {"better": "up", "worse": "down", "breaks": "cross", "no evidence": "round", "incomplete": "hollow"}


def forest(figure: Forest, width: float = WIDTH) -> Markup:
    """Return a forest as SVG: right of the line at zero is better."""
    left, height = _label_width([row.label for row in figure.rows]), _height(len(figure.rows))
    ends = [end for row in figure.rows for end in (row.low, row.value, row.high) if end is not None]
    x = _around_zero(_usual(figure.rows) or ends, left, width - _RIGHT)
    if figure.x.flipped:
        x = Scale(x.low, x.high, x.end, x.start)
    floor = height - _BOTTOM
    parts = [*_ticks(x, floor, figure.x.title, signed=True, left=left, width=width)]
    parts.append(element("path", d=f"M{x.at(0.0):g} {_TOP}V{floor:g}", class_="zero"))
    for number, row in enumerate(figure.rows):
        parts += _effect(row, _middle(number), left, x)
    return drawing(parts, width, height, figure.title, figure.about)


def _effect(row: Effect, y: float, left: float, x: Scale) -> Iterator[str]:
    name = row.verdict.replace(" ", "-")
    yield text(shortened(row.label, _LONGEST), left - 8, y + 3.5, class_="label end")
    inside = tip(f"{row.label}: {row.text}, {row.verdict}")
    if row.low is not None and row.high is not None:
        inside += element("path", d=f"M{x.within(row.low):g} {y:g}H{x.within(row.high):g}")
    inside += shape(row.verdict, x.within(row.value), y) + _beyond(row.value, x, y)
    inside += element("path", d=f"M{x.at(x.low):g} {y:g}H{x.at(x.high):g}", class_="catch")
    yield element("g", inside, class_=f"effect {name}")


def _beyond(value: float, x: Scale, y: float) -> str:
    """Return an arrow that says that a value lies beyond the edge on which it is drawn."""
    at = x.within(value)
    if x.low <= value <= x.high:
        return ""
    outwards = math.copysign(1.0, at - (x.start + x.end) / 2)
    return element(
        "path", d=f"M{at + 6 * outwards:g} {y - 3:g}l{3 * outwards:g} 3l{-3 * outwards:g} 3", class_="beyond"
    )


def shape(verdict: str, x: float, y: float) -> str:
    """Return the mark of a verdict at (x, y)."""
    kind = SHAPES.get(verdict, "round")
    if kind in {"round", "hollow"}:
        return element("circle", cx=x, cy=y, r=4, class_=kind)
    corners = {
        "up": [(x - 5, y + 4), (x, y - 5), (x + 5, y + 4)],
        "down": [(x - 5, y - 4), (x, y + 5), (x + 5, y - 4)],
    }
    if kind in corners:
        return element("path", d=path(corners[kind], close=True), class_="solid")
    return element("path", d=f"M{x - 4:g} {y - 4:g}l8 8m0 -8l-8 8")


def _usual(rows: Sequence[Effect]) -> list[float]:
    """Return the ends that set the scale: those of rows that ran to the end, so that one broken set squeezes none."""
    return [
        end
        for row in rows
        if row.verdict not in {"breaks", "incomplete"}
        for end in (row.low, row.value, row.high)
        if end is not None
    ]


def _around_zero(values: Sequence[float], start: float, end: float) -> Scale:
    finite = [value for value in values if math.isfinite(value)]
    return scale([*finite, 0.0], start + 6, end)


def stacks(figure: Stacks, width: float = WIDTH) -> Markup:
    """Return stacked bars as SVG."""
    left, height = _label_width([label for label, _ in figure.rows]), _height(len(figure.rows))
    x = scale([sum(amounts) for _, amounts in figure.rows], left, width - _RIGHT, zero=True)
    parts = [*_ticks(x, height - _BOTTOM, figure.x.title, signed=False, left=left, width=width)]
    for number, (label, amounts) in enumerate(figure.rows):
        y, reached = _middle(number), 0.0
        parts.append(text(shortened(label, _LONGEST), left - 8, y + 3.5, class_="label end"))
        for slot, (part, amount) in enumerate(zip(figure.parts, amounts, strict=True)):
            if amount > 0.0:
                begin, reached = reached, reached + amount
                words = f"{label}, {title(part)}: {significant(amount)} of {significant(sum(amounts))} s"
                parts.append(
                    element(
                        "rect",
                        tip(words),
                        x=x.at(begin),
                        y=y - 7,
                        width=max(0.0, x.at(reached) - x.at(begin)),
                        height=14,
                        class_=f"part p{slot}",
                    )
                )
    return drawing(parts, width, height, figure.title, figure.about)


def _ticks(x: Scale, floor: float, title: str, *, signed: bool, left: float, width: float) -> Iterator[str]:
    for value, words in zip(found := x.ticks(5), written(found, signed=signed), strict=True):
        at = x.at(value)
        yield element("path", d=f"M{at:g} {_TOP}V{floor:g}", class_="grid")
        yield text(words, at, floor + 15, class_="tick mid")
    yield text(title, (left + width - _RIGHT) / 2, floor + 33, class_="title mid")


def _label_width(labels: Sequence[str]) -> float:
    longest = max((min(len(label), _LONGEST) for label in labels), default=0)
    return 14 + _CHARACTER * longest


def _height(rows: int) -> float:
    return _TOP + _ROW * max(1, rows) + _BOTTOM


def _middle(number: int) -> float:
    return _TOP + _ROW * (number + 0.5)
