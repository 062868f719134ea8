"""Measure prices: every set of techniques takes turns with the baseline, step by step, in one process."""

from __future__ import annotations

import contextlib
import functools
import random
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from effbench.distributed.group import Group
from effbench.meters import count_flop
from effbench.pricing import Phase, Price, Trouble, phase_starts, relative_cost
from effbench.recipe import Recipe, Training
from effbench.switches import Switches
from effbench.train import ALONE, Positions, set_rate, start, take_step
from effbench.trial import what_it_means

Cost = Callable[[Callable[[], Any]], float]  # work -> what it cost

_WARM_UP = 3  # untimed steps of every lane: the first ones build optimizer state
_MOST_PHASES = 16


@dataclass(slots=True)
class Lane:
    """A run that stands still at one progress, and takes a step when it is its turn."""

    name: str
    progress: float
    training: Training
    positions: Positions
    lumps: list[tuple[float, float]]  # (progress, cost) of what was done once on the way
    size: float
    seconds: list[float]
    switches: Switches

    def step(self, cost: Cost) -> float:
        """Take one step and return its cost, summed over the ranks."""
        self.switches.throw()
        spent = self.training.group.together().sum_float(cost(lambda: take_step(self.training, self.positions)))
        self.switches = Switches.now()
        return spent


def cpu_seconds(work: Callable[[], Any]) -> float:
    """Return the CPU seconds that `work` takes in this process."""
    before = time.process_time()
    work()
    return time.process_time() - before


def gpu_seconds(work: Callable[[], Any]) -> float:
    """Return the seconds until a GPU has done what `work` tells it."""
    torch.cuda.synchronize()
    before = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - before


def trouble(fault: BaseException) -> Trouble:
    """Return what a fault means for the trials of the set that raised it."""
    return Trouble(*what_it_means(fault), "".join(traceback.format_exception(fault)))


@contextlib.contextmanager
def blamed(name: str, troubles: dict[str, Trouble], group: Group = ALONE) -> Iterator[None]:
    """Charge what is raised inside to one set, so that the others get their price.

    Not where there are several ranks: one that goes on alone would talk at cross purposes with the others.
    """
    try:
        yield
    except (Exception, SystemExit) as fault:  # a technique may raise anything, and costs its own price only
        if group.size > 1:
            raise
        troubles[name] = trouble(fault)


def price(
    baseline: Recipe,
    sets: Mapping[str, Callable[[], Recipe]],
    *,
    unit: str,
    step_seconds: float,
    rounds: int = 100,
    seconds: float = 2.0,
    group: Group = ALONE,
    device: str = "cpu",
    hear: Callable[[float], object] = bool,
) -> dict[str, Price | Trouble]:
    """Return the price of every set, or why it has none.

    sets: name -> a function that makes the finished recipe; all of them need `group.size` processes.
    unit: "reference" (seconds, timed in turns) or "flop" (counted once a phase).
    step_seconds: reference-seconds of one baseline step.
    rounds, seconds: time at least so many rounds, and so long per lane.
    hear: is told the share of the rounds that is done, now and then.
    """
    cost = count_flop if unit == "flop" else gpu_seconds if device.startswith("cuda") else cpu_seconds
    plain, troubles = Switches.now(), dict[str, Trouble]()
    home = make_lane("", baseline, 0.0, ALONE, cost)
    lanes: dict[str, list[Lane]] = {}
    for name, make in sets.items():
        plain.throw()
        with blamed(name, troubles, group):
            lanes[name] = lanes_of(name, make(), group, cost)
        hear(0.0)
    if unit == "flop":
        references = [home.step(cost)]
        _once(lanes, cost, troubles, group)
    else:
        references = _take_turns(home, lanes, cost, (rounds, seconds), troubles, group, hear)
    base = step_seconds if unit == "reference" else references[0]  # what a step of the baseline costs, in the unit
    prices = dict[str, Price]()
    for name, mine in lanes.items():
        with blamed(name, troubles, group):
            prices[name] = _price_of(mine, references, base, unit, cost)
    plain.throw()
    return {**prices, **troubles}


def _price_of(lanes: list[Lane], references: list[float], base: float, unit: str, cost: Cost) -> Price:
    phases = []
    for lane in lanes:
        ratio, low, high = relative_cost(lane.seconds, references)
        phases.append(Phase(lane.progress, ratio * base, ratio, low, high, len(lane.seconds), lane.size))
    last, scale = lanes[-1], base / (sum(references) / len(references))  # cost here -> cost in the unit
    last.switches.throw()
    group, recipe = last.training.group, last.training.recipe
    lumps = [*last.lumps, (1.0, group.sum_float(cost(lambda: recipe.eval_model(last.training))))]
    worth_paying = 0.1 * base  # what is less is the noise of measuring it once
    paid = tuple((progress, spent * scale) for progress, spent in lumps if spent * scale > worth_paying)
    return Price(unit, tuple(phases), paid).check()


def _once(lanes: dict[str, list[Lane]], cost: Cost, troubles: dict[str, Trouble], group: Group) -> None:
    for name in list(lanes):
        with blamed(name, troubles, group):
            for lane in lanes[name]:
                lane.seconds.append(lane.step(cost))
        if name in troubles:
            del lanes[name]


def _take_turns(
    home: Lane,
    lanes: dict[str, list[Lane]],
    cost: Cost,
    least: tuple[int, float],
    troubles: dict[str, Trouble],
    group: Group,
    hear: Callable[[float], object],
) -> list[float]:
    """Time baseline and lanes in turns; return the baseline's seconds by round. A set that raises is left out.

    Every round has an order of its own: who runs after a big model finds its caches cold (in a fixed order the baseline
    against itself was 1.2 % off).
    """
    rounds, seconds = least
    spent = 0.0
    orders = random.Random(0)  # noqa: S311 - fairness, not secrecy; the same on every rank
    while lanes:
        everyone = [home, *(lane for mine in lanes.values() for lane in mine)]
        needed = seconds * (len(everyone) - 1)
        if len(home.seconds) >= rounds and spent >= needed:
            break
        for lane in orders.sample(everyone, len(everyone)):
            with blamed(lane.name, troubles, group) if lane is not home else contextlib.nullcontext():
                lane.seconds.append(lane.step(cost))
                spent += lane.seconds[-1]
        for name in set(lanes) & set(troubles):
            del lanes[name]
        spent = group.agree(spent)
        hear(min(1.0, len(home.seconds) / rounds, spent / needed if needed else 1.0))
    return home.seconds


def lanes_of(name: str, recipe: Recipe, group: Group, cost: Cost) -> list[Lane]:
    """Return one lane for every phase of a recipe."""
    probe = start(recipe, 0, group=group)
    positions = Positions(recipe.sampler(probe))

    def shape_at(progress: float) -> tuple[int, ...]:
        probe.progress = progress
        drawn = positions.take(recipe.batch_size(progress))
        return tuple(recipe.transform(recipe.loader(drawn, probe), probe).inputs.shape)

    starts = phase_starts(shape_at, (*recipe.phases, *(milestone.progress for milestone in recipe.milestones)))
    if len(starts) > _MOST_PHASES:  # shapes that change all the time: price slices of the budget
        starts = [i / _MOST_PHASES for i in range(_MOST_PHASES)]
    return [make_lane(name, recipe, progress, group, cost) for progress in starts]


def make_lane(name: str, recipe: Recipe, progress: float, group: Group, cost: Cost) -> Lane:
    """Start a run, do all that is due until `progress`, and warm it up."""
    training = start(recipe, 0, group=group)
    positions = Positions(recipe.sampler(training))
    lane = Lane(name, progress, training, positions, [], 0.0, [], Switches.now())
    for milestone in sorted(recipe.milestones, key=lambda milestone: milestone.progress):
        if milestone.progress <= progress:
            training.progress = milestone.progress
            take_step(training, positions)  # so that there is an optimizer state to carry over
            spent = group.sum_float(cost(functools.partial(milestone.action, training)))
            lane.lumps.append((milestone.progress, spent))
    training.progress = progress
    set_rate(training, recipe.lr_schedule(progress))
    for _ in range(_WARM_UP):
        take_step(training, positions)
    drawn = positions.take(recipe.batch_size(progress))
    shaped = recipe.transform(recipe.loader(drawn, training), training).inputs
    elements = len(drawn) * shaped[0].numel()  # drawn, not kept: a selection costs a pass over what it leaves out
    lane.size = float(elements * sum(p.numel() for p in training.model.parameters()))
    lane.switches = Switches.now()
    return lane
