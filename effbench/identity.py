"""What makes two trials the same work: the content key, and the parts that it is made of."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import inspect
import json
import platform
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import effbench

if TYPE_CHECKING:
    from effbench.plugins import Plugins
    from effbench.trial import Trial

#: Folders and files of the harness that no result depends on: they plan, start, show, store, explain.
_LOOKS_ONLY = {
    "__main__.py",
    "analysis",
    "api.py",
    "arguments.py",
    "cards.py",
    "catalogue.py",
    "cli.py",
    "collecting.py",
    "commands",
    "discovery.py",
    "execution",
    "factorial.py",
    "hookspecs.py",
    "identity.py",
    "interrupts.py",
    "laws",
    "machine.py",
    "messages.py",
    "observers.py",
    "outcomes.py",
    "planned.py",
    "planning.py",
    "plugins.py",
    "prices.py",
    "reading.py",
    "report",
    "rows.py",
    "runner.py",
    "scaffold",
    "sets.py",
    "store.py",
    "suite.py",
    "suite_file.py",
    "toml.py",
    "toys.py",
    "verbs.py",
}
_HASHED = ("code", "price", "harness")  # parts whose value says nothing to a person


def parts(trial: Trial, plugins: Plugins) -> dict[str, str]:
    """Return what a trial's result depends on, part by part, each as readable text or a short hash."""
    workload = plugins.workloads[trial.workload]
    found = {
        "workload": trial.workload,
        "techniques": json.dumps(trial.techniques, sort_keys=True),
        "seed": str(trial.seed),
        "budget": trial.budget,
        "price": digest(json.dumps(trial.price, sort_keys=True)) if trial.price else "",
        "threads": str(trial.threads),
        "device": trial.device,
        "data": data_of(workload.dataset, plugins),
        "harness": harness_digest(),
        "code of the workload": code_of(workload.recipe),
        **versions(),
    }
    for name in sorted(trial.techniques):
        found[f"code of {name}"] = code_of(plugins.techniques[name].function)
    return found


def key(found: Mapping[str, str]) -> str:
    """Return the content key of the parts: 16 hexadecimal digits."""
    return digest(json.dumps(dict(found), sort_keys=True))


def differences(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Say, part by part, how two trials differ; empty where they are the same work."""

    def change(part: str) -> str:
        before, after = one.get(part, ""), other.get(part, "")
        if part.startswith(_HASHED):
            return f"another {part}"
        return f"{part}: {before or 'none'} -> {after or 'none'}"

    return [change(part) for part in sorted({*one, *other}) if one.get(part) != other.get(part)]


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions that a result depends on."""
    import importlib.metadata

    return {
        "effbench": effbench.__version__,
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in ("torch", "numpy")},
    }


def data_of(name: str, plugins: Plugins) -> str:
    """Return what fixes a data set: its hash, or else where it comes from; "" where its workload alone knows."""
    source = plugins.offers["effbench_datasets"].get(name)
    return (source.sha256[:16] or source.origin) if source is not None else ""


@functools.cache
def harness_digest() -> str:
    """Return a hash over the harness's sources that results depend on."""
    root = Path(effbench.__file__).parent
    found = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        if file.relative_to(root).parts[0] not in _LOOKS_ONLY:
            found.update(file.read_bytes())
    return found.hexdigest()[:16]


def code_of(function: Any) -> str:
    """Return a hash over the file that defines a function, and over what that imports from its own package."""
    module = inspect.getmodule(inspect.unwrap(getattr(function, "func", function)))
    if module is None:
        return "no source"
    found, waiting = dict[str, str](), [module.__name__]
    while waiting:
        name = waiting.pop()
        file = getattr(sys.modules.get(name), "__file__", None)
        if name in found or file is None or not Path(file).is_file():
            continue
        state = Path(file).stat()
        found[name], imported = _read(Path(file), name, (state.st_mtime_ns, state.st_size))
        waiting += imported
    return digest(json.dumps(found, sort_keys=True)) if found else "no source"


@functools.lru_cache(maxsize=1024)
def _read(file: Path, module: str, state: tuple[int, int]) -> tuple[str, tuple[str, ...]]:  # noqa: ARG001 - state is a key
    """Return the hash of a module's file, and the modules of the same package that it may import."""
    text = file.read_text(encoding="utf-8")
    top = module.partition(".")[0]
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    names = set(_imports(ast.parse(text), package))
    own = () if top == "effbench" else tuple(sorted(name for name in names if name.partition(".")[0] == top))
    return digest(text), own


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    """Yield the modules that a source names in its imports, and those that may hide behind a name it imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def digest(text: str) -> str:
    """Return 16 hexadecimal digits of SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
