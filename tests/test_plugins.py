"""Plugins of strangers: what they offer is found, and a hook that is no hook is refused."""

from __future__ import annotations

import pytest

from effbench.errors import PluginError
from effbench.hookspecs import hookimpl
from effbench.plugins import HOOKS, check_hooks
from strange_packages import HEAD, install, load, names, offering, why

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
