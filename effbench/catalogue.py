"""What there is to compare and to compare it on, as plain values: for lists, for programs, for shells."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from effbench import cards
from effbench import suite as suites
from effbench.records import label, plain
from effbench.suite_file import read
from effbench.taxonomy import LEAVES, about

if TYPE_CHECKING:
    from effbench.plugins import Plugins

Thing = dict[str, Any]  # each has a "name"


def techniques(plugins: Plugins) -> list[Thing]:
    """Return all techniques, in the order of the taxonomy."""
    return [
        {
            "name": technique.name,
            "leaf": technique.leaf,
            "summary": cards.card(technique).summary,
            "options": {name: _plain(value) for name, value in technique.options.items()},
            "neutral": _plain(technique.neutral),
            "paper": technique.paper,
            "claim": technique.claim,
            "plugin": plugins.origin("effbench_techniques", technique.name),
        }
        for members in cards.by_leaf(plugins.techniques.values()).values()
        for technique in members
    ]


def _plain(value: Any) -> Any:
    try:
        return plain(value)
    except TypeError:  # an option of a kind that JSON does not have
        return repr(value)


def workloads(plugins: Plugins) -> list[Thing]:
    """Return all workloads."""
    return [
        {
            "name": workload.name,
            "summary": workload.summary,
            "dataset": workload.dataset,
            "model": workload.model,
            "baseline": workload.baseline,
            "metric": workload.metric,
            "higher_is_better": workload.higher_is_better,
            "target": workload.target,
            "budget": workload.budget,
            "step_seconds": workload.step_seconds,
            "plugin": plugins.origin("effbench_workloads", workload.name),
        }
        for _, workload in sorted(plugins.workloads.items())
    ]


def packaged_suites() -> list[Thing]:
    """Return the suites that come with effbench."""
    found = [read(path) for path in suites.packaged().values()]
    return [
        {
            "name": suite.name,
            "summary": suite.summary,
            "budget": suite.budget,
            "budgets": dict(suite.budgets),
            "total": suite.total,
            "seeds": list(suite.seeds),
            "workloads": list(suite.workloads),
            "techniques": [label(chosen) for chosen in suite.sets],
            "only": {name: [label(chosen) for chosen in sets] for name, sets in suite.only.items()},
            "trials": suite.trials,
            "path": suite.path,
        }
        for suite in found
    ]


def datasets(plugins: Plugins) -> list[Thing]:
    """Return all data sets, and whether they are on this machine."""
    return [
        {
            "name": source.name,
            "summary": source.summary,
            "task": source.task,
            "size_mib": source.size_mib,
            "here": not (missing := source.missing()),
            "missing": missing,
            "licence": source.licence,
            "origin": source.origin,
            "sha256": source.sha256,
            "plugin": plugins.origin("effbench_datasets", source.name),
        }
        for _, source in sorted(plugins.offers["effbench_datasets"].items())
    ]


def loaded_plugins(plugins: Plugins) -> list[Thing]:
    """Return all plugins and what they offer; then those that are not loaded, and why."""
    offers: dict[str, dict[str, list[str]]] = {name: {} for name in plugins.sources}
    for place, owner in plugins.offered_by.items():
        hook, _, name = place.partition(" ")
        offers[owner].setdefault(hook.removeprefix("effbench_"), []).append(name)
    loaded = [
        {"name": name, "source": source, "offers": offers[name], "problem": ""}
        for name, source in plugins.sources.items()
    ]
    return loaded + [
        {"name": each.plugin, "source": "", "offers": {}, "problem": each.why} for each in plugins.problems
    ]


def taxonomy(plugins: Plugins) -> list[Thing]:
    """Return all leaves of the taxonomy, and the techniques of each."""
    members = cards.by_leaf(plugins.techniques.values())
    return [
        {"name": leaf, "about": about(leaf), "techniques": [technique.name for technique in members[leaf]]}
        for leaf in LEAVES
    ]


#: What `effbench list` lists, besides the suites, which need no plugins.
CATALOGUE: dict[str, Callable[[Plugins], list[Thing]]] = {
    "techniques": techniques,
    "workloads": workloads,
    "datasets": datasets,
    "plugins": loaded_plugins,
    "taxonomy": taxonomy,
}
