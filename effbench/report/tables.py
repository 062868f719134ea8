"""From records to tables: which columns there are, and what stands in them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from effbench.analysis.caveats import named
from effbench.analysis.comparison import Comparison, SetResult, compare
from effbench.analysis.intervals import Estimate
from effbench.analysis.ratios import Ratio, positive_mean
from effbench.analysis.tracks import tracks
from effbench.budget import Budget
from effbench.errors import InvalidBudget
from effbench.records import Record, canonical, label, plain
from effbench.report import numbers
from effbench.report.abbreviations import ABOUT as NAMES
from effbench.report.abbreviations import abbreviated
from effbench.report.method import hardware
from effbench.report.numbers import NOTHING, TIMES
from effbench.report.remarks import SECONDS, WAYS, problems_of, remarks, unit_of
from effbench.report.table import Column, Remark, Row, Table, Value
from effbench.report.words import counted


def comparison_table(
    records: Iterable[Record],
    metric: str | None = None,
    workload: str | None = None,
    *,
    aa: Sequence[Record] = (),
    against: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Table]:
    """Return one table for each workload and budget: every set of techniques against the baseline, or another set.

    metric: what to compare: a metric, `validation/<metric>`, or a cost such as `peak_memory_mib`; by default the
        headline metric of each workload, on test.
    workload: show this one alone.
    aa: records of the baseline against itself; what lies under their noise floor is greyed out.
    against: the set to compare with instead of the baseline.

    Raises:
        UnknownName: there is no such workload, no record with such a metric, or none of the set `against`.
    """
    return tables_of(*abbreviated(compare(records, metric, workload, aa=aa, against=against)))


def tables_of(comparisons: Sequence[Comparison], explained: Sequence[str] = (), *, stated: bool = True) -> list[Table]:
    """Return the table of each comparison, told apart from others of the same workload and budget.

    explained: what numbers in the names of sets stand for, a line each.
    stated: whether the tables state what captions do, for which all records are read again.
    """
    alike = Counter((each.group.workload, each.group.budget) for each in comparisons)
    free: dict[tuple[str, str], dict[str, Estimate | None]] = {}
    for both in tracks(comparisons):
        free.setdefault((both.workload, both.budget), {})[canonical(both.techniques)] = both.waived
    where = [(each.group.workload, each.group.budget) for each in comparisons]
    return [
        to_table(each, explained, alike[place] > 1, free.get(place), stated=stated)
        for each, place in zip(comparisons, where, strict=True)
    ]


def to_table(
    comparison: Comparison,
    explained: Sequence[str] = (),
    apart: bool = False,
    waived: Mapping[str, Estimate | None] | None = None,
    *,
    stated: bool = True,
) -> Table:
    """Return the table of a comparison.

    explained: what numbers in the names of sets stand for; those of other tables are left out.
    apart: whether records of the same workload and budget stand in other tables, since they do not compare.
    waived: set, as its canonical text -> its difference to the baseline if its own work were free.
    stated: whether it states what a caption does.
    """
    group, measure = comparison.group, comparison.measure
    waived = waived or {}
    columns = _columns(comparison, any(waived.values()))
    used = [line for line in explained if any(line.partition(":")[0] in each.label for each in comparison.results)]
    where = f" ({' '.join(part for part in (group.clock, group.version) if part)})" if apart else ""
    shown, seeds = f"{measure.split} {measure.title}".strip(), counted(len(group.seeds), "seed")
    return Table(
        title=f"{group.workload}, {group.budget}{where}",
        caption=", ".join(part for part in (shown, WAYS[measure.higher_is_better], seeds) if part),
        columns=columns,
        rows=tuple(_row(each, comparison, columns, waived.get(each.key)) for each in comparison.results),
        remarks=(*(Remark("note", line, NAMES) for line in used), *remarks(comparison, apart=apart)),
        statement=statement(comparison) if stated else "",
    )


def statement(comparison: Comparison) -> str:
    """Return what a caption in a paper states: what is shown, n, budget, clock and hardware."""
    group, measure = comparison.group, comparison.measure
    way = WAYS[measure.higher_is_better]
    shown = f"{measure.split} {measure.title}".strip()
    clock = f", counted in {SECONDS[group.clock]}" if group.clock in SECONDS else ""
    percent = f"{100 * comparison.confidence:g} %"
    seeds = f"n = {counted(len(group.seeds), 'seed')}"
    mean = f"geometric mean over {seeds} and its" if measure.is_cost else f"mean over {seeds} and half of its"
    return (
        f"{shown[:1].upper()}{shown[1:]} on {group.workload}{f' ({way})' if way else ''}: {mean} {percent} interval, "
        f"and the difference to {named(comparison.against)}, paired by seed, with its interval, corrected for the "
        f"number of sets. Budget of a trial: {group.budget}{clock}, evaluation left out. {hardware(group.records)}"
    )


def _columns(comparison: Comparison, with_waived: bool) -> tuple[Column, ...]:
    """Return the columns that have something to show."""
    results, clock = comparison.results, comparison.group.clock
    against = next((each.label for each in results if each.is_baseline), comparison.against)
    wanted = [
        (Column("technique", "technique"), True),
        (Column("n", "n", "right"), True),
        (Column("mean", comparison.measure.title, "decimal"), True),
        (Column("difference", f"Δ vs {against}", "decimal"), any(each.difference for each in results)),
        (Column("waived", "Δ, own work waived", "decimal", optional=True), with_waived),
        (Column("verdict", "verdict"), any(each.verdict for each in results)),
        (
            Column("time_to_target", f"{unit_of(clock)} to target", "decimal", optional=True),
            any(each.time_to_target for each in results),
        ),
        (
            Column("examples_per_second", "examples/s", "decimal", optional=True),
            any(each.examples_per_second.n for each in results),
        ),
        (
            Column("peak_memory_mib", "peak MiB", "decimal", optional=True),
            any(each.peak_memory_mib is not None for each in results),
        ),
        (
            Column("setup_seconds", "set-up s", "decimal", optional=True),
            any(each.setup_seconds.n for each in results),
        ),
    ]
    return tuple(column for column, shown in wanted if shown)


def _row(each: SetResult, comparison: Comparison, columns: Sequence[Column], waived: Estimate | None) -> Row:
    texts = {
        "technique": each.label,
        "n": f"{len(each.values)}/{each.planned}",
        "mean": _mean(each, comparison),
        "difference": numbers.difference(each.difference) if each.difference else NOTHING,
        "waived": numbers.difference(waived) if waived else NOTHING,
        "verdict": (each.verdict or NOTHING) + (" ★" if each.best else ""),
        "time_to_target": _time_to_target(each, comparison),
        "examples_per_second": _speed(each),
        "peak_memory_mib": _number(each.peak_memory_mib),
        "setup_seconds": _number(each.setup_seconds.mean),
    }
    cells = tuple(texts[column.key] for column in columns)
    values = row_values(each, comparison, waived)
    return Row(cells, values, str(each.verdict or ""), each.best, each.is_under_floor)


def _middle(each: SetResult, comparison: Comparison) -> Estimate | Ratio:
    """Return the mean of a set: of times, speeds and other costs the geometric one, for these are never negative."""
    is_cost, values = comparison.measure.is_cost, [*each.values.values()]
    return positive_mean(values, comparison.confidence) if is_cost else each.mean


def _mean(each: SetResult, comparison: Comparison) -> str:
    marks = Counter(map(numbers.nonfinite, each.nonfinite))
    if not each.values:
        return ", ".join(marks) or NOTHING
    found = ", ".join(f"{count} {mark}" for mark, count in marks.items())
    middle = _middle(each, comparison)
    shown = numbers.geometric(middle) if isinstance(middle, Ratio) else numbers.mean(middle)
    return shown + (f" ({found})" if found else "")


def _time_to_target(each: SetResult, comparison: Comparison) -> str:
    found = each.time_to_target
    if found is None or not found.seeds:
        return NOTHING
    if found.mean.mean is not None:
        return numbers.geometric(found.mean)
    return f"{found.reached}/{found.seeds} reached" if found.reached else f"> {_budget_amount(comparison)}"


def _budget_amount(comparison: Comparison) -> str:
    group = comparison.group
    try:
        return numbers.exact(Budget.parse(group.budget, more_units=[group.clock]).amount)
    except InvalidBudget:
        return "budget"  # of a plugin's clock that no record names


def _speed(each: SetResult) -> str:
    times = each.relative_speed
    ratio = "" if times is None else f" ({f'{times:.2f}' if 0.1 <= times < 10 else numbers.significant(times)}{TIMES})"
    return _number(each.examples_per_second.mean) + ratio


def _number(value: float | None) -> str:
    return NOTHING if value is None else numbers.significant(value)


def row_values(each: SetResult, comparison: Comparison, waived: Estimate | None = None) -> dict[str, Value]:
    """Return the numbers of a row in full precision, under the same keys for all rows of all tables."""
    group, measure = comparison.group, comparison.measure
    target, middle = each.time_to_target, _middle(each, comparison)
    return {
        "workload": group.workload,
        "budget": group.budget,
        "clock": group.clock,
        "effbench": group.version,
        "technique": label(each.techniques),
        "against": comparison.against,
        "techniques": json.dumps(plain(each.techniques), ensure_ascii=False),
        "split": measure.split,
        "metric": measure.name,
        "n": len(each.values),
        "seeds": each.planned,
        "mean": middle.mean,
        "mean_low": middle.low,
        "mean_high": middle.high,
        "difference": each.difference.mean if each.difference else None,
        "difference_low": each.difference.low if each.difference else None,
        "difference_high": each.difference.high if each.difference else None,
        "pairs": each.difference.n if each.difference else 0,
        "p_value": each.p_value,
        "p_holm": each.p_adjusted,
        "noise_floor": comparison.noise_floor or None,
        "under_floor": each.is_under_floor,
        "waived": waived.mean if waived else None,
        "waived_low": waived.low if waived else None,
        "waived_high": waived.high if waived else None,
        "verdict": str(each.verdict or ""),
        "decided": each.decided,
        "best": each.best,
        "spent_at_target": target.mean.mean if target else None,
        "spent_at_target_low": target.mean.low if target else None,
        "spent_at_target_high": target.mean.high if target else None,
        "reached_target": target.reached if target else None,
        "examples_per_second": each.examples_per_second.mean,
        "examples_per_second_low": each.examples_per_second.low,
        "examples_per_second_high": each.examples_per_second.high,
        "relative_speed": each.relative_speed,
        "peak_memory_mib": each.peak_memory_mib,
        "setup_seconds": each.setup_seconds.mean,
        "statuses": " ".join(f"{status}={count}" for status, count in sorted(each.statuses.items())),
        "problems": "; ".join(problems_of(each)),
    }
