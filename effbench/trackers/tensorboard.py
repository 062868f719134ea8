"""Write trials for TensorBoard: `tensorboard --logdir <results>/tensorboard`."""

from __future__ import annotations

from pathlib import Path

from effbench.hookspecs import hookimpl
from effbench.records import Record
from effbench.trackers import told


class TensorboardTracker:
    """One run a trial, with its curve as scalars, and what was asked beside what came of it as hyper-parameters."""

    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._folder, self._writer = folder, SummaryWriter

    @hookimpl
    def effbench_trial_finished(self, record: Record) -> None:
        """Write a trial."""
        name = told.file_name_of(record)
        with self._writer(str(self._folder / name)) as writer:
            for step, values in told.curve_of(record):
                for key, value in values.items():
                    writer.add_scalar(key, value, step)
            results = {f"result/{key}": value for key, value in told.results_of(record).items()}
            writer.add_hparams(told.settings_of(record), results, run_name=".")
