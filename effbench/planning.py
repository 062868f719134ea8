"""What a suite will do: which sets apply where, in which order the trials run, which are done, how long it may take."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from effbench import identity, machine
from effbench.budget import Budget
from effbench.errors import DataUnavailable, EffbenchError, UnknownName
from effbench.pricing import PRICED_UNITS, Price, Trouble, baseline_price, number_of_steps
from effbench.records import Record, canonical, label
from effbench.store import FINAL
from effbench.trial import Trial

if TYPE_CHECKING:
    from effbench.plugins import Plugins
    from effbench.suite import Suite
    from effbench.workloads.workload import Workload


MOST = 1024  # processes side by side, or threads


@dataclass(frozen=True, slots=True)
class Settings:
    """How to run a suite here: what the suite does not say.

    jobs: processes side by side.
    threads: of each process.
    device: where they compute: "cpu", "cuda", "cuda:1", ...
    named: plugins as they were named on the command line.
    data: data set -> folder of a local copy.
    """

    jobs: int = 1
    threads: int = 1
    device: str = "cpu"
    named: tuple[str, ...] = ()
    data: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        """Refuse what no machine has, and the device that this one lacks."""
        for name, number in (("jobs", self.jobs), ("threads", self.threads)):
            if type(number) is not int or not 1 <= number <= MOST:
                raise EffbenchError(f"{name} = {number!r}: write a whole number from 1 to {MOST}")
        machine.check_device(self.device)


@dataclass(frozen=True, slots=True)
class Composed:
    """What comes of composing a set of techniques with a workload's baseline.

    processes: how many it trains in.
    refusal: why it makes no sense; "" where it does.
    trouble: what else a technique raised or did, which will be told as the failure of its trials.
    """

    processes: int = 1
    refusal: str = ""
    trouble: Trouble | None = None

    @property
    def can_run(self) -> bool:
        """Whether there is anything to train."""
        return not self.refusal and self.trouble is None

    def to_plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Composed:
        """Return what `to_plain` was made of."""
        trouble = plain["trouble"]
        return cls(plain["processes"], plain["refusal"], trouble and Trouble(**trouble))


@dataclass(frozen=True, slots=True)
class Cell:
    """A set of techniques on a workload, for a budget: its trials differ by the seed alone."""

    workload: str
    techniques: Mapping[str, Mapping[str, Any]]
    budget: Budget
    composed: Composed = Composed()

    @property
    def label(self) -> str:
        """The set, as a person writes it."""
        return label(self.techniques)


@dataclass(frozen=True, slots=True)
class Planned:
    """One trial of a suite, before it runs.

    trial: None as long as its price is not known.
    kept: its record, where an earlier run has finished it.
    why: what speaks against a record of an earlier run that asked for the same; "" where there is none.
    """

    cell: Cell
    seed: int
    trial: Trial | None
    kept: Record | None = None
    why: str = ""


def use_copies(settings: Settings, plugins: Plugins) -> None:
    """Take data sets from the local copies that `settings` name.

    Raises:
        UnknownName: there is no such data set.
        DataUnavailable: the data set is not taken from a folder, or the folder is not what it should be.
    """
    known = plugins.offers["effbench_datasets"]
    for name, folder in (settings.data or {}).items():
        if name not in known:
            raise UnknownName("data set", name, known)
        if known[name].from_folder is None:
            raise DataUnavailable(f"data set {name!r} is not taken from a folder; it comes from {known[name].origin}")
        known[name].from_folder(Path(folder))


def budgets_of(suite: Suite, workload: Workload, units: Iterable[str] = ()) -> list[Budget]:
    """Return all budgets of a workload's trials: the rungs of the ladder, then the steps that they buy the baseline."""
    rungs = suite.rungs_of(workload, units)
    if not suite.per_step:
        return rungs
    usual = baseline_price(workload.step_seconds)
    return [*rungs, *(Budget(number_of_steps(usual, rung.amount), "steps") for rung in rungs)]


def in_running_order(suite: Suite, cells: Sequence[Cell]) -> list[tuple[Cell, int]]:
    """Return (cell, seed): seed by seed, cells shuffled inside, so that a slow hour hits all alike."""
    ordered = []
    for seed in suite.seeds:
        shuffled = list(cells)
        random.Random(f"{suite.name} {seed}").shuffle(shuffled)  # noqa: S311 - fairness, not secrecy
        ordered += [(cell, seed) for cell in shuffled]
    return ordered


def trial_of(
    suite: Suite, cell: Cell, seed: int, price: Mapping[str, Any] | None, plugins: Plugins, settings: Settings
) -> Trial:
    """Return the trial of a cell and a seed, with its content key."""
    asked = Trial(
        suite=suite.name,
        workload=cell.workload,
        techniques=cell.techniques,
        seed=seed,
        budget=str(cell.budget),
        processes=cell.composed.processes,
        price=price,
        threads=settings.threads,
        jobs=settings.jobs,
        device=settings.device,
    )
    parts = identity.parts(asked, plugins)
    return Trial.from_plain({**asked.to_plain(), "identity": parts, "key": identity.key(parts)})


def is_priced(cell: Cell) -> bool:
    """Tell whether the cell's budget needs a price."""
    return cell.budget.unit in PRICED_UNITS and cell.composed.can_run


def seconds_of(cell: Cell, price: Price | None, step_seconds: float, records: Sequence[Record] = ()) -> float | None:
    """Guess the seconds of one trial on this machine; None where nothing tells.

    records: of earlier trials, of which those of the same set tell most, then those of the same workload.
    """
    budget = str(cell.budget)
    like = [r for r in records if r.wall_seconds and r.workload == cell.workload and r.budget == budget]
    same = [r for r in like if canonical(r.techniques) == canonical(cell.techniques)]
    if like:
        return fmean(record.wall_seconds for record in same or like)
    match cell.budget.unit:
        case "seconds" | "cpu" | "reference":
            return cell.budget.amount / cell.composed.processes if cell.budget.unit == "cpu" else cell.budget.amount
        case "steps":
            return cell.budget.amount * (price.at(0.0) if price and price.unit == "reference" else step_seconds)
        case _:
            return None


def plan(
    suite: Suite,
    cells: Sequence[Cell],
    known_prices: Mapping[str, Any],
    done: Mapping[str, Record],
    plugins: Plugins,
    settings: Settings,
) -> list[Planned]:
    """Return all trials of a suite in running order: which are kept, which will run, and why that again.

    known_prices: the price list of the results folder.
    done: the record that counts for each key, of earlier runs; empty where all should run again.
    """
    from effbench import prices

    asked = {(cell.workload, str(cell.budget)) for cell in cells}
    earlier = dict[tuple[str, str, int, str], Record]()
    for record in done.values():
        budget = record.budget if (record.workload, record.budget) in asked else ""  # no longer asked for
        earlier[record.workload, canonical(record.techniques), record.seed, budget] = record
    planned = []
    for cell, seed in in_running_order(suite, cells):
        try:
            price = prices.price_of(cell, known_prices, plugins, settings)
        except KeyError:
            planned.append(Planned(cell, seed, None))
            continue
        trial = trial_of(suite, cell, seed, price, plugins, settings)
        same = (cell.workload, canonical(cell.techniques), seed)
        found = done.get(trial.key) or earlier.get((*same, str(cell.budget))) or earlier.get((*same, ""))
        if found is not None and found.key == trial.key and found.status in FINAL:
            planned.append(Planned(cell, seed, trial, found))
        else:
            planned.append(Planned(cell, seed, trial, None, why_again(trial, found)))
    return planned


def why_again(trial: Trial, found: Record | None) -> str:
    """Say why a trial runs although there is a record of the same set, workload and seed."""
    if found is None:
        return ""
    if found.key != trial.key:
        return "; ".join(identity.differences(found.identity, trial.identity))
    first = found.reason.partition("\n")[0]
    return f"{found.status} last time: {first}" if first else f"{found.status} last time"
