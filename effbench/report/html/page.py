"""The page: everything that a template needs, made from records, and the template filled."""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping, Sequence
from typing import Any

import jinja2
from markupsafe import Markup

from effbench.analysis.comparison import Comparison, compare
from effbench.analysis.noise import read_aa
from effbench.records import Record, label
from effbench.report import palette
from effbench.report.abbreviations import abbreviated
from effbench.report.console import visible
from effbench.report.figures.curves import Over, curves, shared_slots
from effbench.report.figures.forest import forest
from effbench.report.figures.ledger import ledger
from effbench.report.html import bundle, overview, plots, provenance, sections, summary
from effbench.report.html.analyses import analyses
from effbench.report.html.panel import Panel, panel
from effbench.report.html.taxonomy_map import taxonomy_map
from effbench.report.method import method
from effbench.report.numbers import NOTHING
from effbench.report.sources import Source, said_in, with_said
from effbench.report.tables import tables_of
from effbench.report.words import counted, listed

_SMALL, _SMALL_END = Markup("<small>"), Markup("</small>")


def report(
    records: Sequence[Record],
    *,
    sources: Mapping[str, Source] | None = None,
    suites: Sequence[Mapping[str, Any]] = (),
    folders: Sequence[str] = (),
    title: str = "",
) -> str:
    """Return the whole page.

    sources: cards of techniques, by name.
    suites: the suites as they were run, as the results folders keep them.
    folders: where the records are, for the commands that make the page again; A/A runs below them grey out noise, and
        what they keep of papers and claims goes before what sources say.
    title: default: the names of the suites.
    """
    comparisons, explained = abbreviated(compare(records, aa=read_aa(folders)))
    main = overview.main_comparisons(comparisons)
    listing = len(records) <= sections.MOST_RECORDS
    cards, where = with_said(sources or {}, said_in(folders)), provenance.environment(records)
    parts = sections.sections(comparisons, main, cards, records=listing)
    names = list(dict.fromkeys(record.suite for record in records if record.suite))
    return (
        _environment()
        .get_template("page.html.jinja")
        .render(
            title=title or listed(names) or "results",
            facts=_facts(records, main, where),
            answer=summary.answer(main, comparisons),
            workloads=[(each.group.workload, each.measure, each.group.budget) for each in main],
            overview=overview.overview(main),
            forests=[panel(forest(each)) for each in main if len(each.results) > 1],
            curves={"share": _curves(main, "share"), "time": _curves(main, "time")},
            ledgers=[panel(figure) for each in main if (figure := ledger(each)).rows],
            explained=explained,
            tables=tables_of(comparisons, explained, stated=False),
            leaves=taxonomy_map(comparisons, cards),
            sections=parts,
            anchors={each.name: each.anchor for each in parts},
            analyses=list(analyses(comparisons, main)),
            count=len(records),
            listing=listing,
            failures=provenance.failures(comparisons),
            environment=where,
            commands=provenance.reproduce(records, suites, folders),
            method=method(comparisons),
            colours=Markup(palette.properties()),  # noqa: S704 - words of our own
            style=_asset("page.css"),
            script=Markup("\n").join([_asset("page.js"), _asset("figures.js")]),
            plotting=plots.to_json({"template": plots.TEMPLATE, "night": palette.by_night()}),
            bundle=bundle.packed(),
        )
    )


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("effbench.report.html", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: value if type(value) is not str or value.isprintable() else visible(value),
    )
    environment.filters["breakable"] = _breakable
    environment.filters["interval_below"] = _interval_below
    environment.filters["whole"] = label
    environment.filters["words"] = lambda text: text.replace("_", " ")
    environment.filters["slug"] = lambda text: text.replace(" ", "-") or "baseline"
    return environment


def _breakable(name: str) -> Markup:
    """Return a name that may go on on the next line after a `_` or a `/`."""
    return Markup.escape(visible(name)).replace("_", Markup("_<wbr>")).replace("/", Markup("/<wbr>"))


def _interval_below(text: str, share: str = NOTHING) -> Markup:
    """Return `1.2 [1.1, 1.3]` with the interval on a line of its own, and in how many per cent it is before that."""
    head, bracket, interval = text.partition(" [")
    first = head if share == NOTHING else f"{head} ({share})"
    return Markup.escape(first) + (_SMALL + f"[{interval}" + _SMALL_END if bracket else "")


def _asset(name: str) -> Markup:
    text = importlib.resources.files("effbench.report.html").joinpath("assets", name).read_text(encoding="utf-8")
    return Markup(text.rstrip())  # noqa: S704 - files of our own


def _facts(
    records: Sequence[Record], main: Sequence[Comparison], where: Sequence[provenance.Fact]
) -> list[tuple[str, str]]:
    sets = {key for each in main for key in each.group.sets if key != "{}"}
    budgets = list(dict.fromkeys(each.group.budget for each in main))
    machines = [value for fact in where if fact.name == "machine" for value, _ in fact.values]
    return [
        (counted(len(sets), "set"), "of techniques"),
        (counted(len(main), "workload"), listed((each.group.workload for each in main), most=9)),
        (listed(budgets, word="or") or "no budget", "a trial"),
        (provenance.seeds_of(main), "paired with the baseline's"),
        (counted(len(records), "trial"), listed(machines, most=2)),
    ]


def _curves(main: Sequence[Comparison], over: Over) -> list[Panel]:
    slots = shared_slots(main)
    figures = [curves(each, over, slots=slots) for each in main]
    return [panel(figure) for figure in figures if figure.lines]
