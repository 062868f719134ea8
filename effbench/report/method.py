"""How these numbers were made: one paragraph for a paper or a page, written from the records."""

from __future__ import annotations

from collections.abc import Sequence

from effbench.analysis.comparison import Comparison
from effbench.records import Record
from effbench.report.remarks import SECONDS, statuses
from effbench.report.settings import packages, settings, values
from effbench.report.words import agreed, counted, listed, spans


def method(comparisons: Sequence[Comparison]) -> str:
    """Return the paragraph; "" where there are no records."""
    records = [record for each in comparisons for record in each.group.records]
    if not records:
        return ""
    sentences = [_trained(comparisons), _clock(comparisons), _paired(comparisons), _judged(comparisons)]
    sentences += [hardware(records), f"Trials: {statuses(records)}."]
    return " ".join(sentence for sentence in sentences if sentence)


def _trained(comparisons: Sequence[Comparison]) -> str:
    sets = {key for each in comparisons for key in each.group.sets if key != "{}"}
    workloads = list(dict.fromkeys(each.group.workload for each in comparisons))
    seeds = sorted({seed for each in comparisons for seed in each.group.seeds})
    return (
        f"{counted(len(sets), 'set')} of techniques and the baseline were trained on "
        f"{counted(len(workloads), 'workload')} ({listed(workloads, most=9)}), "
        f"each with {counted(len(seeds), 'seed')} ({spans(seeds)})."
    )


def _clock(comparisons: Sequence[Comparison]) -> str:
    budgets = list(dict.fromkeys(each.group.budget for each in comparisons))
    clocks = list(dict.fromkeys(SECONDS.get(each.group.clock, each.group.clock) for each in comparisons))
    shown = f"The budget of a trial was {listed(budgets, most=9, word='or')}"
    clock = f", counted in {listed([clock for clock in clocks if clock], most=3)}" if any(clocks) else ""
    return f"{shown}{clock}; evaluation is not on the clock, all that a technique adds is."


def _paired(comparisons: Sequence[Comparison]) -> str:
    if not any(each.p_value is not None for found in comparisons for each in found.results):
        return ""
    percent = f"{100 * comparisons[0].confidence:g} %"
    return (
        "Trials of one seed start from the same weights and see the same examples in the same order, so differences "
        f"to the baseline are paired by seed. Intervals are Student's t, {percent}; those of differences are widened "
        "by Holm's correction over the sets of a table, and better or worse is said only where one excludes zero."
    )


def _judged(comparisons: Sequence[Comparison]) -> str:
    splits = {each.measure.split for each in comparisons if each.measure.split}
    return f"Choices are made on validation; the numbers are on {listed(sorted(splits))}." if splits else ""


def hardware(records: Sequence[Record]) -> str:
    """Return a sentence on the machine and the versions, as far as all records agree."""
    found = settings(records)
    facts = [agreed(values(found, "machine")) or "more than one machine"]
    if threads := agreed(values(found, "threads")):
        facts.append(f"{counted(int(threads), 'thread')} a trial")
    if jobs := agreed(values(found, "jobs")):
        facts.append(f"{counted(int(jobs), 'trial')} at a time")
    versions = ((package, agreed(values(found, package))) for package in packages(found))
    facts += [f"{package} {version}" for package, version in versions if version]
    return f"Hardware and software: {', '.join(facts)}." if found else ""
