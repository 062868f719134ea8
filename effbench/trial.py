"""One trial: from plain values to a record, whatever happens on the way."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from effbench import machine
from effbench.budget import Budget
from effbench.clock import CLOCKS, Clock, Ledger, PricedClock
from effbench.distributed.group import Group
from effbench.errors import Diverged, EffbenchError, Refusal, UnknownName
from effbench.pricing import PRICED_UNITS, Price
from effbench.recipe import Training
from effbench.records import Record
from effbench.techniques import compose
from effbench.train import ALONE, start, train

if TYPE_CHECKING:
    from effbench.meters import Meter
    from effbench.plugins import Plugins
    from effbench.workloads.workload import Workload

Event = dict[str, Any]
Hear = Callable[[Event], None]

_CURVE = (0.25, 0.5, 0.75)  # progresses at which validation is looked at; the end comes on top
_GRACE_SECONDS, _GRACE_SHARE = 5.0, 0.1  # beyond the budget before a trial is ended from outside
_PATIENCE = 60.0  # seconds without a step or an evaluation before a trial without a deadline counts as hung
_SETUP_PATIENCE = 900.0  # the same for set-up and the first step, which may compile
_TELL_EVERY = 0.1  # seconds
_CHECK_ON_GPU = 16  # steps between two looks at the loss: looking makes the device wait


class Stop(BaseException):
    """The parent process asks the trial to come to an end."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What to do, as plain values: it can be hashed, sent to another machine, and done again."""

    suite: str
    workload: str
    techniques: Mapping[str, Mapping[str, Any]]  # the set: name -> options; the baseline is the empty set
    seed: int
    budget: str
    price: Mapping[str, Any] | None = None  # the price list's entry, for budgets in priced units
    threads: int = 1
    jobs: int = 1
    device: str = "cpu"
    plugins: tuple[str, ...] = ()  # as they were named: files, folders, modules
    data: Mapping[str, str] = field(default_factory=dict)  # data set -> folder of a local copy
    identity: Mapping[str, str] = field(default_factory=dict)  # what the result depends on, part by part
    key: str = ""

    def to_plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Trial:
        """Undo `to_plain`."""
        return cls(**{**plain, "plugins": tuple(plain["plugins"])})


def blank(trial: Trial, workload: Workload, plugins: Plugins) -> Record:
    """Return a record of a trial of which nothing is known yet but what was asked."""
    return Record(
        suite=trial.suite,
        workload=trial.workload,
        techniques={name: dict(options) for name, options in trial.techniques.items()},
        seed=trial.seed,
        budget=trial.budget,
        status="failed",
        clock=Budget.parse(trial.budget, more_units=plugins.offers["effbench_clocks"]).unit,
        metric=workload.metric,
        higher_is_better=workload.higher_is_better,
        target=workload.target,
        price=dict(trial.price) if trial.price else None,
        threads=trial.threads,
        jobs=trial.jobs,
        versions=machine.versions(),
        environment=machine.environment(trial.device),
        plugins={name: plugins.origin("effbench_techniques", name) for name in trial.techniques},
        identity=dict(trial.identity),
        started=machine.now(),
        key=trial.key,
    )


def _nobody(event: Event) -> None:
    """Hear an event, and do nothing."""


def run(trial: Trial, plugins: Plugins, hear: Hear = _nobody, since: float | None = None) -> Record:
    """Run a trial in this process and return its record. Nothing that a plugin raises gets out.

    hear: is told how far it is; an event's `within` says in how many seconds the next is due at the latest.
    since: the monotonic clock when the trial was asked for, so that its set-up is in the ledger.
    """
    workload = plugins.workloads[trial.workload]
    record = blank(trial, workload, plugins)
    ledger = Ledger(since=since, synchronize=torch.cuda.synchronize if trial.device.startswith("cuda") else None)
    hear({"event": "setup", "within": _SETUP_PATIENCE})
    torch.set_num_threads(trial.threads)
    try:
        _train_and_judge(trial, plugins, workload, record, ledger, hear)
    except Refusal as why:
        record.status, record.reason, record.stop_reason = "skipped", str(why), "refused"
    except Diverged as why:
        record.status, record.reason, record.stop_reason = "diverged", str(why), "diverged"
    except Stop:
        record.status, record.reason, record.stop_reason = (
            "timeout",
            "still running at its deadline",
            "deadline",
        )
    except KeyboardInterrupt:
        record.status, record.reason, record.stop_reason = "interrupted", "Ctrl-C", "interrupted"
    except Exception as fault:  # noqa: BLE001 - a plugin may raise anything, and costs its own row only
        record.status, record.stop_reason = "failed", "failed"
        record.reason = str(fault) if isinstance(fault, EffbenchError) else f"{type(fault).__name__}: {fault}"
        traceback.print_exc()
    _close(record, ledger)
    return record


def _train_and_judge(
    trial: Trial, plugins: Plugins, workload: Workload, record: Record, ledger: Ledger, hear: Hear
) -> None:
    baseline = workload.recipe(torch.device(trial.device))
    recipe, record.order = compose(baseline, trial.techniques, plugins.techniques)
    record.processes = recipe.processes
    epoch = len(baseline.dataset)

    def body(group: Group) -> None:
        first = group.rank == 0  # the others have copies of the record, which nobody reads
        training = start(recipe, trial.seed, epoch_examples=epoch, group=group, ledger=ledger if first else Ledger())
        told = hear if first else _nobody
        record.parameters = sum(p.numel() for p in training.model.parameters())
        _spend(trial, plugins, workload, training, record, told)
        _judge(workload, training, record, told)
        _meter(plugins, training, record)

    if recipe.processes == 1:
        body(ALONE)
    else:
        from effbench.distributed.launch import run_ranks

        run_ranks(recipe.processes, body)


def _spend(trial: Trial, plugins: Plugins, workload: Workload, training: Training, record: Record, hear: Hear) -> None:
    """Train until the budget is spent; look at validation on the way."""
    budget = Budget.parse(trial.budget, more_units=plugins.offers["effbench_clocks"])
    clock = clock_for(budget, trial.price, plugins)
    first = 0.0
    try:
        first = _steps(trial, workload, training, budget, clock, record, hear)
        _check_loss(training)
    finally:
        record.steps, record.examples, record.tokens = training.step, training.examples, training.tokens
        record.spent = clock.spent(training)
        _speeds(training, record, first)
    record.stop_reason = "budget"
    if training.step == 0:
        record.status, record.reason = "no_steps", f"{budget} buys no step"
    elif budget.is_wall:
        record.overrun_seconds = max(0.0, record.spent - budget.amount)


def _steps(
    trial: Trial,
    workload: Workload,
    training: Training,
    budget: Budget,
    clock: Clock,
    record: Record,
    hear: Hear,
) -> float:
    """Take all steps; look at validation and tell how far it is on the way; return the seconds of the first step."""
    looks, first, told = list(_CURVE), 0.0, 0.0
    check = _CHECK_ON_GPU if trial.device.startswith("cuda") else 1
    for _ in train(training, budget, clock):
        if training.step % check == 0:
            _check_loss(training)
        if training.step == 1:
            first = training.ledger.spent_wall()
        elif looks and training.progress >= looks[0]:
            looks = [look for look in looks if look > training.progress]
            _look(workload, training, record, clock, hear)
        if (now := time.monotonic()) - told > _TELL_EVERY:
            told = now
            _tell(training, budget, hear)
    return first


def clock_for(budget: Budget, price: Mapping[str, Any] | None, plugins: Plugins) -> Clock:
    """Return a fresh clock for the unit of a budget.

    Raises:
        UnknownName: nobody counts in this unit.
        EffbenchError: the unit is priced, and there is no price.
    """
    if budget.unit in PRICED_UNITS:
        if price is None:
            raise EffbenchError(f"{budget} needs a price; run `effbench calibrate` first")
        bought = Price.from_plain(price)
        return PricedClock(budget.amount, bought.at, bought.lumps)
    clocks = {**CLOCKS, **plugins.offers["effbench_clocks"]}
    if budget.unit not in clocks:
        raise UnknownName("clock", budget.unit, clocks)
    clock: Clock = clocks[budget.unit]()
    return clock


def _check_loss(training: Training) -> None:
    if training.losses is not None and not math.isfinite(loss := float(training.losses.sum())):
        raise Diverged(f"the loss was {loss} at step {training.step}")


def _tell(training: Training, budget: Budget, hear: Hear) -> None:
    within = _PATIENCE
    if budget.is_wall:
        left = budget.amount * (1.0 - training.progress)
        within = left + max(_GRACE_SECONDS, _GRACE_SHARE * budget.amount)
    hear({"event": "progress", "progress": training.progress, "step": training.step, "within": within})


def _look(workload: Workload, training: Training, record: Record, clock: Clock, hear: Hear) -> None:
    """Add a point to the curve. Preparing the weights for a look is ours, so it is off the clock."""
    hear(
        {
            "event": "evaluation",
            "progress": training.progress,
            "step": training.step,
            "within": _PATIENCE * 10,
        }
    )
    spent = clock.spent(training)
    with training.ledger.line("evaluation"):
        model = training.recipe.eval_model(training)
        if training.group.rank == 0:
            value = workload.evaluate(model, "validation")[workload.metric]
            row = {
                "progress": training.progress,
                "spent": spent,
                "steps": training.step,
                workload.metric: value,
            }
            record.curve.append(row)


def _judge(workload: Workload, training: Training, record: Record, hear: Hear) -> None:
    """Evaluate at the end of the budget, on validation and test."""
    if record.status == "no_steps":
        return
    hear({"event": "evaluation", "progress": 1.0, "step": training.step, "within": _PATIENCE * 10})
    with training.extra():
        model = training.recipe.eval_model(training)
    if training.group.rank == 0:
        with training.ledger.line("evaluation"):
            record.metrics = {split: workload.evaluate(model, split) for split in ("validation", "test")}
        value = record.metrics["validation"][workload.metric]
        record.curve.append({"progress": 1.0, "spent": record.spent, "steps": training.step, workload.metric: value})
    record.status = "ok"


def _speeds(training: Training, record: Record, first: float) -> None:
    """Split set-up from steady state: the first step compiles, allocates and warms up."""
    later = training.ledger.spent_wall() - first
    if training.step > 1 and later > 0:
        usual = later / (training.step - 1)
        record.examples_per_second = training.examples * (training.step - 1) / training.step / later
        first = max(0.0, first - usual)
    record.setup_seconds = training.ledger.wall["setup"] + first


def _meter(plugins: Plugins, training: Training, record: Record) -> None:
    if record.status == "no_steps":
        return
    with training.ledger.line("metering"), _quiet():
        found = {name: _measure(meter, training, record) for name, meter in plugins.offers["effbench_meters"].items()}
    record.peak_memory_mib = found.pop("peak_memory_mib", None)
    step = found.pop("flop_per_step", None)
    record.flop = step * record.steps if step is not None else None
    record.measured = {name: value for name, value in found.items() if value is not None}


def _measure(meter: Meter, training: Training, record: Record) -> float | None:
    try:
        return meter.measure(training)
    except Exception as fault:  # noqa: BLE001 - an instrument that fails costs its number, not the trial
        record.warnings.append(f"{meter.name} could not be measured: {type(fault).__name__}: {fault}")
        return None


def _close(record: Record, ledger: Ledger) -> None:
    ledger.switch("idle")
    record.ledger = dict(ledger.wall)
    record.cpu_seconds = sum(ledger.cpu.values())
    record.environment |= machine.disturbance()
    record.finished = machine.now()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Send what C++ code writes to standard output and error nowhere: torch's profiler chats."""
    saved = [os.dup(1), os.dup(2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        for number, copy in zip((1, 2), saved, strict=True):
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)
