"""What a suite will do: which sets apply where, in which order the trials run, and how long that may take."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from effbench import identity
from effbench.budget import Budget
from effbench.errors import Refusal
from effbench.pricing import PRICED_UNITS, Price
from effbench.records import label
from effbench.techniques import compose
from effbench.trial import Trial

if TYPE_CHECKING:
    from effbench.plugins import Plugins
    from effbench.suite import Suite


@dataclass(frozen=True, slots=True)
class Settings:
    """How to run a suite here: what the suite does not say.

    named: plugins as they were named on the command line.
    data: data set -> folder of a local copy.
    """

    jobs: int = 1
    threads: int = 1
    device: str = "cpu"
    named: tuple[str, ...] = ()
    data: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """A set of techniques on a workload: its trials differ by the seed alone.

    refusal: why it makes no sense; "" where it does.
    """

    workload: str
    techniques: Mapping[str, Mapping[str, Any]]
    budget: Budget
    order: tuple[str, ...] = ()
    processes: int = 1
    refusal: str = ""

    @property
    def label(self) -> str:
        """The set, as a person writes it."""
        return label(self.techniques)


def cells_of(suite: Suite, plugins: Plugins, settings: Settings) -> list[Cell]:
    """Compose every set with every workload's baseline, so that refusals are known before anything trains.

    Raises:
        DataUnavailable: a workload's data is not here.
        InvalidTechnique: a technique does not accept its options.
    """
    units = plugins.offers["effbench_clocks"]
    cells = []
    for name in suite.workloads:
        workload = plugins.workloads[name]
        baseline = workload.recipe(torch.device(settings.device))
        budget = Budget.parse(suite.budget_of(workload), more_units=units)
        for techniques in suite.sets:
            try:
                recipe, order = compose(baseline, techniques, plugins.techniques)
            except Refusal as why:
                cells.append(Cell(name, techniques, budget, refusal=str(why)))
            else:
                cells.append(Cell(name, techniques, budget, tuple(order), recipe.processes))
    return cells


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
        price=price,
        threads=settings.threads,
        jobs=settings.jobs,
        device=settings.device,
        plugins=settings.named,
        data=dict(settings.data or {}),
    )
    parts = identity.parts(asked, plugins)
    return Trial.from_plain({**asked.to_plain(), "identity": parts, "key": identity.key(parts)})


def seconds_of(cell: Cell, price: Price | None, step_seconds: float) -> float | None:
    """Guess the seconds of one trial on this machine; None where the budget does not tell."""
    match cell.budget.unit:
        case "seconds" | "cpu" | "reference":
            return cell.budget.amount / cell.processes if cell.budget.unit == "cpu" else cell.budget.amount
        case "steps":
            return cell.budget.amount * (price.at(0.0) if price and price.unit == "reference" else step_seconds)
        case _:
            return None


def is_priced(cell: Cell) -> bool:
    """Tell whether the cell's budget needs a price."""
    return cell.budget.unit in PRICED_UNITS and not cell.refusal
