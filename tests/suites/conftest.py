"""Suites of two workloads and two techniques that do nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pluggy
import pytest

from effbench.plugins import Plugins
from effbench.recipe import Recipe
from effbench.techniques import technique
from effbench.workloads.workload import Workload


def mixup(recipe: Recipe, *, alpha: float = 0.2) -> Recipe:
    return recipe


def ema(recipe: Recipe, *, decay: float = 0.99, steps: int = 1, bias: bool = False) -> Recipe:
    return recipe


def workload(name: str, budget: str) -> Workload:
    return Workload(
        name, "", "digits", "", "", "accuracy", True, 0.9, budget, 1e-3, recipe=lambda device: None, evaluate=dict
    )


@pytest.fixture
def known() -> Plugins:
    plugins = Plugins(pluggy.PluginManager("effbench"))
    make = technique("data_centric/regularization", paper="", claim="")
    plugins.techniques.update(mixup=make(mixup), ema=make(ema))
    plugins.workloads.update(digits_mlp=workload("digits_mlp", "1s reference"), kjv_gpt=workload("kjv_gpt", "20s"))
    plugins.offers["effbench_clocks"]["joules"] = object
    return plugins


@pytest.fixture
def written(tmp_path: Path) -> Any:
    def write(text: str | bytes) -> Path:
        path = tmp_path / "mine.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write
