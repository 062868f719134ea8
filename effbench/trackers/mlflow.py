"""Write trials for MLflow, into one file: `mlflow ui --backend-store-uri sqlite:///<results>/mlflow/mlflow.db`."""

from __future__ import annotations

from pathlib import Path

from effbench.hookspecs import hookimpl
from effbench.records import Record
from effbench.trackers import told

#: Characters that MLflow allows in names besides letters and digits.
_ALLOWED = frozenset("_-. /")


class MlflowTracker:
    """One run a trial, in an experiment for each suite."""

    def __init__(self, folder: Path) -> None:
        import mlflow
        import sqlalchemy  # noqa: F401 - the store needs it, and says so late

        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder.resolve()
        self._client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{self._folder / 'mlflow.db'}")

    @hookimpl
    def effbench_trial_finished(self, record: Record) -> None:
        """Write a trial."""
        run = self._client.create_run(self._experiment(record.suite or "effbench"), run_name=told.name_of(record))
        found = run.info.run_id
        for name, value in told.settings_of(record).items():
            self._client.log_param(found, _named(name), value)
        for step, values in told.curve_of(record):
            for name, number in values.items():
                self._client.log_metric(found, _named(name), number, step=step)
        for name, number in told.results_of(record).items():
            self._client.log_metric(found, _named(f"result/{name}"), number)
        self._client.set_terminated(found, "FINISHED" if record.status == "ok" else "FAILED")

    def _experiment(self, suite: str) -> str:
        known = self._client.get_experiment_by_name(suite)
        if known is not None:
            return str(known.experiment_id)
        return str(self._client.create_experiment(suite, artifact_location=(self._folder / "artifacts").as_uri()))


def _named(name: str) -> str:
    return "".join(character if character.isalnum() or character in _ALLOWED else "_" for character in name)
