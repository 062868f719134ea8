"""The machine that a trial runs on: what it is, and what disturbed it."""

from __future__ import annotations

import datetime as dt
import functools
import os
import platform
import resource
from pathlib import Path
from typing import Any

from effbench import identity
from effbench.errors import EffbenchError


def now() -> str:
    """Return the time as ISO 8601, UTC, for people; durations come from the monotonic clock."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")


def versions() -> dict[str, str]:
    """Return the versions of what results depend on."""
    return dict(identity.versions())


def environment(device: str = "cpu") -> dict[str, Any]:
    """Return what the machine is: processor, cores, memory, system, and the load when asked."""
    return {**_hardware(), "device": _device_name(device), "load": os.getloadavg()[0]}


@functools.cache
def _hardware() -> dict[str, Any]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor(),
        "cores": cores(),
        "memory_gib": round(memory, 1),
    }


def processor() -> str:
    """Return the processor's own name where the system tells it."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_device(name: str) -> None:
    """Do nothing where a trial can run on a device: "cpu", "cuda", "cuda:1", ...

    Raises:
        EffbenchError: there is no such device here, or it cannot compute.
    """
    import torch

    try:
        torch.zeros((), device=torch.device(name)).item()  # of "meta", nothing can be had back
    except (RuntimeError, AssertionError, NotImplementedError) as fault:
        why = str(fault).partition("\n")[0]
        raise EffbenchError(f"nothing can run on the device {name!r} here; write cpu, or cuda:0: {why}") from fault


def disturbance() -> dict[str, float]:
    """Return signs that others were at work: load average, and how often this process had to give up its core."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {"load_after": os.getloadavg()[0], "involuntary_switches": usage.ru_nivcsw}


def _device_name(device: str) -> str:
    if not device.startswith("cuda"):
        return device
    import torch

    return torch.cuda.get_device_name(device)
