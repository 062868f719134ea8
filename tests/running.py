"""Run suites of strange techniques: what tests of running have in common."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from effbench import plugins as loading
from effbench.composing import cells_of
from effbench.execution import Hear, Job, Outcome
from effbench.execution.local import Local
from effbench.execution.tasks import TASKS
from effbench.planning import Cell, Settings
from effbench.plugins import Plugins
from effbench.records import STATUSES, STOP_REASONS, Record
from effbench.runner import Run, run_suite
from effbench.sets import parse_set
from effbench.store import Store
from effbench.suite import Suite

STRANGERS = Path(__file__).parent / "strangers"  # a folder of plugins


def make_suite(*sets: str, budget: str = "20 steps", seeds: Sequence[int] = (0,), **changes: Any) -> Suite:
    """A suite of the toy workload; sets as on the command line."""
    plain = {"name": "strange", "workloads": ("toy",), "seeds": tuple(seeds), "budget": budget}
    return Suite(**{**plain, "sets": tuple(parse_set(text) for text in sets), **changes})


def strange_plugins() -> Plugins:
    return loading.load([str(STRANGERS)], strict=True)


def composed(suite: Suite, plugins: Plugins, settings: Settings) -> list[Cell]:
    """The cells of a suite, composed in this very process."""

    def here(jobs: Iterable[Job], hear: Hear) -> Iterator[tuple[Job, Outcome]]:
        for job in jobs:
            yield job, Outcome(TASKS[job.task](job.payload, plugins, functools.partial(hear, job)))

    return cells_of(suite, plugins, settings, here)


def run(server: Local, folder: Path, suite: Suite, *, jobs: int = 1, plugins: Plugins | None = None, **how: Any) -> Run:
    """Run a suite on the shared server; whatever becomes of a trial has a name that records know."""
    server.jobs = jobs
    settings = how.pop("settings", Settings(jobs=jobs, named=(str(STRANGERS),)))
    done = run_suite(suite, plugins or strange_plugins(), Store(folder), settings, executor=server, **how)
    assert {record.status for record in done.records} <= set(STATUSES)
    assert {record.stop_reason for record in done.records} <= set(STOP_REASONS)
    return done


def by_label(records: Sequence[Record]) -> dict[str, Record]:
    return {record.label: record for record in records}


def only(records: list[Record]) -> Record:
    """The one that is no baseline."""
    (record,) = [record for record in records if record.techniques]
    return record


def log_of(run: Run, record: Record) -> str:
    return (run.store.path / record.log).read_text(encoding="utf-8") if record.log else ""


def suite_file(folder: Path, *sets: str, budget: str = "20 steps", seeds: Sequence[int] = (0,), more: str = "") -> Path:
    """A suite as a TOML file, for a process of its own."""
    lines = ['name = "strange"', f'budget = "{budget}"', f"seeds = {list(seeds)}", 'workloads = ["toy"]', more]
    for text in sets:
        lines.append("[[techniques]]")
        for name, options in parse_set(text).items():
            inside = ", ".join(f"{option} = {json.dumps(value)}" for option, value in options.items())
            lines.append(f"{name} = {{ {inside} }}")
    file = folder / "strange.toml"
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


@contextmanager
def process(folder: Path, suite: Path, *, jobs: int = 1, cli: bool = False) -> Iterator[subprocess.Popen[str]]:
    """A run in a process of its own, from a script or by the command line; its processes are marked."""
    call = f"import effbench; effbench.run({str(suite)!r}, plugins=[{str(STRANGERS)!r}], out='out', jobs={jobs})"
    verb = ["run", str(suite), "--plugin", str(STRANGERS), "--out", "out", "--jobs", str(jobs)]
    with subprocess.Popen(
        [sys.executable, *(["-m", "effbench", *verb] if cli else ["-c", call])],
        cwd=folder,
        env={**os.environ, "EFFBENCH_TEST": str(folder)},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def wait_for(file: Path, patience: float = 60.0) -> None:
    """Wait until there is such a file."""
    end = time.monotonic() + patience
    while not file.exists():
        assert time.monotonic() < end, f"{file} never came to be"
        time.sleep(0.01)


def survivors(mark: Path | Local, patience: float = 3.0) -> list[str]:
    """The processes, by their command, of `process` in this folder, or of a server, that still live after a moment."""
    if not Path("/proc/self/environ").exists():
        pytest.skip("needs /proc to find processes")
    own = f"server of {os.getpid()}" if isinstance(mark, Local) else str(mark)
    known = {os.getpid(), mark._server.pid if isinstance(mark, Local) and mark._server else 0}
    end = time.monotonic() + patience
    while (found := _marked(own, known)) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def _marked(mark: str, known: set[int]) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) in known:
            continue
        with suppress(OSError):
            is_zombie = (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
            if f"EFFBENCH_TEST={mark}".encode() in (entry / "environ").read_bytes().split(b"\0") and not is_zombie:
                found.append((entry / "cmdline").read_text().replace("\0", " "))
    return found
