"""What makes two trials the same work: the content key, and the parts that it is made of."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import effbench

if TYPE_CHECKING:
    from effbench.plugins import Plugins
    from effbench.trial import Trial

#: Folders and files of the harness that no result depends on.
_LOOKS_ONLY = {
    "analysis",
    "report",
    "commands",
    "scaffold",
    "cli.py",
    "cards.py",
    "store.py",
    "api.py",
    "runner.py",
}


def parts(trial: Trial, plugins: Plugins) -> dict[str, str]:
    """Return what a trial's result depends on, part by part, each as readable text or a short hash."""
    found = {
        "workload": trial.workload,
        "techniques": json.dumps(trial.techniques, sort_keys=True),
        "seed": str(trial.seed),
        "budget": trial.budget,
        "price": digest(json.dumps(trial.price, sort_keys=True)) if trial.price else "",
        "threads": str(trial.threads),
        "device": trial.device,
        "data": json.dumps(trial.data, sort_keys=True),
        "harness": harness_digest(),
        "workload code": source_digest(plugins.workloads[trial.workload].recipe),
        **versions(),
    }
    for name in sorted(trial.techniques):
        found[f"code of {name}"] = source_digest(plugins.techniques[name].function)
    return found


def key(found: Mapping[str, str]) -> str:
    """Return the content key of the parts: 16 hexadecimal digits."""
    return digest(json.dumps(dict(found), sort_keys=True))


def differences(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Say, part by part, how two trials differ; empty where they are the same work."""
    return [
        f"{part}: {one.get(part, 'absent')} -> {other.get(part, 'absent')}"
        for part in sorted({*one, *other})
        if one.get(part) != other.get(part)
    ]


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions that a result depends on."""
    import importlib.metadata

    return {
        "effbench": effbench.__version__,
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in ("torch", "numpy")},
    }


@functools.cache
def harness_digest() -> str:
    """Return a hash over the harness's sources that results depend on."""
    root = Path(effbench.__file__).parent
    found = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        if file.relative_to(root).parts[0] not in _LOOKS_ONLY:
            found.update(file.read_bytes())
    return found.hexdigest()[:16]


def source_digest(thing: Any) -> str:
    """Return a hash over the file that defines `thing`."""
    try:
        file = inspect.getsourcefile(inspect.unwrap(getattr(thing, "func", thing)))
    except TypeError:
        file = None
    return digest(Path(file).read_text(encoding="utf-8")) if file and Path(file).is_file() else "no source"


def digest(text: str) -> str:
    """Return 16 hexadecimal digits of SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
