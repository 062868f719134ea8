"""Where the numbers come from: machines, versions, what failed, and the commands that make them again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from effbench.analysis.comparison import Comparison
from effbench.records import Record
from effbench.report.remarks import problems_of
from effbench.report.settings import packages, settings, values
from effbench.report.words import agreed, counted, spans
from effbench.toml import key, literal

_MOST = 8  # values of one fact that are shown


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that records say of where they were made, and how many of them say it."""

    name: str
    values: tuple[tuple[str, int], ...]  # the most frequent first


def environment(records: Sequence[Record]) -> list[Fact]:
    """Return machines, versions and settings; where records differ, each value with its count."""
    found = settings(records)
    named = {
        "machine": "machine",
        "memory_gib": "memory, GiB",
        "threads": "threads a trial",
        "jobs": "trials at a time",
    }
    named |= {package: package for package in packages(found)}
    facts = [Fact(title, tuple(values(found, name).most_common(_MOST))) for name, title in named.items()]
    begun = [record.started for record in records if record.started]
    if begun:
        facts.append(Fact("started", ((f"{min(begun)} to {max(begun)}", len(begun)),)))
    return [fact for fact in facts if fact.values]


@dataclass(frozen=True, slots=True)
class Failure:
    """What became of trials that are not scored."""

    workload: str
    text: str  # with its reason, seeds and log
    refused: bool  # on purpose, as a technique that does not apply


def failures(comparisons: Sequence[Comparison]) -> list[Failure]:
    """Return all failures and refusals, failures first."""
    found = [
        Failure(f"{comparison.group.workload}, {comparison.group.budget}", text, set(each.statuses) == {"skipped"})
        for comparison in comparisons
        for each in comparison.results
        for text in problems_of(each)
    ]
    return sorted(found, key=lambda failure: failure.refused)


@dataclass(frozen=True, slots=True)
class Commands:
    """How to make the numbers again."""

    suite: str  # a TOML file, "" where it is not known
    file: str  # its name
    lines: tuple[str, ...]  # of a shell


def reproduce(records: Sequence[Record], suites: Sequence[Mapping[str, Any]], folders: Sequence[str]) -> Commands:
    """Return the suite as it was run, and the commands that run it again and show its results.

    suites: what the results folders say was run; without any, the commands name the suite of the records.
    """
    ran = [record for record in records if record.status != "not_started"]
    versions = {
        package: agreed(record.versions.get(package, "") for record in ran) for package in ("effbench", "torch")
    }
    pinned = [f"{package}=={version.partition('+')[0]}" for package, version in versions.items() if version]
    lines = [f"pip install {' '.join(map(shlex.quote, pinned))}"] if pinned else []
    names = list(dict.fromkeys(record.suite for record in records if record.suite))
    one = suites[0] if len(suites) == 1 and len(names) <= 1 else None
    for name in names or ["SUITE"]:
        file = f"{name}.toml" if one else name
        lines.append(" ".join(["effbench run", shlex.quote(file), *_options(records, name, one)]))
    shown = " ".join(map(shlex.quote, folders)) or f"results/{shlex.quote(names[0])}" if names else ""
    lines += [f"effbench table {shown}", f"effbench report {shown} -o report.html"]
    return Commands(
        Markup.escape("\n".join(_toml(one))) if one else "", f"{names[0]}.toml" if one and names else "", tuple(lines)
    )


def _options(records: Sequence[Record], name: str, known: Mapping[str, Any] | None) -> Iterator[str]:
    mine = [record for record in records if record.suite == name] or list(records)
    found = settings(mine)
    if known is None:
        yield f"--seeds {spans(sorted({record.seed for record in mine}))}"
    if (threads := agreed(values(found, "threads"))) and threads != "1":
        yield f"--threads {threads}"
    if jobs := agreed(values(found, "jobs")):
        yield f"--jobs {jobs}"
    device = agreed(values(found, "device"))
    if device and device != "cpu":
        yield f"--device {shlex.quote(device)}"


def _toml(suite: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a suite's file, as `store.write_json` kept it."""
    for name in ("name", "summary", "budget", "budgets", "total", "seeds", "workloads"):
        if suite.get(name):
            yield f"{name} = {literal(suite[name])}"
    for chosen in suite.get("sets", ()):
        if chosen:
            yield ""
            yield "[[techniques]]"
            yield from (f"{key(name)} = {literal(options)}" for name, options in chosen.items())


def seeds_of(comparisons: Sequence[Comparison]) -> str:
    """Write how many seeds the comparisons have: `3 seeds`, or `1 to 5 seeds`."""
    found = sorted({len(each.group.seeds) for each in comparisons})
    return (
        counted(found[-1], "seed") if len(found) == 1 else f"{found[0]} to {found[-1]} seeds" if found else "no seeds"
    )
