"""effbench: which efficient-training techniques really help, under a fixed compute budget, and how sure are we?

The public names are below; they are imported when first used, so that `import effbench` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from effbench.api import load_results as load_results
    from effbench.api import run as run
    from effbench.api import table as table
    from effbench.budget import Budget as Budget
    from effbench.clock import Clock as Clock
    from effbench.errors import Conflict as Conflict
    from effbench.errors import NotApplicable as NotApplicable
    from effbench.hookspecs import hookimpl as hookimpl
    from effbench.recipe import Batch as Batch
    from effbench.recipe import Examples as Examples
    from effbench.recipe import Milestone as Milestone
    from effbench.recipe import Recipe as Recipe
    from effbench.recipe import Training as Training
    from effbench.records import Record as Record
    from effbench.techniques import Technique as Technique
    from effbench.techniques import technique as technique
    from effbench.workloads.workload import Workload as Workload

_HOME = {
    "Batch": "effbench.recipe",
    "Budget": "effbench.budget",
    "Clock": "effbench.clock",
    "Conflict": "effbench.errors",
    "Examples": "effbench.recipe",
    "Milestone": "effbench.recipe",
    "NotApplicable": "effbench.errors",
    "Recipe": "effbench.recipe",
    "Record": "effbench.records",
    "Technique": "effbench.techniques",
    "Training": "effbench.recipe",
    "Workload": "effbench.workloads.workload",
    "hookimpl": "effbench.hookspecs",
    "load_results": "effbench.api",
    "run": "effbench.api",
    "table": "effbench.api",
    "technique": "effbench.techniques",
}

__all__ = ["__version__", *_HOME]  # noqa: PLE0604 - the keys are strings


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'effbench' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
