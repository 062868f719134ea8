"""Find plugins, check them, and gather what they offer. A broken one costs itself, never the program."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pluggy

from effbench import hookspecs
from effbench.errors import EffbenchError, PluginError, nearest

if TYPE_CHECKING:
    from effbench.techniques import Technique
    from effbench.workloads.workload import Workload

GROUP = "effbench"  # of the entry points
OWN = ("effbench.workloads", "effbench.data", "effbench.meters")  # plugins that are part of the harness
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
    for name, source, get in _found(named):
        if _is_loaded(plugins, name, source):
            continue
        try:
            _add(plugins, name, source, get())
        except KeyboardInterrupt:
            raise
        except BaseException as fault:  # noqa: BLE001 - a stranger's module may raise anything, SystemExit too
            _forget(plugins, name)
            own = isinstance(fault, EffbenchError)
            why = str(fault) if own else f"{type(fault).__name__}: {fault}"
            shown = "" if own else traceback.format_exc()
            if strict:
                raise PluginError(f"plugin {name} ({source}): {why}\n{shown}".rstrip()) from fault
            plugins.problems.append(Problem(f"{name} ({source})", why, shown))
    return plugins


def _found(named: Iterable[str]) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Yield (name, where it comes from, how to get it) of every plugin."""
    for module in OWN:
        yield module, "effbench", lambda module=module: importlib.import_module(module)
    for entry in importlib.metadata.entry_points(group=GROUP):
        source = f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an installed package"
        yield entry.name, source, entry.load
    for text in named:
        yield from _named(text)


def _named(text: str) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    path = Path(text)
    if path.is_dir():
        files = sorted(file for file in path.glob("*.py") if not file.name.startswith(("_", "test_")))
        if not files:
            raise PluginError(f"--plugin {text}: there is no .py file in this folder")
        for file in files:
            yield file.stem, str(file), lambda file=file: module_from_file(file)
    elif path.suffix == ".py":
        if not path.is_file():
            raise PluginError(f"--plugin {text}: there is no such file")
        yield path.stem, str(path), lambda: module_from_file(path)
    else:
        yield text, "a module", lambda: importlib.import_module(text)


def module_from_file(path: Path) -> Any:
    """Import a file as a module of its own name."""
    name = f"effbench_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise PluginError(f"{path} cannot be imported: it is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and inspect look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _is_loaded(plugins: Plugins, name: str, source: str) -> bool:
    """Tell whether this very plugin was found before, as on a path that is listed twice."""
    return plugins.sources.get(name) == source


def _add(plugins: Plugins, name: str, source: str, plugin: Any) -> None:
    if plugins.manager.is_registered(plugin):
        return
    if name in plugins.sources:
        raise PluginError(f"its name is taken by the plugin from {plugins.sources[name]}")
    check_hooks(plugin)
    plugins.manager.register(plugin, name)
    plugins.sources[name] = source
    for hook in HOOKS:
        if implementation := _implementation(plugin, hook):
            if hook not in _COLLECT:
                continue
            for key, thing in _COLLECT[hook](hook, implementation()):
                _take(plugins, hook, key, thing, name)


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
        if marked and name not in HOOKS:
            near = nearest(name, HOOKS)
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
    taken = plugins.offers[hook]
    if key in taken and not same_source(taken[key], thing):
        other = plugins.origin(hook, key)
        raise PluginError(f"{_KIND[hook]} {key!r} is already offered by plugin {other}; give it another name")
    taken.setdefault(key, thing)
    plugins.offered_by.setdefault(f"{hook} {key}", plugin)


def same_source(one: Any, other: Any) -> bool:
    """Tell whether two things are the same, be it that their file was found twice under two names."""
    if one is other:
        return True
    try:
        files = [Path(inspect.getfile(getattr(thing, "function", thing))).resolve() for thing in (one, other)]
    except TypeError:
        return False
    return files[0] == files[1]


def _forget(plugins: Plugins, name: str) -> None:
    """Undo a registration, all of it."""
    if plugins.manager.has_plugin(name):
        plugins.manager.unregister(name=name)
    plugins.sources.pop(name, None)
    for place in [place for place, owner in plugins.offered_by.items() if owner == name]:
        hook, _, key = place.partition(" ")
        del plugins.offered_by[place], plugins.offers[hook][key]


def _many(hook: str, things: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a hook offers that returns an iterable of things with a name."""
    from effbench.data.source import DataSource
    from effbench.meters import Meter
    from effbench.techniques import Technique
    from effbench.workloads.workload import Workload

    kinds = {
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
