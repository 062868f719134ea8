"""Lines with bands, and points with intervals, over two axes of numbers, for Plotly."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from effbench.report.figures.figure import Axis, Chart, Dot, Line
from effbench.report.figures.labels import place
from effbench.report.html.plots import Plot, axis, rounded, span, text
from effbench.report.palette import LIGHT, SLOTS
from effbench.report.words import shortened

#: Slot -> its dash and its mark, so that colour says nothing that shape does not.
DASHES = ("solid", "solid", "10px,4px", "5px,3px", "2px,3px", "11px,4px,2px,4px", "7px,3px,2px,3px,2px,3px", "3px,6px")
MARKS = ("circle", "circle", "square", "diamond", "triangle-up", "x", "star", "triangle-down")

LEVEL = "level"  # the group of what lines are held against
LEVEL_DASH = "5px,4px"

#: Of what the means span: how far beyond them an axis shows bands.
_BEYOND = 0.35
_FEW = 6  # points of a line that are marked
_HOVER = "<b>{name}</b><br>{y} %{{y:.4g}}{interval}<br>{x} %{{x:.4~g}}<extra></extra>"
_INTERVAL = " [%{customdata[0]:.4g}, %{customdata[1]:.4g}]"

#: Pixels between the axes of a narrow page, for which names are placed; where there is more room, they stay apart.
_FIELD = (0.0, 0.0, 300.0, 228.0)
_LONGEST = 28  # characters of a name; the rest is in what is said where the pointer rests
_CHARACTER, _LINE = 5.9, 12.0  # pixels of a character, roughly, and of a line of text

Ends = tuple[float, float]


def chart(figure: Chart) -> Plot:
    """Return lines, bands and points; horizontally, lines begin at zero."""
    over, up = figure.x, figure.y
    zero = bool(figure.lines) and not over.log and over.low is None
    x = span([*_places(figure)], over, zero=zero)
    y = span([*_upwards(figure.lines), *_heights(figure.dots), *_levels(figure)], up)
    upwards = sorted(figure.lines, key=lambda line: (line.slot != 0, -line.slot))  # the baseline's, wider, below all
    layout: Plot = {"xaxis": {**axis(over, x), "showgrid": False, "showline": True, "ticks": "outside"}}
    layout["yaxis"] = axis(up, y)
    if figure.dots:
        layout["annotations"] = list(_names(figure, x, y))
    bands = [_band(line, x, y) for line in figure.lines if line.low]
    lines = [_line(each, figure, x, y) for each in upwards]
    levels = [_level(figure.level_title, level, x) for level in _levels(figure)]
    return {"data": [*bands, *levels, *lines, *_dots(figure, x, y)], "layout": layout}


def _places(figure: Chart) -> Iterator[float]:
    for line in figure.lines:
        yield from line.x
    for dot in figure.dots:
        yield from (dot.x, *(dot.x_interval or ()))


def _heights(dots: Sequence[Dot]) -> Iterator[float]:
    for dot in dots:
        yield from (dot.y, *(dot.y_interval or ()))


def _upwards(lines: Sequence[Line]) -> Iterator[float]:
    """Yield the heights of lines, and of their bands as far as those do not squeeze all lines."""
    means = [each for line in lines for each in line.y]
    most = _BEYOND * (max(means) - min(means)) if means else 0.0
    yield from means
    yield from (max(each, min(means) - most) for line in lines for each in line.low)
    yield from (min(each, max(means) + most) for line in lines for each in line.high)


def _levels(figure: Chart) -> list[float]:
    return [] if figure.level is None else [figure.level]


def _band(line: Line, x: Ends, y: Ends) -> Plot:
    """Return the interval of a line as an area."""
    return {
        "type": "scatter",
        "legendgroup": f"s{line.slot}",
        "x": rounded([*line.x, *reversed(line.x)], x),
        "y": rounded([*line.high, *reversed(line.low)], y),
        "mode": "lines",
        "line": {"width": 0},
        "fill": "toself",
        "fillcolor": SLOTS[line.slot],
        "opacity": 0.13,
        "hoverinfo": "skip",
    }


def _line(line: Line, figure: Chart, x: Ends, y: Ends) -> Plot:
    colour, wide = SLOTS[line.slot], line.slot == 0
    marked = len(line.x) == 1 or (len(line.x) <= _FEW and not line.stepped)
    found: Plot = {
        "type": "scatter",
        "name": text(line.label),
        "legendgroup": f"s{line.slot}",
        "x": rounded(line.x, x),
        "y": rounded(line.y, y),
        "mode": "lines+markers" if marked else "lines",
        "line": {"color": colour, "width": 3.5 if wide else 2, "dash": DASHES[line.slot]},
        "hovertemplate": _hover(text(line.label), figure, _INTERVAL if line.low else ""),
    }
    if marked:
        found["marker"] = {"color": colour, "size": 7, "symbol": MARKS[line.slot]}
    if line.low:
        found["customdata"] = list(zip(rounded(line.low, y), rounded(line.high, y), strict=True))
    if line.stepped:
        found["line"]["shape"] = "hv"
    return found


def _hover(name: str, figure: Chart, interval: str) -> str:
    return _HOVER.format(name=name, x=text(figure.x.title), y=text(figure.y.title), interval=interval)


def _level(name: str, level: float, x: Ends) -> Plot:
    return {
        "type": "scatter",
        "name": text(name),
        "legendgroup": LEVEL,
        "x": list(x),
        "y": [level, level],
        "mode": "lines",
        "line": {"color": LIGHT["quiet"], "width": 1, "dash": LEVEL_DASH},
        "hovertemplate": f"{text(name)} %{{y:.4g}}<extra></extra>",
    }


def _dots(figure: Chart, x: Ends, y: Ends) -> Iterator[Plot]:
    """Yield the points, those that stand out above the others, and the stairs that join the front."""
    others = [dot for dot in figure.dots if not _stands_out(dot)]
    look = {"color": SLOTS[8], "size": 6, "opacity": 0.6}
    if others:
        yield _points(others, figure, x, y, look, {"color": LIGHT["faint"], "thickness": 1})
    front = sorted((dot for dot in figure.dots if dot.ringed), key=lambda dot: dot.x)
    if len(front) > 1:
        yield {
            "type": "scatter",
            "x": rounded([dot.x for dot in front], x),
            "y": rounded([dot.y for dot in front], y),
            "mode": "lines",
            "line": {"color": SLOTS[1], "shape": "hv", "width": 1},
            "opacity": 0.4,
            "hoverinfo": "skip",
        }
    for slot in (0, 1):
        named = [dot for dot in figure.dots if _stands_out(dot) and min(dot.slot, 1) == slot]
        for ringed in (False, True):
            if found := [dot for dot in named if dot.ringed is ringed]:
                look = {"color": SLOTS[slot], "size": 10, "symbol": "circle-open-dot" if ringed else "diamond"}
                look["line"] = {"width": 2} if ringed else {"width": 0}
                yield _points(found, figure, x, y, look, {"color": LIGHT[f"w{slot}"], "thickness": 1.25})


def _points(dots: Sequence[Dot], figure: Chart, x: Ends, y: Ends, look: Plot, bars: Plot) -> Plot:
    told = [(dot.x_interval or (dot.x, dot.x), dot.y_interval or (dot.y, dot.y)) for dot in dots]
    across = _bars([dot.x for dot in dots], [each for each, _ in told], x)
    upwards = _bars([dot.y for dot in dots], [each for _, each in told], y)
    found: Plot = {
        "type": "scatter",
        "x": rounded([dot.x for dot in dots], x),
        "y": rounded([dot.y for dot in dots], y),
        "mode": "markers",
        "marker": look,
        "text": [text(dot.label) for dot in dots],
        "error_x": {**across, **bars, "width": 0},
        "error_y": {**upwards, **bars, "width": 0},
        "customdata": [[*rounded(a, x), *rounded(b, y)] for a, b in told],
        "hovertemplate": f"<b>%{{text}}</b><br>{text(figure.y.title)} %{{y:.4g}} [%{{customdata[2]:.4g}}, "
        f"%{{customdata[3]:.4g}}]<br>{text(figure.x.title)} %{{x:.4g}} [%{{customdata[0]:.4g}}, "
        "%{customdata[1]:.4g}]<extra></extra>",
    }
    return found


def _bars(values: Sequence[float], intervals: Sequence[Ends], ends: Ends) -> Plot:
    """Return how far intervals reach from their values, to both sides."""
    over = rounded([high - value for value, (_, high) in zip(values, intervals, strict=True)], ends)
    under = rounded([value - low for value, (low, _) in zip(values, intervals, strict=True)], ends)
    return {"type": "data", "symmetric": False, "array": over, "arrayminus": under}


def _stands_out(dot: Dot) -> bool:
    return dot.ringed or dot.slot == 0


def _names(figure: Chart, x: Ends, y: Ends) -> Iterator[Plot]:
    """Yield the names of the points that stand out, as far as there is room for them between the axes."""
    _, _, width, height = _FIELD

    def at(dot: Dot) -> tuple[float, float]:
        return _share(dot.x, figure.x, x) * width, (1.0 - _share(dot.y, figure.y, y)) * height

    named = [dot for dot in figure.dots if _stands_out(dot)]
    points, others = [at(dot) for dot in named], [at(dot) for dot in figure.dots if not _stands_out(dot)]
    words = [shortened(dot.label, _LONGEST) for dot in named]
    found = place(points, [(_CHARACTER * len(word), _LINE) for word in words], others, _FIELD)
    for dot, point, word, label in zip(named, points, words, found, strict=True):
        if label is not None:
            left, top, right, bottom = label.box
            across = round((left if label.at_right else right) - point[0])
            down = round((top + bottom) / 2 - point[1])
            side = {"xanchor": "left" if label.at_right else "right", "yanchor": "middle"}
            led = {"ax": across, "ay": down, "arrowhead": 0, "arrowwidth": 0.75, "arrowcolor": LIGHT["quiet"]}
            led |= {"standoff": 5}
            moved = led if label.leader else {"showarrow": False, "xshift": across, "yshift": -down}
            tells = {"hovertext": text(dot.label)} if word != dot.label else {}
            look = {"font": {"size": 11}, "borderpad": 0}
            yield {"x": dot.x, "y": dot.y, "text": text(word), **side, **look, **moved, **tells}


def _share(value: float, about: Axis, ends: Ends) -> float:
    """Return how far along its axis a value lies, from 0 to 1."""
    low, high = map(math.log, ends) if about.log else ends
    share = ((math.log(value) if about.log else value) - low) / (high - low)
    return 1.0 - share if about.flipped else share
