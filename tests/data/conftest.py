"""Tests of the data sets: all share one cache folder of their own, so that each set is built once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from effbench.data import SOURCES, DataSource

BUILT_IN = {source.name: source for source in SOURCES}


@pytest.fixture(scope="module", autouse=True)
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.getbasetemp() / "cache"
    folder.mkdir(exist_ok=True)
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "effbench" / "data"


@pytest.fixture
def source_of():
    def named(name: str) -> DataSource:
        return BUILT_IN[name]

    return named
