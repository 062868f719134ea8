"""Load plugins, check them, and gather what they offer. A broken one costs itself, never the program."""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pluggy

from effbench import hookspecs
from effbench.budget import UNITS
from effbench.discovery import GROUP, Found, find
from effbench.errors import EffbenchError, PluginError, nearest, words_of
from effbench.sets import BASELINE

if TYPE_CHECKING:
    from effbench.techniques import Technique
    from effbench.workloads.workload import Workload

_NAME = re.compile(r"[^\W\d][\w-]*")
_RESERVED: dict[str, Iterable[str]] = {"effbench_techniques": (BASELINE,), "effbench_clocks": UNITS}
HOOKS = tuple(name for name in vars(hookspecs) if name.startswith("effbench_"))


@dataclass(frozen=True, slots=True)
class Problem:
    """A plugin that is not loaded, and why; `traceback` is empty where the fault is not an exception of its own."""

    plugin: str
    why: str
    traceback: str = ""

    def __str__(self) -> str:
        return f"plugin {self.plugin} is not loaded: {self.why}"


@dataclass(slots=True)
class Plugins:
    """What the loaded plugins offer, by name, and who offers it."""

    manager: pluggy.PluginManager
    problems: list[Problem] = field(default_factory=list)
    offers: dict[str, dict[str, Any]] = field(default_factory=lambda: {hook: {} for hook in HOOKS})
    offered_by: dict[str, str] = field(default_factory=dict)  # "effbench_techniques mixup" -> plugin
    sources: dict[str, str] = field(default_factory=dict)  # plugin -> where it came from

    @property
    def techniques(self) -> dict[str, Technique]:
        """Techniques by name."""
        return self.offers["effbench_techniques"]

    @property
    def workloads(self) -> dict[str, Workload]:
        """Workloads by name."""
        return self.offers["effbench_workloads"]

    def origin(self, hook: str, name: str) -> str:
        """Return the name of the plugin that offers `name` through `hook`."""
        return self.offered_by.get(f"{hook} {name}", "")


def load(named: Iterable[str] = (), *, strict: bool = False) -> Plugins:
    """Load effbench's own plugins, then those of installed packages, then those named: a file, a folder or a module.

    strict: a broken plugin is an error; else it is listed in `problems`, and nothing that it offers is used.

    Raises:
        PluginError: a plugin is broken and `strict`, or a named one does not exist.
    """
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hookspecs)
    plugins = Plugins(manager)
    for found in find(named):
        if plugins.sources.get(found.name) == found.source:  # found twice, as on a path that is listed twice
            continue
        try:
            with _contained():
                _add(plugins, found)
        except KeyboardInterrupt:
            raise
        except BaseException as fault:  # a stranger's module may raise anything, SystemExit too
            _forget(plugins, found)
            own = isinstance(fault, EffbenchError)
            why = str(fault) if own else words_of(fault)
            shown = "" if own else traceback.format_exc()
            if strict:
                raise PluginError(f"plugin {found}: {why}\n{shown}".rstrip()) from fault
            plugins.problems.append(Problem(str(found), why, shown))
    return plugins


@contextlib.contextmanager
def _contained() -> Iterator[None]:
    """Undo what a plugin changes for all others when it is imported; what it prints is no output of ours."""
    from effbench.switches import Switches  # which imports torch

    plain, here = Switches.now(), os.open(".", os.O_RDONLY)  # open, for its path may be gone
    try:
        with contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings():
            yield
    finally:
        plain.throw()
        os.fchdir(here)
        os.close(here)


def _add(plugins: Plugins, found: Found) -> None:
    plugin = found.get()
    if plugins.manager.is_registered(plugin):
        return
    if found.name in plugins.sources:
        raise PluginError(f"its name is taken by the plugin from {plugins.sources[found.name]}")
    check_hooks(plugin)
    plugins.sources[found.name] = found.source
    plugins.manager.register(plugin, found.name)
    for hook, collect in _COLLECT.items():
        if offer := _implementation(plugin, hook):
            for key, thing in collect(hook, offer()):
                _take(plugins, hook, key, thing, found.name)


def check_hooks(plugin: Any) -> None:
    """Raise PluginError where pluggy would be silent or obscure: a class, a misspelt hook, a wrong argument."""
    if inspect.isclass(plugin):
        raise PluginError(f"it is the class {plugin.__name__}; give an instance of it: {plugin.__name__}()")
    hooks = 0
    for name in dir(plugin):
        function = getattr(plugin, name, None)
        if not callable(function):
            continue
        marked = getattr(function, f"{GROUP}_impl", None) is not None
        hooks += marked
        near = nearest(name, HOOKS)
        if name not in HOOKS and (marked or (near and name.startswith(f"{GROUP}_"))):
            hint = f"did you mean {near!r}?" if near else f"the hooks are: {', '.join(HOOKS)}"
            raise PluginError(f"there is no hook {name!r}; {hint}")
        if name in HOOKS and not marked:
            raise PluginError(f"{name} is not marked with @effbench.hookimpl, so it would never be called")
        if marked:
            _check_arguments(name, function)
    if not hooks:
        raise PluginError(f"it has no hook; mark one with @effbench.hookimpl. The hooks are: {', '.join(HOOKS)}")


def _check_arguments(name: str, function: Callable[..., Any]) -> None:
    allowed = list(inspect.signature(getattr(hookspecs, name)).parameters)
    for argument in inspect.signature(function).parameters:
        if argument not in allowed:
            near = nearest(argument, allowed)
            hint = f"did you mean {near!r}? " if near else ""
            takes = ", ".join(allowed) or "none"
            raise PluginError(f"hook {name} has no argument {argument!r}; {hint}Its arguments: {takes}")


def _implementation(plugin: Any, hook: str) -> Callable[[], Any] | None:
    function = getattr(plugin, hook, None)
    return function if callable(function) else None


def _take(plugins: Plugins, hook: str, key: str, thing: Any, plugin: str) -> None:
    if not isinstance(key, str) or not _NAME.fullmatch(key):
        raise PluginError(f"{_KIND[hook]} {key!r}: a name consists of letters, digits, _ and -")
    if key in _RESERVED.get(hook, ()):
        raise PluginError(f"{_KIND[hook]} {key!r}: this name is effbench's own; give it another one")
    taken = plugins.offers[hook]
    if key in taken and taken[key] is not thing:
        other = plugins.origin(hook, key)
        if other == plugin or not same_source(taken[key], thing):
            raise PluginError(f"{_KIND[hook]} {key!r} is already offered by plugin {other}; give it another name")
    taken.setdefault(key, thing)
    plugins.offered_by.setdefault(f"{hook} {key}", plugin)


def same_source(one: Any, other: Any) -> bool:
    """Tell whether two things are the same, be it that their file was found twice under two names."""
    try:
        files = [Path(inspect.getfile(_function_of(thing))).resolve() for thing in (one, other)]
    except TypeError:
        return False
    return files[0] == files[1]


def _function_of(thing: Any) -> Any:
    """Return a function that tells where a technique, workload, data set, meter or partial was written."""
    for part in ("function", "recipe", "load", "measure", "func"):
        thing = getattr(thing, part, thing)
    return thing


def _forget(plugins: Plugins, found: Found) -> None:
    """Undo a registration, all of it; another plugin of the same name stays."""
    if plugins.sources.get(found.name) != found.source:
        return
    del plugins.sources[found.name]
    if plugins.manager.has_plugin(found.name):
        plugins.manager.unregister(name=found.name)
    for place in [place for place, owner in plugins.offered_by.items() if owner == found.name]:
        hook, _, key = place.partition(" ")
        del plugins.offered_by[place], plugins.offers[hook][key]


def _many(hook: str, things: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a hook offers that returns an iterable of things with a name."""
    from effbench.data.source import DataSource
    from effbench.meters import Meter
    from effbench.techniques import Technique
    from effbench.workloads.workload import Workload

    kinds: dict[str, tuple[type[Any], str]] = {
        "effbench_techniques": (Technique, "mark the function with @effbench.technique(...)"),
        "effbench_workloads": (Workload, "make it an effbench.Workload"),
        "effbench_datasets": (DataSource, "make it an effbench.data.source.DataSource"),
        "effbench_meters": (Meter, "make it an effbench.meters.Meter"),
    }
    kind, what_to_do = kinds[hook]
    if not isinstance(things, Iterable):
        raise PluginError(f"{hook} returned {type(things).__name__}; it should return a list of {_KIND[hook]}s")
    for thing in things:
        if not isinstance(thing, kind):
            shown = getattr(thing, "__name__", repr(thing))
            raise PluginError(f"{hook} offers {shown}, which is no {kind.__name__}; {what_to_do}")
        yield thing.name, thing


def _mapping(hook: str, things: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a hook offers that returns name -> function."""
    if not isinstance(things, Mapping) or not all(callable(thing) for thing in things.values()):
        raise PluginError(f"{hook} should return a mapping from names to functions, found {things!r}")
    yield from things.items()


_COLLECT: dict[str, Callable[[str, Any], Iterator[tuple[str, Any]]]] = {
    "effbench_techniques": _many,
    "effbench_workloads": _many,
    "effbench_datasets": _many,
    "effbench_meters": _many,
    "effbench_clocks": _mapping,
    "effbench_executors": _mapping,
    "effbench_table_formats": _mapping,
}
_KIND = {
    "effbench_techniques": "technique",
    "effbench_workloads": "workload",
    "effbench_datasets": "data set",
    "effbench_meters": "meter",
    "effbench_clocks": "clock",
    "effbench_executors": "executor",
    "effbench_table_formats": "table format",
}
