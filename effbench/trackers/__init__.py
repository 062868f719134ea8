"""Trackers: observers that also write each trial to TensorBoard, MLflow, Trackio or Weights & Biases, on this disk.

`effbench run SUITE --track tensorboard` writes below `<results>/tensorboard/`. The records stay what counts: a tracker
only shows them in another place, and one that fails costs nothing but itself.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from effbench.errors import EffbenchError, UnknownName

if TYPE_CHECKING:
    import pluggy

#: tracker -> the class in the module of that name.
TRACKERS: dict[str, str] = {
    "mlflow": "MlflowTracker",
    "tensorboard": "TensorboardTracker",
    "trackio": "TrackioTracker",
    "wandb": "WandbTracker",
}


def open_tracker(name: str, folder: Path) -> object:
    """Return a tracker that writes into a folder, before anything is trained.

    Raises:
        UnknownName: there is no such tracker.
        EffbenchError: its package is not installed.
    """
    if name not in TRACKERS:
        raise UnknownName("tracker", name, TRACKERS)
    module = importlib.import_module(f"effbench.trackers.{name}")
    try:
        tracker: object = getattr(module, TRACKERS[name])(folder)
    except ImportError as missing:
        why = f"{name} is not installed ({missing}); run: pip install 'effbench[{name}]'"
        raise EffbenchError(f"--track {name}: {why}") from missing
    return tracker


def register(manager: pluggy.PluginManager, names: Iterable[str], results: Path) -> None:
    """Let trackers hear how a suite goes; each writes into a folder of its own below the results."""
    for name in dict.fromkeys(names):
        manager.register(open_tracker(name, results / name), f"tracker {name}")
