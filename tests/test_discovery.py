"""Plugins are found as packages on the path and as files, each once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from effbench import discovery
from effbench.errors import PluginError
from strange_packages import install, load, names, offering, why

# --- metadata -----------------------------------------------------------------------------------------------------


def test_broken_metadata_of_a_plugin_is_a_broken_plugin(site):
    install(site, "strange", offering("one"), entry="no equals sign")
    [found] = [found for found in discovery.find() if found.source == "strange 1.0"]
    with pytest.raises(PluginError, match="its metadata cannot be read: "):
        found.get()


def test_metadata_without_a_name_still_loads(site):
    install(site, "strange", offering("one"))
    (site / "strange-1.0.dist-info" / "METADATA").unlink()
    assert names(load(), "strange") == ["one"]


# --- the same plugin twice ----------------------------------------------------------------------------------------


def test_a_folder_that_is_on_the_path_under_two_names_offers_each_technique_once(site, tmp_path, monkeypatch):
    for package in "abc":
        install(site, f"plugin_{package}", offering(f"technique_{package}"))
    (tmp_path / "lib64").symlink_to(site)
    monkeypatch.syspath_prepend(str(tmp_path / "lib64"))
    loaded = load(strict=True)
    for package in "abc":
        assert names(loaded, f"plugin_{package}") == [f"technique_{package}"]


def test_the_same_file_installed_and_named_offers_its_techniques_once(site):
    install(site, "strange", offering("one"))
    loaded = load("strange", strict=True)
    assert names(loaded, "strange") == ["one"]


def test_the_same_file_under_two_names_offers_its_techniques_once(site, tmp_path):
    file = tmp_path / "real.py"
    file.write_text(offering("one"))
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "alias.py").symlink_to(file)
    loaded = load(str(file), str(tmp_path / "linked"), str(file), strict=True)
    assert "one" in loaded.techniques
    assert list(loaded.sources).count("real") == 1


def test_two_entry_points_for_one_object_offer_its_techniques_once(site):
    install(site, "strange", offering("one"), entry="first = strange\nsecond = strange")
    loaded = load(strict=True)
    assert names(loaded, "first") == ["one"]
    assert names(loaded, "second") == []


def test_of_two_versions_of_a_package_the_one_that_python_imports_counts(site, tmp_path, monkeypatch):
    install(tmp_path / "older", "strange", offering("old"), version="0.9")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "older")])
    install(site, "strange", offering("new"))
    loaded = load(strict=True)
    assert names(loaded, "strange") == ["new"]
    assert loaded.sources["strange"] == "strange 1.0"


def test_a_name_that_is_taken_costs_the_latecomer_alone(site):
    install(site, "first", offering("one"), entry="same = first")
    install(site, "second", offering("two"), entry="same = second")
    loaded = load()
    [problem] = loaded.problems
    assert str(problem) == "plugin same (second 1.0) is not loaded: its name is taken by the plugin from first 1.0"
    assert loaded.manager.has_plugin("same")
    assert names(loaded, "same") == ["one"]


def test_a_stranger_can_take_neither_name_nor_place_of_what_is_built_in(site):
    install(site, "a_strange", offering("one"), entry="builtin = a_strange")
    install(site, "another", offering("mixup"))
    loaded = load()
    assert sorted(map(str, loaded.problems)) == [
        (
            "plugin another (another 1.0) is not loaded: technique 'mixup' is already offered by plugin builtin; "
            "give it another name"
        ),
        "plugin builtin (a_strange 1.0) is not loaded: its name is taken by the plugin from effbench 0.1.0",
    ]
    assert loaded.origin("effbench_techniques", "mixup") == "builtin"


def test_packages_load_by_name_and_not_as_they_were_installed(site, tmp_path, monkeypatch):
    install(site, "beta", offering("two"))
    install(tmp_path / "later", "alpha", offering("one"))
    monkeypatch.syspath_prepend(str(tmp_path / "later"))
    monkeypatch.syspath_prepend(str(site))
    found = [each.source for each in discovery.find() if each.source.endswith(" 1.0")]
    assert found == ["alpha 1.0", "beta 1.0"]


# --- plugins that are named ---------------------------------------------------------------------------------------


def test_a_file_and_a_folder_and_a_module_are_plugins(site, tmp_path):
    install(site, "strange", offering("of_a_module"), entry="")
    (site / "strange-1.0.dist-info" / "entry_points.txt").unlink()
    (tmp_path / "mine.py").write_text(offering("of_a_file"))
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("a", "b", "_hidden", "test_a"):
        (folder / f"{name}.py").write_text(offering(f"of_{name}"))
    loaded = load(str(tmp_path / "mine.py"), str(folder), "strange", strict=True)
    assert {"of_a_file", "of_a", "of_b", "of_a_module"} <= set(loaded.techniques)
    assert not {"of__hidden", "of_test_a"} & set(loaded.techniques)
    assert loaded.sources["mine"] == str(tmp_path / "mine.py")


def test_one_file_by_two_paths_is_one_plugin(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(offering("one"))
    monkeypatch.chdir(tmp_path)
    loaded = load("mine.py", str(tmp_path / "mine.py"), "./mine.py", strict=True)
    assert names(loaded, "mine") == ["one"]


@pytest.mark.parametrize(
    ("named", "complaint"),
    [
        ("nowhere.py", "--plugin nowhere.py: there is no such file"),
        ("nowhere", "--plugin nowhere: there is no such file, folder or module"),
        ("empty", "--plugin empty: there is no .py file in this folder"),
        ("loop.py", "--plugin loop.py: there is no such file"),
        ("loop", "--plugin loop: there is no such file, folder or module"),
    ],
)
def test_a_named_plugin_that_is_not_there_is_an_error(tmp_path, monkeypatch, named, complaint):
    (tmp_path / "empty").mkdir()
    for name in ("loop", "loop.py"):
        (tmp_path / name).symlink_to(name)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PluginError, match=complaint):
        load(named)


def test_a_broken_file_leaves_no_half_made_module_behind(tmp_path):
    file = tmp_path / "half.py"
    file.write_text("raise ValueError('half done')\n")
    loaded = load(str(file))
    assert "ValueError: half done" in why(loaded)
    assert not [name for name in sys.modules if name.startswith("effbench_plugin_half")]
    file.write_text(offering("one"))
    assert names(load(str(file)), "half") == ["one"]


def test_a_file_may_hold_a_dataclass_and_a_technique_that_is_inspected(tmp_path):
    import inspect

    file = tmp_path / "mine.py"
    file.write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\n\n@dataclass\nclass Kept:\n    n: int\n"
        + offering("one").replace("from __future__ import annotations\n", "")
    )
    technique = load(str(file), strict=True).techniques["one"]
    assert Path(inspect.getfile(technique.function)) == file
