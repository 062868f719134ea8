"""What a figure is: axes with units, and marks with their intervals. No colours, no pixels."""

from __future__ import annotations

from dataclasses import dataclass

SLOTS = 7  # colours, besides the baseline's, that the eye tells apart
BETTER = "(better \N{RIGHTWARDS ARROW})"  # at the end of an axis's title, where further right is better


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: what it counts, in which unit, and whether it is drawn backwards or in powers."""

    title: str  # with its unit: "share of the budget, %"
    log: bool = False
    flipped: bool = False  # larger values to the left or below, so that better is right or above
    low: float | None = None  # where it ends; None: where the marks do. What lies outside is cut off
    high: float | None = None
    ticks: tuple[float, ...] = ()  # none: round values


@dataclass(frozen=True, slots=True)
class Line:
    """A set of techniques as a line, with a band where an interval is known."""

    label: str
    slot: int  # which colour and dash; 0 is the baseline's
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()  # as many as y, or none
    high: tuple[float, ...] = ()
    stepped: bool = False  # constant between two points, as a distribution is


@dataclass(frozen=True, slots=True)
class Dot:
    """A set of techniques as a point, with intervals where they are known."""

    label: str
    slot: int
    x: float
    y: float
    x_interval: tuple[float, float] | None = None
    y_interval: tuple[float, float] | None = None
    ringed: bool = False  # stands out, as what no other set beats does


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines and points over two axes of numbers."""

    title: str
    about: str  # one sentence: what is seen, and what the bands are
    x: Axis
    y: Axis
    lines: tuple[Line, ...] = ()
    dots: tuple[Dot, ...] = ()
    level: float | None = None  # a horizontal line to hold against, such as a target
    level_title: str = ""


@dataclass(frozen=True, slots=True)
class Effect:
    """One row of a forest: a number with its interval, and what may be said of it."""

    label: str
    value: float
    low: float | None
    high: float | None
    verdict: str  # as `verdicts.Verdict` spells them
    text: str  # the number as people read it


@dataclass(frozen=True, slots=True)
class Forest:
    """Differences to the baseline, one a row, over one axis with a line at zero."""

    title: str
    about: str
    x: Axis
    rows: tuple[Effect, ...]
    left_out: int = 0  # sets for which there was no room


@dataclass(frozen=True, slots=True)
class Stacks:
    """Parts of a whole, one bar a row."""

    title: str
    about: str
    x: Axis
    parts: tuple[str, ...]
    rows: tuple[tuple[str, tuple[float, ...]], ...]  # label, one amount a part
    unit: str = "s"  # of the amounts
    left_out: int = 0


Figure = Chart | Forest | Stacks
