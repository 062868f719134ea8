"""No test of processes leaves anything behind."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

torch.set_num_threads(1)


def children() -> set[int]:
    """Processes whose parent is this one, zombies too."""
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(os.getpid())], capture_output=True, text=True, check=True
    )
    return {int(pid) for pid in listed.stdout.split()}


@pytest.fixture(autouse=True)
def nothing_is_left() -> None:
    """No test leaves a process, a zombie, a group, another number of threads or another excepthook."""
    gc.collect()  # what tests of other modules left
    before, others = facts(), children()
    yield
    gc.collect()  # the traceback of a failure holds its group
    assert not {pid for pid in children() - others if not command(pid).startswith("ps")}
    assert facts() == before


def facts() -> tuple[object, ...]:
    files = len(list(Path("/dev/fd").iterdir()))
    return torch.get_num_threads(), sys.excepthook, threading.active_count(), dist.is_initialized(), files


def command(pid: int) -> str:
    found = subprocess.run(["ps", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return found.stdout.strip() or "ps, which is gone"
