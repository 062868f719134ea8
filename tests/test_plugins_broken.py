"""A broken plugin costs itself, and is never the end of the program."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from effbench.errors import PluginError
from effbench.switches import Switches
from strange_packages import HEAD, install, load, names, offering, why


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
