"""Draw points with their intervals, the front of those that stand out, and names that do not lie over each other."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from effbench.report.figures.figure import Dot
from effbench.report.figures.labels import Box, Label, place
from effbench.report.figures.scales import Scale
from effbench.report.html.svg import element, path, shortened, text, tip
from effbench.report.numbers import significant

_LONGEST = 28  # characters of a name; the rest is in the tip
_CHARACTER, _LINE = 6.1, 12.0  # units of a character, roughly, and of a line of text


def dots(found: Sequence[Dot], x: Scale, y: Scale) -> Iterator[str]:
    """Yield points and intervals, those that stand out above the others."""
    ordered = sorted(found, key=_stands_out)
    for dot in ordered:
        yield from _intervals(dot, x, y)
    yield from _front(ordered, x, y)
    for dot in ordered:
        faint = "" if _stands_out(dot) else " faint"
        words = tip(f"{dot.label}: {significant(dot.x)}, {significant(dot.y, 4)}")
        size = 4.5 if _stands_out(dot) else 3
        yield element("circle", words, cx=x.at(dot.x), cy=y.at(dot.y), r=size, class_=f"dot s{dot.slot}{faint}")


def _stands_out(dot: Dot) -> bool:
    return dot.ringed or dot.slot == 0


def _intervals(dot: Dot, x: Scale, y: Scale) -> Iterator[str]:
    left, top = x.at(dot.x), y.at(dot.y)
    name = f"whisker s{dot.slot}" if _stands_out(dot) else f"whisker s{dot.slot} faint"
    if dot.x_interval:
        low, high = map(x.at, dot.x_interval)
        yield element("path", d=f"M{low:g} {top:g}H{high:g}", class_=name)
    if dot.y_interval:
        low, high = map(y.at, dot.y_interval)
        yield element("path", d=f"M{left:g} {low:g}V{high:g}", class_=name)


def _front(found: Sequence[Dot], x: Scale, y: Scale) -> Iterator[str]:
    """Yield the stairs of what can be had at most for each cost."""
    corners = sorted((x.at(dot.x), y.at(dot.y)) for dot in found if dot.ringed)
    if len(corners) > 1:
        stairs = [corners[0]]
        for (_, before), (left, top) in itertools.pairwise(corners):
            stairs += [(left, before), (left, top)]
        yield element("path", d=path(stairs), class_="front")


def names(found: Sequence[Dot], x: Scale, y: Scale, field: Box) -> Iterator[str]:
    """Yield the names of the points that stand out, as far as there is room for them inside the field."""
    named = [dot for dot in found if _stands_out(dot)]
    places = [(x.at(dot.x), y.at(dot.y)) for dot in named]
    others = [(x.at(dot.x), y.at(dot.y)) for dot in found if not _stands_out(dot)]
    words = [shortened(dot.label, _LONGEST) for dot in named]
    sizes = [(_CHARACTER * len(word), _LINE) for word in words]
    for point, word, label in zip(places, words, place(places, sizes, others, field), strict=True):
        if label is not None:
            yield from _name(word, point, label)


def _name(word: str, point: tuple[float, float], label: Label) -> Iterator[str]:
    left, _, right, bottom = label.box
    if label.leader is not None:
        end = (round(label.leader[0], 1), round(label.leader[1], 1))
        yield element("path", d=path([point, end]), class_="leader")
    at, name = (left, "dot-name") if label.at_right else (right, "dot-name end")
    yield text(word, round(at, 1), round(bottom - 3.5, 1), class_=name)
