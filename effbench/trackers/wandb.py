"""Write trials for Weights & Biases, offline: `wandb sync <results>/wandb/wandb/offline-run-*` would send them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from effbench.hookspecs import hookimpl
from effbench.records import Record
from effbench.trackers import told


class WandbTracker:
    """One offline run a trial; nothing leaves this machine."""

    def __init__(self, folder: Path) -> None:
        import wandb

        self._folder = folder
        self._wandb: Any = wandb

    @hookimpl
    def effbench_trial_finished(self, record: Record) -> None:
        """Write a trial."""
        self._folder.mkdir(parents=True, exist_ok=True)
        quiet = {"silent": True, "console": "off", "disable_git": True, "disable_code": True, "x_disable_stats": True}
        run = self._wandb.init(
            project=record.suite or "effbench",
            name=told.name_of(record),
            group=record.workload,
            config=told.settings_of(record),
            dir=str(self._folder),
            mode="offline",
            settings=self._wandb.Settings(**quiet),
        )
        for step, values in told.curve_of(record):
            run.log(values, step=step)
        run.summary.update(told.results_of(record))
        run.finish(exit_code=0 if record.status == "ok" else 1)
