"""Files that lie in installed packages. They are read as files; the packages are never imported."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

from effbench.errors import DataUnavailable


def packaged_file(package: str, inside: str, project: str) -> Path:
    """Return the path of the file `inside` the installed `package`.

    project: what to install to have it.

    Raises:
        DataUnavailable: the package, or the file in it, is not there.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise DataUnavailable(f"the package {package!r} is not installed; it is there after: pip install {project!r}")
    file = Path(spec.origin).parent / inside
    if not file.is_file():
        raise DataUnavailable(
            f"the installed package {package!r} has no file {inside} (looked at {file}); {project} has"
        )
    return file


def needs_file(package: str, inside: str, project: str) -> Callable[[], str]:
    """Return a function that says what is missing of that file, "" where nothing is."""

    def needs() -> str:
        try:
            packaged_file(package, inside, project)
        except DataUnavailable as error:
            return str(error)
        return ""

    return needs
