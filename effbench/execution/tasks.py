"""What a job's process does: one function for each task, from plain values to plain values."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from effbench import calibrate, trial
from effbench.distributed.group import Group
from effbench.pricing import Price
from effbench.techniques import compose
from effbench.trial import Hear, Trial

if TYPE_CHECKING:
    from effbench.plugins import Plugins


def run_trial(payload: dict[str, Any], plugins: Plugins, hear: Hear) -> dict[str, Any]:
    """Run one trial; the record, as plain values."""
    asked = Trial.from_plain(payload["trial"])
    record = trial.run(asked, plugins, hear, since=payload.get("since"))
    return dict(json.loads(record.to_json()))


def run_price(payload: dict[str, Any], plugins: Plugins, hear: Hear) -> dict[str, Any]:
    """Price sets of techniques of one workload, all with the same number of processes: {label: price}."""
    torch.set_num_threads(payload["threads"])
    workload = plugins.workloads[payload["workload"]]
    baseline = workload.recipe(torch.device(payload["device"]))
    recipes = {
        label: compose(baseline, techniques, plugins.techniques)[0] for label, techniques in payload["sets"].items()
    }

    def body(group: Group) -> dict[str, Price]:
        return calibrate.price(
            baseline,
            recipes,
            unit=payload["unit"],
            step_seconds=workload.step_seconds,
            rounds=payload["rounds"],
            seconds=payload["seconds"],
            group=group,
            hear=lambda share: hear({"event": "price", "progress": share, "within": 600.0}),
        )

    hear({"event": "price", "progress": 0.0, "within": 900.0})
    processes = next(iter(recipes.values())).processes
    if processes == 1:
        prices = body(Group())
    else:
        from effbench.distributed.launch import run_ranks

        prices = run_ranks(processes, body)
    return {label: price.to_plain() for label, price in prices.items()}


TASKS: dict[str, Callable[[dict[str, Any], Plugins, Hear], dict[str, Any]]] = {
    "trial": run_trial,
    "price": run_price,
}
