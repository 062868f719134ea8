"""Measure prices: every set of techniques takes turns with the baseline, step by step, in one process."""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from effbench.distributed.group import Group
from effbench.pricing import Phase, Price, phase_starts, relative_cost
from effbench.recipe import Recipe, Training
from effbench.train import ALONE, Positions, set_rate, start, take_step

_WARM_UP = 3  # untimed steps of every lane: the first ones build optimizer state
_MOST_PHASES = 16


@dataclass(slots=True)
class Lane:
    """A run that stands still at one progress, and takes a step when it is its turn."""

    name: str
    progress: float
    training: Training
    positions: Positions
    lumps: list[tuple[float, float]]  # (progress, CPU seconds) of what was done once on the way
    size: float
    seconds: list[float]

    def step(self, cost: Callable[[Callable[[], None]], float]) -> float:
        """Take one step and return its cost, summed over the ranks."""
        return self.training.group.sum_float(cost(lambda: take_step(self.training, self.positions)))


def cpu_seconds(work: Callable[[], Any]) -> float:
    """Return the CPU seconds that `work` takes in this process; on a GPU, the seconds until the device is done."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        before = time.perf_counter()
        work()
        torch.cuda.synchronize()
        return time.perf_counter() - before
    before = time.process_time()
    work()
    return time.process_time() - before


def flop(work: Callable[[], Any]) -> float:
    """Return the floating-point operations of `work`, attention counted by its MATH backend."""
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        work()
    return float(counter.get_total_flops())


def price(
    baseline: Recipe,
    sets: Mapping[str, Recipe],
    *,
    unit: str,
    step_seconds: float,
    rounds: int = 100,
    seconds: float = 2.0,
    group: Group = ALONE,
    hear: Callable[[float], object] = bool,
) -> dict[str, Price]:
    """Return the price of every set, the baseline's under its name.

    sets: name -> finished recipe; all of them need `group.size` processes.
    unit: "reference" (CPU seconds, timed in turns) or "flop" (counted once a phase).
    step_seconds: reference-seconds of one baseline step.
    rounds, seconds: time at least so many rounds, and so long per lane.
    hear: is told the share of the rounds that is done.
    """
    home = make_lane("", baseline, 0.0, ALONE)
    lanes = [lane for name, recipe in sets.items() for lane in lanes_of(name, recipe, group)]
    if unit == "flop":
        return _counted(home, lanes, sets)
    references = _take_turns(home, lanes, rounds, seconds, group, hear)
    unit_seconds = step_seconds / (sum(references) / len(references))  # CPU seconds here -> reference-seconds
    prices = {}
    for name, recipe in sets.items():
        mine = [lane for lane in lanes if lane.name == name]
        phases = []
        for lane in mine:
            ratio, low, high = relative_cost(lane.seconds, references)
            phases.append(Phase(lane.progress, ratio * step_seconds, ratio, low, high, len(lane.seconds), lane.size))
        lumps = [(p, cost * unit_seconds) for p, cost in mine[-1].lumps]
        lumps.append((1.0, _last_lump(mine[-1], recipe, cpu_seconds) * unit_seconds))
        prices[name] = Price("reference", tuple(phases), _worth_paying(lumps, step_seconds)).check(name)
    return prices


def _take_turns(
    home: Lane, lanes: list[Lane], rounds: int, seconds: float, group: Group, hear: Callable[[float], object]
) -> list[float]:
    """Time baseline and lanes in turns; return the baseline's seconds by round.

    Every round has an order of its own: who runs after a big model finds its caches cold (in a fixed order the baseline
    against itself was 1.2 % off).
    """
    references: list[float] = []
    spent, needed = 0.0, seconds * len(lanes)
    orders = random.Random(0)  # noqa: S311 - fairness, not secrecy; the same on every rank
    everyone = [home, *lanes]
    while len(references) < rounds or spent < needed:
        for lane in orders.sample(everyone, len(everyone)):
            cost = lane.step(cpu_seconds)
            lane.seconds.append(cost)
            spent += cost
        references.append(home.seconds[-1])
        spent = group.agree(spent)
        hear(min(1.0, len(references) / rounds, spent / needed if needed else 1.0))
    return references


def _counted(home: Lane, lanes: list[Lane], sets: Mapping[str, Recipe]) -> dict[str, Price]:
    base = home.step(flop)
    prices = {}
    for name, recipe in sets.items():
        mine = [lane for lane in lanes if lane.name == name]
        costs = [lane.step(flop) for lane in mine]
        phases = tuple(
            Phase(lane.progress, cost, cost / base, cost / base, cost / base, 1, lane.size)
            for lane, cost in zip(mine, costs, strict=True)
        )
        prices[name] = Price("flop", phases, ((1.0, _last_lump(mine[-1], recipe, flop)),)).check(name)
    return prices


def lanes_of(name: str, recipe: Recipe, group: Group = ALONE) -> list[Lane]:
    """Return one lane for every phase of a recipe."""
    probe = start(recipe, 0, group=group)
    positions = Positions(recipe.sampler(probe))

    def shape_at(progress: float) -> tuple[int, ...]:
        probe.progress = progress
        drawn = positions.take(recipe.batch_size(progress))
        return tuple(recipe.transform(recipe.loader(drawn, probe), probe).inputs.shape)

    starts = phase_starts(shape_at, tuple(milestone.progress for milestone in recipe.milestones))
    if len(starts) > _MOST_PHASES:  # shapes that change all the time: price slices of the budget
        starts = [i / _MOST_PHASES for i in range(_MOST_PHASES)]
    return [make_lane(name, recipe, progress, group) for progress in starts]


def make_lane(name: str, recipe: Recipe, progress: float, group: Group) -> Lane:
    """Start a run, do all that is due until `progress`, and warm it up."""
    training = start(recipe, 0, group=group)
    positions = Positions(recipe.sampler(training))
    lane = Lane(name, progress, training, positions, [], 0.0, [])
    for milestone in sorted(recipe.milestones, key=lambda milestone: milestone.progress):
        if milestone.progress <= progress:
            training.progress = milestone.progress
            take_step(training, positions)  # so that there is an optimizer state to carry over
            cost = group.sum_float(cpu_seconds(functools.partial(milestone.action, training)))
            lane.lumps.append((milestone.progress, cost))
    training.progress = progress
    set_rate(training, recipe.lr_schedule(progress))
    for _ in range(_WARM_UP):
        take_step(training, positions)
    drawn = positions.take(recipe.batch_size(progress))
    elements = recipe.transform(recipe.loader(drawn, training), training).inputs.numel()
    lane.size = float(elements * sum(p.numel() for p in training.model.parameters()))
    return lane


def _last_lump(lane: Lane, recipe: Recipe, cost: Callable[[Callable[[], Any]], float]) -> float:
    """Return the cost of preparing the weights that are evaluated."""
    return lane.training.group.sum_float(cost(lambda: recipe.eval_model(lane.training)))


def _worth_paying(lumps: list[tuple[float, float]], step: float) -> tuple[tuple[float, float], ...]:
    """Leave out lumps below a tenth of a step: that is the noise of measuring them once."""
    return tuple((progress, cost) for progress, cost in lumps if cost > 0.1 * step)
