"""The techniques that come with effbench: one file each, in the folder of its branch and leaf of the taxonomy.

A new technique is one new file: `<branch>/<leaf>/<name>.py` with a technique `<name>` in it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import effbench
from effbench.techniques import Technique


@effbench.hookimpl
def effbench_techniques() -> Iterator[Technique]:
    """Offer every technique that lies in the folders."""
    for found in pkgutil.walk_packages(__path__, prefix=f"{__name__}."):
        if not found.ispkg:
            module = importlib.import_module(found.name)
            yield getattr(module, found.name.rpartition(".")[2])
