"""Plugins of strangers, as packages on the path and as files: found, checked, and never the end of the program."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest

from effbench import discovery, plugins
from effbench.errors import PluginError
from effbench.hookspecs import hookimpl
from effbench.plugins import HOOKS, Plugins, check_hooks
from effbench.switches import Switches

HEAD = """
import effbench

CARD = {"paper": "Nobody, Nothing, arXiv:0000.00000", "claim": "none"}

def make(name):
    def function(recipe, *, by: float = 1.0):
        '''Do nothing.'''
        return recipe
    function.__name__ = name
    return effbench.technique("data_centric/sampling", **CARD)(function)

"""


def offering(*names: str) -> str:
    """The source of a plugin that offers techniques of these names."""
    made = ", ".join(f"make({name!r})" for name in names)
    return f"{HEAD}@effbench.hookimpl\ndef effbench_techniques():\n    return [{made}]\n"


def install(site: Path, package: str, source: str, *, entry: str = "", version: str = "1.0") -> None:
    """Put a package and its metadata into a folder, as pip does."""
    site.mkdir(exist_ok=True)
    (site / f"{package}.py").write_text(source)
    info = site / f"{package}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(f"[effbench]\n{entry or f'{package} = {package}'}\n")


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder of installed packages, on the path; what is imported from it is forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    yield tmp_path / "site"
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


def load(*named: str, **how: bool) -> Plugins:
    return plugins.load(named, **how)


def why(loaded: Plugins) -> str:
    [problem] = loaded.problems
    return str(problem)


def names(loaded: Plugins, plugin: str) -> list[str]:
    """The techniques that a plugin offers."""
    return [name for name in loaded.techniques if loaded.origin("effbench_techniques", name) == plugin]


# --- what is there ------------------------------------------------------------------------------------------------


def test_the_built_in_plugins_load_without_a_problem():
    loaded = load(strict=True)
    assert not loaded.problems
    assert {"effbench.workloads", "effbench.data", "effbench.meters", "builtin"} <= set(loaded.sources)
    assert "mixup" in names(loaded, "builtin")
    assert "kjv_gpt" in loaded.workloads
    assert set(loaded.offers["effbench_meters"]) >= {"flop_per_step", "peak_memory_mib"}
    assert set(loaded.offers) == set(HOOKS)


def test_a_strangers_package_is_found_by_its_entry_point(site):
    install(site, "strange", offering("one", "two"))
    loaded = load()
    assert not loaded.problems
    assert names(loaded, "strange") == ["one", "two"]
    assert loaded.sources["strange"] == "strange 1.0"
    assert loaded.origin("effbench_techniques", "nobodys") == ""


def test_an_entry_point_may_name_an_object(site):
    source = HEAD + (
        "class Offer:\n    @effbench.hookimpl\n    def effbench_techniques(self):\n        return [make('one')]\n\n"
        "offer = Offer()\n"
    )
    install(site, "strange", source, entry="mine = strange:offer")
    assert names(load(), "mine") == ["one"]


# --- misspelt hooks and wrong arguments ---------------------------------------------------------------------------


@pytest.mark.parametrize("mark", ["@effbench.hookimpl\n", ""])
def test_a_misspelt_hook_is_refused_with_the_near_one_marked_or_not(site, mark):
    """In silence the technique would measure the baseline."""
    install(site, "strange", f"{offering('one')}\n{mark}def effbench_workload():\n    return []\n")
    loaded = load()
    assert "there is no hook 'effbench_workload'; did you mean 'effbench_workloads'?" in why(loaded)
    assert why(loaded).startswith("plugin strange (strange 1.0) is not loaded: ")
    assert "one" not in loaded.techniques
    assert "mixup" in loaded.techniques


def test_a_marked_function_that_looks_like_no_hook_is_refused_with_all_hooks(site):
    install(site, "strange", f"{HEAD}@effbench.hookimpl\ndef confgure_optimizer():\n    return []\n")
    assert "there is no hook 'confgure_optimizer'; the hooks are: effbench_techniques, effbench_workloads" in why(
        load()
    )


def test_a_hook_that_is_not_marked_is_refused(site):
    install(site, "strange", f"{HEAD}def effbench_techniques():\n    return [make('one')]\n")
    assert "effbench_techniques is not marked with @effbench.hookimpl" in why(load())


def test_a_plugin_without_a_hook_is_refused(site):
    install(site, "strange", "import effbench\n")
    assert "it has no hook; mark one with @effbench.hookimpl" in why(load())


def test_a_wrong_argument_is_refused_with_plugin_hook_argument_and_the_allowed_ones(site):
    install(
        site, "strange", "import effbench\n\n@effbench.hookimpl\ndef effbench_progress(trial, progres):\n    pass\n"
    )
    install(site, "other", offering("one"))
    loaded = load()
    assert why(loaded) == (
        "plugin strange (strange 1.0) is not loaded: hook effbench_progress has no argument 'progres'; "
        "did you mean 'progress'? Its arguments: trial, progress, step"
    )
    assert names(loaded, "other") == ["one"]


def test_an_offering_hook_takes_no_argument(site):
    install(site, "strange", "import effbench\n\n@effbench.hookimpl\ndef effbench_techniques(recipe):\n    return []\n")
    assert "hook effbench_techniques has no argument 'recipe'; Its arguments: none" in why(load())


def test_a_class_in_place_of_an_instance_is_refused():
    class Mine:
        @hookimpl
        def effbench_techniques(self):
            return []

    with pytest.raises(PluginError, match=r"it is the class Mine; give an instance of it: Mine\(\)"):
        check_hooks(Mine)
    check_hooks(Mine())


def test_an_observer_may_take_part_of_the_arguments(site):
    install(site, "strange", "import effbench\n\n@effbench.hookimpl\ndef effbench_progress(step):\n    pass\n")
    assert not load().problems


# --- broken plugins -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("import nowhere_to_be_found\n", "ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        ("raise SystemExit(3)\n", "SystemExit: 3"),
        ("def f(:\n", "SyntaxError"),
        (f"{HEAD}@effbench.hookimpl\ndef effbench_techniques():\n    1 / 0\n", "ZeroDivisionError: division by zero"),
        (
            f"{HEAD}@effbench.hookimpl\ndef effbench_techniques():\n    yield make('one')\n    raise KeyError('two')\n",
            "KeyError: 'two'",
        ),
    ],
    ids=["import", "exit", "syntax", "call", "half"],
)
def test_a_broken_plugin_costs_itself_and_is_fatal_only_where_that_is_asked_for(site, source, what):
    install(site, "broken", source)
    install(site, "other", offering("another"))
    loaded = load()
    assert what in why(loaded)
    assert what.partition(":")[0] in loaded.problems[0].traceback
    assert "broken" not in loaded.sources
    assert not loaded.manager.has_plugin("broken")
    assert names(loaded, "broken") == []
    assert "one" not in loaded.techniques
    assert names(loaded, "other") == ["another"]
    with pytest.raises(PluginError) as fatal:
        load(strict=True)
    assert str(fatal.value).startswith("plugin broken (broken 1.0): ")
    assert what in str(fatal.value)
    assert "Traceback (most recent call last)" in str(fatal.value)


def test_an_exception_that_cannot_say_what_it_is_is_a_broken_plugin_too(site):
    install(site, "mute", "class Mute(BaseException):\n    def __str__(self):\n        return 1 / 0\n\nraise Mute\n")
    assert why(load()).endswith("is not loaded: Mute: it cannot say what it is")


ROGUE = """
import os, torch, warnings
print("I am loaded")
os.chdir("/")
warnings.simplefilter("error")
torch.set_default_dtype(torch.float64)
torch.use_deterministic_algorithms(True)
torch.set_grad_enabled(False)
torch.set_num_threads(torch.get_num_threads() + 1)
"""


def test_what_a_plugin_changes_for_all_when_it_is_imported_is_undone(site, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    plain, filters = Switches.now(), list(warnings.filters)
    install(site, "rogue", ROGUE + offering("one"))
    assert names(load(strict=True), "rogue") == ["one"]
    assert (Switches.now(), Path.cwd(), warnings.filters) == (plain, tmp_path, filters)
    assert capsys.readouterr() == ("", "I am loaded\n")


@pytest.mark.parametrize(
    ("hook", "returned", "complaint"),
    [
        ("techniques", "[make('baseline')]", "technique 'baseline': this name is effbench's own; give it another one"),
        ("clocks", "{'steps': int}", "clock 'steps': this name is effbench's own; give it another one"),
        ("clocks", "{'joules per s': int}", "clock 'joules per s': a name consists of letters, digits, _ and -"),
        ("table_formats", "{1: str}", "table format 1: a name consists of letters, digits, _ and -"),
        ("table_formats", "{'': str}", "table format '': a name consists of letters, digits, _ and -"),
    ],
)
def test_names_that_could_not_be_written_or_mean_something_else_are_refused(site, hook, returned, complaint):
    install(site, "strange", f"{HEAD}@effbench.hookimpl\ndef effbench_{hook}():\n    return {returned}\n")
    assert complaint in why(load())


def test_ctrl_c_while_plugins_load_is_no_broken_plugin(site):
    install(site, "slow", "raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        load()


def test_a_plugin_that_registers_and_then_fails_is_rolled_back_all_of_it(site):
    source = offering("one") + "\n@effbench.hookimpl\ndef effbench_table_formats():\n    return {'mine': 3}\n"
    install(site, "strange", source)
    loaded = load()
    assert "effbench_table_formats should return a mapping from names to functions, found {'mine': 3}" in why(loaded)
    assert "one" not in loaded.techniques
    assert "strange" not in loaded.sources
    assert not loaded.manager.has_plugin("strange")


@pytest.mark.parametrize(
    ("returned", "complaint"),
    [
        ("None", "effbench_techniques returned NoneType; it should return a list of techniques"),
        (
            "[make]",
            "effbench_techniques offers make, which is no Technique; mark the function with @effbench.technique",
        ),
        ("[3]", "effbench_techniques offers 3, which is no Technique"),
        ("[make('one'), make('one')]", "technique 'one' is already offered by plugin strange; give it another name"),
    ],
)
def test_what_is_no_technique_or_has_a_name_that_is_taken_is_refused(site, returned, complaint):
    install(site, "strange", f"{HEAD}@effbench.hookimpl\ndef effbench_techniques():\n    return {returned}\n")
    loaded = load()
    assert complaint in why(loaded)


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
