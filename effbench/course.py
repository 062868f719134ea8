"""The course of a trial: train until the budget is spent, look at validation on the way, judge at the end."""

from __future__ import annotations

import copy
import hashlib
import math
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import nn

from effbench.budget import Budget
from effbench.clock import CLOCKS, Clock, Ledger, PricedClock
from effbench.distributed.group import Group
from effbench.distributed.parts import parameter_count
from effbench.errors import Diverged, EffbenchError, UnknownName
from effbench.metering import read_meters
from effbench.pricing import PRICED_UNITS, Price
from effbench.recipe import Recipe, Training
from effbench.records import Record
from effbench.techniques import compose
from effbench.train import ALONE, start, train
from effbench.trial import Hear, Trial, nobody

if TYPE_CHECKING:
    from effbench.plugins import Plugins
    from effbench.workloads.workload import Workload

T = TypeVar("T")

_CURVE = (0.25, 0.5, 0.75)  # progresses at which validation is looked at; the end comes on top
_GRACE_SECONDS, _GRACE_SHARE = 5.0, 0.1  # beyond a budget in seconds before a trial is ended from outside
_PATIENCE, _PATIENCE_STEPS = 60.0, 20  # where seconds are not bounded: a step may take so long, or so many times
_FIRST_PATIENCE = 900.0  # the longest step before; the first may compile
_EVALUATION_PATIENCE = 600.0
_METERING_PATIENCE, _METERING_STEPS = 60.0, 100  # a step under an instrument is slow
_TELL_EVERY = 0.1  # seconds
_CHECK_ON_GPU = 16  # steps between two looks at the loss, for looking makes a GPU wait


@dataclass(slots=True)
class Course:
    """A trial under way, and where its story is told."""

    workload: Workload
    training: Training
    budget: Budget
    clock: Clock
    record: Record
    hear: Hear
    check_every: int = 1  # steps between two looks at the loss
    longest: float = 0.0  # seconds of the longest step but the first
    first: float = 0.0  # seconds of the first step
    to_judge: list[tuple[dict[str, float], nn.Module]] = field(default_factory=list)  # (point of the curve, model)


def train_and_judge(
    trial: Trial, plugins: Plugins, workload: Workload, record: Record, ledger: Ledger, hear: Hear
) -> None:
    """Do all that a trial is about, and write it into the record."""
    budget = Budget.parse(trial.budget, more_units=plugins.offers["effbench_clocks"])
    if trial.price is not None and Price.from_plain(trial.price).at(0.0) > budget.amount:
        no_work(record, f"{budget} buys no step")
        return

    def body(group: Group) -> None:
        is_first = group.rank == 0  # the others have copies of the record, which nobody reads
        seed_globals(trial.seed, group.rank)
        baseline = workload.recipe(torch.device(trial.device))
        recipe, record.order = compose(baseline, trial.techniques, plugins.techniques)
        check_processes(recipe, group)
        record.processes, record.threads = group.size, torch.get_num_threads()
        own_ledger, own_hear = (ledger, hear) if is_first else (Ledger(), nobody)
        training = start(recipe, trial.seed, epoch_examples=len(baseline.dataset), group=group, ledger=own_ledger)
        record.parameters = parameter_count(training)
        clock = clock_for(budget, trial.price, plugins)
        check_every = _CHECK_ON_GPU if trial.device.startswith("cuda") else 1
        _run_course(Course(workload, training, budget, clock, record, own_hear, check_every), plugins)
        own_ledger.close()
        record.cpu_seconds = group.sum_float(own_ledger.cpu_seconds())

    in_processes(trial.processes, body, torch.device(trial.device))


def in_processes(count: int, body: Callable[[Group], T], device: torch.device) -> T:
    """Run `body` in `count` processes that form a group; this one is rank 0, and gives the result.

    What is on a device is built by `body`, for a process that has used a GPU cannot be forked.
    """
    if count == 1:
        return body(ALONE)
    from effbench.distributed.launch import run_ranks

    return run_ranks(count, body, device=device)


def check_processes(recipe: Recipe, group: Group) -> None:
    """Raise EffbenchError where a recipe wants another number of processes than there are."""
    if recipe.processes != group.size:
        raise EffbenchError(f"the recipe wants {recipe.processes} processes, and the trial was given {group.size}")


def _run_course(course: Course, plugins: Plugins) -> None:
    """Train, judge and measure; where nothing was learned from, say so instead."""
    training, record = course.training, course.record
    before = fingerprint(training)
    spend(course)
    if training.group.together().agree(training.step) == 0:  # for all ranks must do the same from here on
        no_work(record, f"{course.budget} buys no step")
    elif before is not None and before == fingerprint(training):
        no_work(record, f"{training.step} steps left all weights as they were")
    else:
        judge(course)
        within = _METERING_PATIENCE + _METERING_STEPS * max(course.longest, course.first)
        course.hear({"event": "metering", "within": within})
        read_meters(plugins.offers["effbench_meters"], training, record)


def no_work(record: Record, reason: str) -> None:
    """Say that nothing was done that could be judged, nor any speed be told."""
    record.status, record.stop_reason, record.reason = "no_steps", "budget", reason
    record.curve, record.examples_per_second = [], None


def fingerprint(training: Training) -> tuple[float, ...] | None:
    """Return what changes when any weight does; None where ranks hold parts of the weights."""
    if training.group.size > 1:
        return None
    with torch.no_grad(), training.ledger.line("metering"):
        return tuple(float(weight.double().sum()) for weight in training.model.parameters())


def seed_globals(seed: int, rank: int) -> None:
    """Seed the generators that the standard library and numpy share among all, for techniques that draw from them."""
    number = int.from_bytes(hashlib.sha256(f"{seed} rank {rank}".encode()).digest()[:4], "big")
    random.seed(number)
    np.random.seed(number)  # the generator that is shared


def clock_for(budget: Budget, price: Mapping[str, Any] | None, plugins: Plugins) -> Clock:
    """Return a fresh clock for the unit of a budget.

    Raises:
        UnknownName: nobody counts in this unit.
        EffbenchError: the unit is priced, and there is no price.
    """
    if budget.unit in PRICED_UNITS:
        if price is None:
            raise EffbenchError(f"{budget} needs a price; `effbench calibrate SUITE` measures it")
        bought = Price.from_plain(price)
        return PricedClock(budget.amount, bought.at, bought.lumps)
    clocks = {**CLOCKS, **plugins.offers["effbench_clocks"]}
    if budget.unit not in clocks:
        raise UnknownName("clock", budget.unit, clocks)
    clock: Clock = clocks[budget.unit]()
    return clock


def spend(course: Course) -> None:
    """Train until the budget is spent; look at validation on the way."""
    training, budget, record = course.training, course.budget, course.record
    try:
        _take_steps(course)
        _check_loss(training)
        record.spent = course.clock.spent(training)
    except BaseException:  # whatever it is, it comes out as it is
        record.spent = training.progress * budget.amount  # a clock may have to ask other ranks, who are elsewhere now
        raise
    finally:
        record.steps, record.examples, record.tokens = training.step, training.examples, training.tokens
        _split_speeds(course)
    record.stop_reason = "budget"
    if budget.is_wall:
        record.overrun_seconds = max(0.0, record.spent - budget.amount)


def _take_steps(course: Course) -> None:
    training, looks = course.training, list(_CURVE)
    told = before = time.monotonic()
    _tell(course)
    for _ in train(training, course.budget, course.clock):
        now = time.monotonic()
        if training.step == 1:
            course.first = training.ledger.spent_wall()
        else:
            course.longest = max(course.longest, now - before)
        if training.step % course.check_every == 0:
            _check_loss(training)
        if looks and training.progress >= looks[0]:
            looks = [look for look in looks if look > training.progress]
            _look(course)
            told = 0.0
        if now - told > _TELL_EVERY or training.step == 1:
            told = now
            _tell(course)
        before = time.monotonic()


def _check_loss(training: Training) -> None:
    if training.losses is not None and not math.isfinite(loss := float(training.losses.sum())):
        raise Diverged(f"the loss was {loss} at step {training.step}")


def _tell(course: Course) -> None:
    """Tell how far the training is, and when the next word is due."""
    training, budget = course.training, course.budget
    if budget.is_wall:
        left = budget.amount * (1.0 - training.progress)
        within = left + max(_GRACE_SECONDS, _GRACE_SHARE * budget.amount)
    elif training.step == 0:
        within = _FIRST_PATIENCE
    else:
        within = max(_PATIENCE, _PATIENCE_STEPS * course.longest)
        if training.group.is_apart:  # at the end this rank may have to wait for one that is so many times slower
            within += _PATIENCE_STEPS * training.ledger.spent_wall()
    course.hear({"event": "progress", "progress": training.progress, "step": training.step, "within": within})


def _look(course: Course) -> None:
    """Add a point to the curve. Preparing the weights for a look is our wish, so it is off the clock.

    Where ranks go by themselves the others would train on meanwhile, so a copy is put by for the end.
    """
    training = course.training
    course.hear({"event": "evaluation", "within": _EVALUATION_PATIENCE})
    spent = course.clock.spent(training)
    point = {"progress": course.budget.progress(spent), "spent": spent, "steps": training.step}
    with training.ledger.line("evaluation"):
        model = training.recipe.eval_model(training)
        if training.group.rank == 0 and training.group.is_apart:
            course.to_judge.append((point, copy.deepcopy(model)))
        elif training.group.rank == 0:
            _add_point(course, point, evaluate(course.workload, model, "validation"))


def judge(course: Course) -> None:
    """Evaluate at the end of the budget, on validation and test."""
    training, record = course.training, course.record
    course.hear({"event": "evaluation", "within": _EVALUATION_PATIENCE})
    with training.extra():
        model = training.recipe.eval_model(training)
    if training.group.rank == 0:
        with training.ledger.line("evaluation"):
            _check_weights(model, training)
            for point, former in course.to_judge:
                _add_point(course, point, evaluate(course.workload, former, "validation"))
            record.metrics = {split: evaluate(course.workload, model, split) for split in ("validation", "test")}
        end = {"progress": 1.0, "spent": record.spent, "steps": training.step}
        _add_point(course, end, record.metrics["validation"])
    record.status = "ok"


def evaluate(workload: Workload, model: nn.Module, split: str) -> dict[str, float]:
    """Judge a model on "validation" or "test".

    Raises:
        EffbenchError: the workload says something that is no number, or does not say its own metric.
    """
    found = workload.evaluate(model, split)
    if workload.metric not in found:
        raise EffbenchError(f"{workload.name} is judged by {workload.metric}, and its evaluation says {sorted(found)}")
    try:
        return {name: float(value) for name, value in found.items()}
    except (TypeError, ValueError) as fault:
        raise EffbenchError(f"an evaluation of {workload.name} says something that is no number: {found}") from fault


def _check_weights(model: nn.Module, training: Training) -> None:
    broken = [name for name, weight in model.named_parameters() if not weight.isfinite().all()]
    if broken:
        raise Diverged(f"after {training.step} steps not all weights are finite: {', '.join(broken[:3])}")


def _add_point(course: Course, point: dict[str, float], metrics: Mapping[str, float]) -> None:
    metric = course.workload.metric
    course.record.curve = [*course.record.curve, {**point, metric: metrics[metric]}]


def _split_speeds(course: Course) -> None:
    """Split set-up from steady state: the first step compiles, allocates and warms up."""
    training, record, first = course.training, course.record, course.first
    later = training.ledger.spent_wall() - first
    if training.step > 1 and later > 0:
        usual = later / (training.step - 1)
        record.examples_per_second = training.examples * (training.step - 1) / training.step / later
        first = max(0.0, first - usual)
    record.setup_seconds = training.ledger.wall["setup"] + first
