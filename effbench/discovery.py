"""Find plugins: the harness's own, those of installed packages, and those that a person names."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from effbench.errors import PluginError

GROUP = "effbench"  # of the entry points
#: Plugins that are part of the harness.
OWN = ("effbench.workloads", "effbench.data", "effbench.meters", "effbench.holdings")


@dataclass(frozen=True, slots=True)
class Found:
    """A plugin that is not loaded yet."""

    name: str
    source: str  # "package 1.0", or the path of a file
    get: Callable[[], Any]  # import it; a stranger's module may raise anything

    def __str__(self) -> str:
        return f"{self.name} ({self.source})"


def find(named: Iterable[str] = ()) -> Iterator[Found]:
    """Yield the plugins of effbench, of installed packages, and the named ones: a file, a folder or a module.

    Raises:
        PluginError: a named one does not exist.
    """
    for module in OWN:
        yield Found(module, "effbench", partial(importlib.import_module, module))
    yield from _installed()
    for text in named:
        yield from _named(text)


def _installed() -> list[Found]:
    """Return the plugins of installed packages, by name of the package, effbench's first: nobody can come before it."""
    packages: dict[str, list[Found]] = {}
    for distribution in importlib.metadata.distributions():
        offered = _offered_by(distribution)
        if offered:  # of two versions, the one that Python imports comes first
            packages.setdefault(offered[0].source.rpartition(" ")[0], offered)
    in_order = sorted(packages, key=lambda package: (package != GROUP, package))
    return [found for package in in_order for found in packages[package]]


def _offered_by(distribution: importlib.metadata.Distribution) -> list[Found]:
    """Return the plugins of an installed package; where its metadata is broken, one that says so when it is got."""
    source = "an installed package"
    try:
        if f"[{GROUP}]" not in (distribution.read_text("entry_points.txt") or ""):
            return []
        with contextlib.suppress(Exception):  # no METADATA: some finders raise, others say None
            source = f"{distribution.name} {distribution.version}"
        return [Found(entry.name, source, entry.load) for entry in distribution.entry_points.select(group=GROUP)]
    except Exception as fault:  # noqa: BLE001 - metadata that anything may be wrong with
        return [Found(source.partition(" ")[0], source, partial(_unreadable, fault))]


def _unreadable(fault: Exception) -> None:
    raise PluginError(f"its metadata cannot be read: {type(fault).__name__}: {fault}") from fault


def _named(text: str) -> Iterator[Found]:
    path = Path(os.path.realpath(text))  # which, unlike resolve(), goes no rounds in a loop of links
    if path.is_dir():
        files = sorted(file for file in path.glob("*.py") if not file.name.startswith(("_", "test_")))
        if not files:
            raise PluginError(f"--plugin {text}: there is no .py file in this folder")
        for file in files:
            yield Found(file.stem, str(file), partial(module_from_file, file))
    elif path.suffix == ".py":
        if not path.is_file():
            raise PluginError(f"--plugin {text}: there is no such file")
        yield Found(path.stem, str(path), partial(module_from_file, path))
    else:
        if importlib.util.find_spec(text.partition(".")[0]) is None:
            raise PluginError(f"--plugin {text}: there is no such file, folder or module")
        yield Found(text, "a module", partial(importlib.import_module, text))


def module_from_file(path: Path) -> ModuleType:
    """Import a file as a module of a name of its own, which files of other folders do not share.

    Raises:
        PluginError: it is no Python file. Whatever the module raises when it is imported comes out as it is.
    """
    name = f"{GROUP}_plugin_{path.stem}_{sha256(bytes(path.resolve())).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise PluginError(f"{path} cannot be imported: it is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and inspect look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException:  # a stranger's module may raise anything, SystemExit too
        del sys.modules[name]
        raise
    return module
