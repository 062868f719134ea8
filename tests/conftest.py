"""What tests of several modules share."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from effbench.execution import Limits
from effbench.execution.local import Local

with contextlib.suppress(ImportError):
    import setuptools  # noqa: F401 - it replaces distutils, and fails where something else had imported that before

MISBEHAVING = Path(__file__).parent / "strangers" / "misbehaving.py"


@pytest.fixture(scope="session")
def server() -> Iterator[Local]:
    """A place to run trials that knows the strange techniques; one for all tests, for it takes seconds to start."""
    local = Local(1, (str(MISBEHAVING),), ("toy",), limits=Limits(grace_seconds=2.0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EFFBENCH_TEST", f"server of {os.getpid()}")
        local.start()
    yield local
    local.close()
