"""How fast the commands are that people type most: CPU seconds of a fresh process, imports and all."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from record_factory import record


def cpu_seconds(command: list[str], folder: Path) -> float:
    """Return the CPU seconds that a command takes from its start to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "effbench", *command], cwd=folder, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """10,000 records: 20 workloads, 100 sets, 5 seeds."""
    folder = tmp_path_factory.mktemp("many")
    lines = [
        record(
            "" if number == 0 else f"technique_{number}",
            value=0.8 + 0.001 * number + 0.01 * seed,
            seed=seed,
            workload=f"w{w}",
        )
        for w in range(20)
        for number in range(100)
        for seed in range(5)
    ]
    (folder / "records.jsonl").write_text("\n".join(line.to_json() for line in lines) + "\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize("command", [["--help"], ["table", "."]], ids=["help", "table of 10,000 records"])
def test_commands_are_there_at_once(benchmark: Any, many: Path, command: list[str]) -> None:
    found = sorted(cpu_seconds(command, many) for _ in range(3))
    benchmark.extra_info["CPU seconds"] = round(found[0], 2)
    benchmark.pedantic(cpu_seconds, args=(command, many), rounds=2)
    print(f"\neffbench {' '.join(command)}: {found[0]:.2f} CPU seconds")  # noqa: T201
