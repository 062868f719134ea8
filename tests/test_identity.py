"""The content key: equal for the same work, another one for whatever a result depends on."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from pathlib import Path

import pytest

import effbench
from effbench import identity
from effbench.trial import Trial
from running import strange_plugins

ASKED = Trial("s", "toy", {"slow": {"seconds": 0.1}}, 0, "20 steps", {"unit": "flop", "phases": [1.0]})


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"seed": 1}, "seed: 0 -> 1"),
        ({"budget": "40 steps"}, "budget: 20 steps -> 40 steps"),
        ({"threads": 2}, "threads: 1 -> 2"),
        ({"device": "cuda"}, "device: cpu -> cuda"),
        (
            {"techniques": {"slow": {"seconds": 0.2}}},
            'techniques: {"slow": {"seconds": 0.1}} -> {"slow": {"seconds": 0.2}}',
        ),
        ({"price": {"unit": "flop", "phases": [2.0]}}, "another price"),
    ],
)
def test_what_changes_a_result_changes_the_key(change, part):
    plugins = strange_plugins()
    one = identity.parts(ASKED, plugins)
    other = identity.parts(dataclasses.replace(ASKED, **change), plugins)
    assert identity.differences(one, other) == [part]
    assert identity.key(one) != identity.key(other)


@pytest.mark.parametrize("change", [{"jobs": 2}, {"suite": "other"}])
def test_what_changes_no_result_does_not(change):
    plugins = strange_plugins()
    assert identity.parts(ASKED, plugins) == identity.parts(dataclasses.replace(ASKED, **change), plugins)


def test_code_and_versions_are_part_of_it():
    found = identity.parts(ASKED, strange_plugins())
    assert {"harness", "code of slow", "code of the workload", "torch", "numpy", "python", "effbench", "data"} <= set(
        found
    )


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with a technique that leans on another file of it, and that on a third."""
    folder = tmp_path / "mypackage"
    (folder / "inner").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "inner" / "__init__.py").touch()
    (folder / "technique.py").write_text("from . import helper\nimport json\n\ndef f():\n    return helper\n")
    (folder / "helper.py").write_text("from mypackage.inner.deep import value\n")
    (folder / "inner" / "deep.py").write_text("value = 1\n")
    (folder / "stranger.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.startswith("mypackage")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("file", "matters"),
    [("technique.py", True), ("helper.py", True), ("inner/deep.py", True), ("stranger.py", False)],
)
def test_code_is_that_of_all_files_it_leans_on(package, file, matters):
    function = importlib.import_module("mypackage.technique").f
    before = identity.code_of(function)
    assert identity.code_of(function) == before
    (package / file).write_text((package / file).read_text() + "# changed\n")
    assert (identity.code_of(function) != before) is matters


def test_what_only_shows_is_no_part_of_the_harness():
    root = Path(effbench.__file__).parent
    missing = {name for name in identity._LOOKS_ONLY if not (root / name).exists()}
    assert missing == set()
    assert not {"train.py", "course.py", "clock.py", "models", "data", "distributed"} & identity._LOOKS_ONLY


def test_data_is_known_by_its_hash():
    plugins = strange_plugins()
    sources = plugins.offers["effbench_datasets"]
    assert identity.data_of("digits", plugins) == sources["digits"].sha256[:16]
    assert identity.data_of("points", plugins) == ""
