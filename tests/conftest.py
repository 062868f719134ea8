"""What tests of several modules share."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from effbench.execution import Limits
from effbench.execution.local import Local
from running import STRANGERS

with contextlib.suppress(ImportError):
    import setuptools  # noqa: F401 - it replaces distutils, and fails where something else had imported that before

hypothesis.settings.register_profile("untimed", deadline=None)  # a busy machine is no fault
hypothesis.settings.load_profile("untimed")


@pytest.fixture(scope="session")
def server() -> Iterator[Local]:
    """A place to run trials that knows the strange techniques; one for all tests, for it takes seconds to start."""
    local = Local(1, (str(STRANGERS),), ("toy",), limits=Limits(grace_seconds=2.0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EFFBENCH_TEST", f"server of {os.getpid()}")
        local.start()
    yield local
    local.close()


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages, on the path; what is imported from it is forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    yield tmp_path / "site"
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]
