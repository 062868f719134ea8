"""What a job's process does: one function for each task, from plain values to plain values."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from effbench import calibrate, composing, course, trial
from effbench.distributed.group import Group
from effbench.errors import DataUnavailable
from effbench.planning import Composed
from effbench.pricing import Price, Trouble
from effbench.recipe import Recipe
from effbench.techniques import compose
from effbench.trial import Hear, Trial

if TYPE_CHECKING:
    from effbench.plugins import Plugins

_PATIENCE = 600.0  # seconds in which a set must be made ready, or a round of steps be done; it may have to compile


def run_trial(payload: dict[str, Any], plugins: Plugins, hear: Hear) -> dict[str, Any]:
    """Run one trial; the record, as plain values."""
    asked = Trial.from_plain(payload["trial"])
    record = trial.run(asked, plugins, hear, since=payload.get("since"))
    return dict(json.loads(record.to_json()))


def run_compose(payload: dict[str, Any], plugins: Plugins, hear: Hear) -> dict[str, Any]:
    """Compose sets of techniques with one workload's baseline, in their order, and tell of each as soon as it is known.

    Returns:
        {"unavailable": why the workload's data is not here, or ""}
    """

    def tell(found: Composed) -> None:
        hear({"event": "composed", "composed": found.to_plain(), "within": payload["seconds"]})

    hear({"event": "composing", "within": _PATIENCE})
    try:
        baseline = plugins.workloads[payload["workload"]].recipe(torch.device(payload["device"]))
    except DataUnavailable as why:
        return {"unavailable": str(why)}
    except Exception as fault:  # noqa: BLE001 - a stranger's workload may raise anything, and costs its own trials only
        for _ in payload["sets"]:
            tell(Composed(trouble=calibrate.trouble(fault)))
        return {"unavailable": ""}
    hear({"event": "baseline", "within": payload["seconds"]})
    for techniques in payload["sets"]:
        tell(composing.composed(baseline, techniques, plugins.techniques))
    return {"unavailable": ""}


def run_price(payload: dict[str, Any], plugins: Plugins, hear: Hear) -> dict[str, Any]:
    """Price sets of techniques of one workload, all with the same number of processes.

    Returns:
        {"prices": {name: price}, "troubles": {name: trouble}}, as plain values.

    Raises:
        Exception: nothing of several sets could be priced, not even the baseline: try them one by one.
    """
    sets: Mapping[str, Any] = payload["sets"]
    try:
        found = _price(payload, plugins, hear)
    except (Exception, SystemExit) as fault:  # a technique may raise anything, and costs its own price only
        if len(sets) > 1:
            raise
        found = dict.fromkeys(sets, calibrate.trouble(fault))
    return {
        "prices": {name: price.to_plain() for name, price in found.items() if isinstance(price, Price)},
        "troubles": {name: why.to_plain() for name, why in found.items() if isinstance(why, Trouble)},
    }


def _price(payload: dict[str, Any], plugins: Plugins, hear: Hear) -> dict[str, Price | Trouble]:
    hear({"event": "price", "progress": 0.0, "within": _PATIENCE})
    torch.set_num_threads(payload["threads"])
    workload, device = plugins.workloads[payload["workload"]], torch.device(payload["device"])

    def body(group: Group) -> dict[str, Price | Trouble]:
        baseline = workload.recipe(device)

        def recipe(techniques: Mapping[str, Mapping[str, Any]]) -> Recipe:
            made = compose(baseline, techniques, plugins.techniques)[0]
            course.check_processes(made, group)
            return made

        def tell(share: float) -> None:
            if group.rank == 0:
                hear({"event": "price", "progress": share, "within": _PATIENCE})

        return calibrate.price(
            baseline,
            {name: functools.partial(recipe, techniques) for name, techniques in payload["sets"].items()},
            unit=payload["unit"],
            step_seconds=workload.step_seconds,
            rounds=payload["rounds"],
            seconds=payload["seconds"],
            group=group,
            device=payload["device"],
            hear=tell,
        )

    return course.in_processes(payload["processes"], body, device)


TASKS: dict[str, Callable[[dict[str, Any], Plugins, Hear], dict[str, Any]]] = {
    "trial": run_trial,
    "price": run_price,
    "compose": run_compose,
}
