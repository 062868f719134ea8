"""Draw lines with bands, and points with intervals, over two axes of numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from markupsafe import Markup

from effbench.report.figures.figure import Axis, Chart, Line
from effbench.report.figures.scales import Scale, scale, written
from effbench.report.html import draw_dots
from effbench.report.html.svg import drawing, element, path, text, tip
from effbench.report.numbers import significant

WIDTH, HEIGHT = 420, 270  # fits a phone without getting smaller than it can be read
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 12, 12, 40


def chart(figure: Chart, *, width: float = WIDTH, height: float = HEIGHT, tips: bool = True) -> Markup:
    """Return a chart as SVG.

    tips: say each point's numbers where the pointer rests on it; small multiples go without.
    """
    x, y = scales(figure, width, height)
    upwards = sorted(figure.lines, key=lambda line: (line.slot != 0, -line.slot))  # the baseline's, wider, below all
    marks = [
        *_level(figure, x, y),
        *(band(line, x, y) for line in figure.lines if line.low),
        *(mark for line in upwards for mark in curve(line, x, y, tips=tips)),
        *draw_dots.dots(figure.dots, x, y),
    ]
    field = (_LEFT, _TOP - 4, width - _RIGHT, height - _BOTTOM)
    words = draw_dots.names(figure.dots, x, y, field)
    parts = [*axes(figure.x, figure.y, x, y, width, height), _window(marks, figure, width, height), *words]
    return drawing(parts, width, height, figure.title, figure.about)


def _window(marks: list[str], figure: Chart, width: float, height: float) -> str:
    """Return marks in the field between the axes, cut off there where an axis does not hold them all."""
    if all(end is None for axis in (figure.x, figure.y) for end in (axis.low, axis.high)):
        return "".join(marks)
    place = {"x": _LEFT, "y": _TOP - 4, "width": width - _RIGHT - _LEFT + 6, "height": height - _BOTTOM - _TOP + 4}
    view = f"{place['x']} {place['y']} {place['width']:g} {place['height']:g}"
    return element("svg", "".join(marks), viewBox=view, overflow="hidden", **place)


def scales(figure: Chart, width: float, height: float) -> tuple[Scale, Scale]:
    """Return the scales that hold all that is drawn; the horizontal one begins at zero where lines are."""
    xs = [x for line in figure.lines for x in line.x]
    xs += [x for dot in figure.dots for x in (dot.x, *(dot.x_interval or ()))]
    ys = [y for line in figure.lines for y in (*line.y, *line.low, *line.high)]
    ys += [y for dot in figure.dots for y in (dot.y, *(dot.y_interval or ()))]
    if figure.level is not None:
        ys.append(figure.level)
    left, right = (_LEFT, width - _RIGHT) if not figure.x.flipped else (width - _RIGHT, _LEFT)
    bottom, top = (height - _BOTTOM, _TOP) if not figure.y.flipped else (_TOP, height - _BOTTOM)
    zero = bool(figure.lines) and not figure.x.log and figure.x.low is None
    across = scale(_limited(xs, figure.x), left, right, log=figure.x.log, zero=zero)
    return across, scale(_limited(ys, figure.y), bottom, top, log=figure.y.log)


def _limited(values: list[float], axis: Axis) -> list[float]:
    low = -math.inf if axis.low is None else axis.low
    high = math.inf if axis.high is None else axis.high
    return [min(high, max(low, value)) for value in values]


def axes(over: Axis, up: Axis, x: Scale, y: Scale, width: float, height: float) -> Iterator[str]:
    """Yield ticks, the lines behind the data, and the titles with their units."""
    floor = height - _BOTTOM
    for value, words in zip(found := _ticks(up, y), written(found, signed=up.signed), strict=True):
        at = y.at(value)
        yield element("path", d=f"M{_LEFT} {at:g}H{width - _RIGHT:g}", class_="grid")
        yield text(words, _LEFT - 6, at + 3.5, class_="tick end")
    for value, words in zip(found := _ticks(over, x), written(found, signed=over.signed), strict=True):
        at = x.at(value)
        yield element("path", d=f"M{at:g} {floor:g}v4", class_="axis")
        yield text(words, at, floor + 16, class_="tick mid")
    yield element("path", d=f"M{_LEFT} {floor:g}H{width - _RIGHT:g}", class_="axis")
    yield text(over.title, (_LEFT + width - _RIGHT) / 2, height - 6, class_="title mid")
    middle = (_TOP + floor) / 2
    yield text(up.title, 0, 0, class_="title mid", transform=f"translate(10 {middle:g}) rotate(-90)")


def _ticks(axis: Axis, along: Scale) -> Sequence[float]:
    return axis.ticks or along.ticks()


def _level(figure: Chart, x: Scale, y: Scale) -> Iterator[str]:
    if figure.level is not None:
        at = y.at(figure.level)
        yield element("path", d=f"M{_LEFT} {at:g}H{max(x.start, x.end):g}", class_="level")
        if _distance(figure, at, y, -1) > _distance(figure, at, y, 0):  # where fewer lines are near
            yield text(figure.level_title, max(x.start, x.end) - 5, at - 4, class_="tick halo end")
        else:
            yield text(figure.level_title, _LEFT + 5, at - 4, class_="tick halo")


def _distance(figure: Chart, level: float, y: Scale, end: int) -> float:
    """Return how far the lines are from a level at one of their ends."""
    return min((abs(y.at(line.y[end]) - level) for line in figure.lines), default=0.0)


def band(line: Line, x: Scale, y: Scale) -> str:
    """Return the interval of a line as an area."""
    over = [(x.at(a), y.at(b)) for a, b in zip(line.x, line.high, strict=True)]
    back = [(x.at(a), y.at(b)) for a, b in zip(line.x, line.low, strict=True)]
    return element("path", d=path([*over, *reversed(back)], close=True), class_=f"band s{line.slot}")


def curve(line: Line, x: Scale, y: Scale, *, tips: bool) -> Iterator[str]:
    """Yield a line, and a spot on each of its points where it can be asked for its numbers."""
    places = [(x.at(a), y.at(b)) for a, b in zip(line.x, line.y, strict=True)]
    drawn = _stairs(places) if line.stepped else places
    if len(places) == 1:
        yield element("circle", cx=places[0][0], cy=places[0][1], r=3, class_=f"dot s{line.slot}")
    yield element("path", d=path(drawn), class_=f"line s{line.slot}")
    if tips:
        for i, (left, top) in enumerate(places):
            words = f"{line.label}: {_number(line, i)} at {significant(line.x[i])}"
            yield element("circle", tip(words), cx=left, cy=top, r=7, class_=f"spot s{line.slot}")


def _stairs(places: list[tuple[float, float]]) -> list[tuple[float, float]]:
    corners = [(right[0], left[1]) for left, right in itertools.pairwise(places)]
    return [place for pair in zip(places, corners, strict=False) for place in pair] + places[-1:]


def _number(line: Line, i: int) -> str:
    value = significant(line.y[i], 4)
    return f"{value} [{significant(line.low[i], 4)}, {significant(line.high[i], 4)}]" if line.low else value
