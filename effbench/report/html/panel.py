"""A figure on the page: its words, its plot, and its numbers."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from effbench.report.figures.figure import Chart, Figure, Forest
from effbench.report.figures.ledger import title
from effbench.report.html.figure_numbers import Numbers, numbers_of
from effbench.report.html.plot_charts import DASHES, LEVEL, LEVEL_DASH
from effbench.report.html.plots import plot, to_json
from effbench.report.words import counted


@dataclass(frozen=True, slots=True)
class Key:
    """What a legend explains: a line, or a part of a bar."""

    key: str  # the class of its colour, and the group of its traces
    name: str
    dash: str = ""  # of a line


@dataclass(frozen=True, slots=True)
class Panel:
    """A figure with its words, as the template takes it."""

    title: str
    about: str
    plot: Markup  # JSON for Plotly
    rows: int  # by which its height follows; 0: it has that of all charts
    keys: tuple[Key, ...]
    numbers: Numbers | None
    note: str


def panel(figure: Figure, *, told: bool = False) -> Panel:
    """Return a figure as it stands on the page.

    told: a table beside it has its numbers already.
    """
    return Panel(
        figure.title,
        figure.about,
        to_json(plot(figure)),
        0 if isinstance(figure, Chart) else len(figure.rows),
        _keys(figure),
        None if told else numbers_of(figure),
        _note(figure),
    )


def _keys(figure: Figure) -> tuple[Key, ...]:
    """Return what a legend explains; a forest names its rows at their sides."""
    if isinstance(figure, Chart):
        level = [] if figure.level is None else [Key(LEVEL, figure.level_title, LEVEL_DASH)]
        return (*(Key(f"s{line.slot}", line.label, DASHES[line.slot]) for line in figure.lines), *level)
    if isinstance(figure, Forest):
        return ()
    return tuple(Key(f"p{n}", title(part)) for n, part in enumerate(figure.parts))


def _note(figure: Figure) -> str:
    if isinstance(figure, Chart) or not figure.left_out:
        return ""
    left_out = counted(figure.left_out, "set")
    return (
        f"{left_out} in the middle are left out; the table has all."
        if isinstance(figure, Forest)
        else f"{left_out} are left out."
    )
