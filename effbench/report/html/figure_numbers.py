"""The numbers of a figure as a table, for those who cannot see it, and for all where there is no JavaScript."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from effbench.report.console import visible
from effbench.report.figures.figure import Axis, Chart, Dot, Figure, Forest, Line, Stacks
from effbench.report.figures.ledger import title
from effbench.report.numbers import significant


@dataclass(frozen=True, slots=True)
class Numbers:
    """A table of words; the first cell of a row says what the row is of."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def listing(self) -> Markup:
        """Return lines of words between tabs: one element where a table would have hundreds."""
        return Markup.escape("\n".join("\t".join(map(visible, line)) for line in (self.head, *self.rows)))


def numbers_of(figure: Figure) -> Numbers:
    """Return what a figure shows, in numbers."""
    if isinstance(figure, Forest):
        rows = tuple((row.label, row.text, row.verdict) for row in figure.rows)
        return Numbers(("set", figure.x.title, "verdict"), rows)
    if isinstance(figure, Stacks):
        return Numbers(("set", *map(title, figure.parts), f"in all, {figure.unit}"), tuple(_stacks(figure)))
    return _dots(figure) if figure.dots else _lines(figure)


def _stacks(figure: Stacks) -> Iterator[tuple[str, ...]]:
    for label, amounts in figure.rows:
        yield (label, *map(significant, amounts), significant(sum(amounts)))


def _dots(figure: Chart) -> Numbers:
    rows = tuple(
        (
            dot.label,
            _with_ends(dot.x, dot.x_interval),
            _with_ends(dot.y, dot.y_interval),
            "yes" if dot.ringed else "no",
        )
        for dot in _best_first(figure.dots, figure.y)
    )
    return Numbers(("set", figure.x.title, figure.y.title, "on the front"), rows)


def _best_first(dots: Sequence[Dot], up: Axis) -> list[Dot]:
    return sorted(dots, key=lambda dot: dot.y if up.flipped else -dot.y)


def _lines(figure: Chart) -> Numbers:
    """Return one row a place where the lines share their places, else one a point."""
    places = {line.x for line in figure.lines}
    if len(places) == 1:
        rows = zip(*([_at(line, i) for i in range(len(line.x))] for line in figure.lines), strict=True)
        wide = tuple((significant(x), *row) for x, row in zip(places.pop(), rows, strict=True))
        return Numbers((figure.x.title, *(line.label for line in figure.lines)), wide)
    long = tuple((line.label, significant(x), _at(line, i)) for line in figure.lines for i, x in enumerate(line.x))
    return Numbers(("set", figure.x.title, figure.y.title), long)


def _at(line: Line, i: int) -> str:
    return _with_ends(line.y[i], (line.low[i], line.high[i]) if line.low else None)


def _with_ends(value: float, interval: tuple[float, float] | None) -> str:
    """Write `0.831 [0.819, 0.843]`; a value whose interval is not known stands alone."""
    written = significant(value, 4)
    if interval is None:
        return written
    low, high = (significant(end, 4) for end in interval)
    return f"{written} [{low}, {high}]"
