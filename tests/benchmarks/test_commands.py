"""How fast the commands are that people type most: CPU seconds of a fresh process, imports and all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from record_factory import record


def cost(command: list[str], folder: Path) -> tuple[float, float]:
    """Return the CPU seconds and the peak memory, MiB, of a command from its start to its end."""
    with subprocess.Popen(
        [sys.executable, "-m", "effbench", *command], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as running:
        _, status, used = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
    assert running.returncode == 0
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def cpu_seconds(command: list[str], folder: Path) -> float:
    """Return the CPU seconds of a command alone."""
    return cost(command, folder)[0]


def results(folder: Path, workloads: int, sets: int, seeds: int) -> Path:
    """A folder of so many records."""
    with (folder / "records.jsonl").open("w", encoding="utf-8") as file:
        for w in range(workloads):
            for number in range(sets):
                name = f"technique_{number}" if number else ""
                for seed in range(seeds):
                    value = 0.8 + 0.001 * number + 0.01 * seed
                    file.write(record(name, value=value, seed=seed, workload=f"w{w}").to_json() + "\n")
    return folder


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """10,000 records."""
    return results(tmp_path_factory.mktemp("many"), workloads=20, sets=100, seeds=5)


@pytest.mark.parametrize("command", [["--help"], ["table", "."]], ids=["help", "table of 10,000 records"])
def test_commands_are_there_at_once(benchmark: Any, many: Path, command: list[str]) -> None:
    found = sorted(cpu_seconds(command, many) for _ in range(3))
    benchmark.extra_info["CPU seconds"] = round(found[0], 2)
    benchmark.pedantic(cpu_seconds, args=(command, many), rounds=2)
    print(f"\neffbench {' '.join(command)}: {found[0]:.2f} CPU seconds")  # noqa: T201 - for whoever runs it


def test_a_hundred_thousand_records_are_no_trouble(benchmark: Any, tmp_path: Path) -> None:
    results(tmp_path, workloads=50, sets=200, seeds=10)
    seconds, mib = benchmark.pedantic(cost, args=(["table", "."], tmp_path), rounds=1)
    benchmark.extra_info |= {"CPU seconds": round(seconds, 2), "peak MiB": round(mib)}
    print(f"\neffbench table of 100,000 records: {seconds:.2f} CPU seconds, {mib:.0f} MiB at most")  # noqa: T201 - as above
    assert mib < 1024
