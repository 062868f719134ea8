"""Arrays that were built once, kept as files in the user's cache folder.

A file is written beside its place and then renamed into it, so that it is whole or not there at all, however
many processes write it and whenever they are killed. zip's own checksum finds a damaged one.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import warnings
import zipfile
import zlib
from pathlib import Path

import numpy as np

from effbench.data.source import Arrays
from effbench.errors import DataUnavailable

#: A file that is still half written after this long belongs to a process that was killed.
STALE_SECONDS = 3600.0


def folder() -> Path:
    """Return where the arrays lie: the platform's cache folder, which need not exist yet."""
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    if Path(chosen).is_absolute():  # the XDG specification has relative ones ignored
        base = Path(chosen)
    else:
        base = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    return base / "effbench" / "data"


def path(key: str) -> Path:
    """Return the file of `key`, which need not exist."""
    return folder() / f"{key}.npz"


def read(key: str) -> Arrays | None:
    """Return the arrays kept under `key`, or None where there are none or the file is damaged."""
    try:
        with path(key).open("rb") as file, np.load(file, allow_pickle=False) as kept:
            return {name: kept[name] for name in kept.files}
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error):
        return None


def write(key: str, arrays: Arrays) -> None:
    """Keep `arrays` under `key`.

    Raises:
        OSError: the folder cannot be written.
    """
    target = path(key)
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_stale(target)
    handle, partial = tempfile.mkstemp(prefix=f"{key}.", suffix=".partial", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        Path(partial).replace(target)
    except BaseException:  # Ctrl-C too leaves no part of a file behind
        Path(partial).unlink(missing_ok=True)
        raise


def write_or_explain(key: str, arrays: Arrays) -> None:
    """Keep `arrays` under `key`.

    Raises:
        DataUnavailable: the folder cannot be written, so that there is nowhere to keep what was fetched.
    """
    try:
        write(key, arrays)
    except OSError as error:
        raise DataUnavailable(
            f"what was fetched cannot be kept: the cache folder {folder()} cannot be written "
            f"({error.strerror or error}); set XDG_CACHE_HOME to a folder that can be written"
        ) from error


def write_if_possible(key: str, arrays: Arrays) -> None:
    """Keep `arrays` under `key`, or warn that they will be built again every time."""
    try:
        write(key, arrays)
    except OSError as error:
        warnings.warn(
            f"the cache folder {folder()} cannot be written ({error.strerror or error}), so every trial "
            "builds its data anew; set XDG_CACHE_HOME to a folder that can be written",
            RuntimeWarning,
            stacklevel=2,
        )


def _remove_stale(target: Path) -> None:
    for partial in target.parent.glob(f"{target.stem}.*.partial"):
        try:
            if time.time() - partial.stat().st_mtime > STALE_SECONDS:
                partial.unlink()
        except FileNotFoundError:  # its writer, or another sweep, was quicker
            continue
