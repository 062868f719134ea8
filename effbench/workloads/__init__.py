"""Standard workloads: one file for each, whose `workload` is offered under its own name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

from effbench.hookspecs import hookimpl

if TYPE_CHECKING:
    from effbench.workloads.workload import Workload


@hookimpl
def effbench_workloads() -> list[Workload]:
    """Offer the workload of every file in this folder that has one; no data is read."""
    return list(_workloads())


def _workloads() -> Iterator[Workload]:
    for found in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{found.name}")
        if (workload := getattr(module, "workload", None)) is not None:
            yield workload
