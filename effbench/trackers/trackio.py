"""Write trials for Trackio: `TRACKIO_DIR=<results>/trackio trackio show`."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path
from typing import Any

from effbench.hookspecs import hookimpl
from effbench.records import Record
from effbench.trackers import told


class TrackioTracker:
    """One run a trial, in a project for each suite."""

    def __init__(self, folder: Path) -> None:
        os.environ.setdefault("TRACKIO_DIR", str(folder.resolve()))  # the one way to say where; read when imported
        import trackio

        self._trackio: Any = trackio

    @hookimpl
    def effbench_trial_finished(self, record: Record) -> None:
        """Write a trial; what Trackio prints would stand between our results."""
        with contextlib.redirect_stdout(io.StringIO()):
            run = self._trackio.init(
                project=record.suite or "effbench",
                name=told.file_name_of(record),
                group=record.workload,
                config=told.settings_of(record),
                embed=False,
                auto_log_gpu=False,
                auto_log_cpu=False,
            )
            last = 0
            for last, values in told.curve_of(record):
                run.log(values, step=last)
            results = {f"result/{name}": value for name, value in told.results_of(record).items()}
            run.log(results, step=last)
            self._trackio.finish()
