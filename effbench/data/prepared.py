"""Data sets that are built once, verified by hash, and then read from the cache in milliseconds."""

from __future__ import annotations

from collections.abc import Callable

from effbench.data import cache
from effbench.data.source import Arrays, DataSource, Splits, always_there, check_sha256, sha256_of

Build = Callable[[], Arrays]
Unpack = Callable[[Arrays, str], Splits]  # (arrays, their hash) -> tensors; fast, as every trial does it


def prepared_source(
    *,
    name: str,
    summary: str,
    task: str,
    licence: str,
    origin: str,
    size_mib: float,
    sha256: str,
    build: Build,
    unpack: Unpack,
    needs: Callable[[], str] = always_there,
) -> DataSource:
    """Return a source whose arrays are built at the first load, and whose hash must be `sha256`.

    The hash is part of the cache's key: when a build changes, so does the hash, and old files are never read.

    needs: "" where `build` has what it needs, else what is missing.
    """
    key = cache_key(name, sha256)

    def load() -> Splits:
        arrays = cache.read(key)
        if arrays is None or sha256_of(arrays) != sha256:
            arrays = build()
            check_sha256(name, sha256_of(arrays), sha256, origin)
            cache.write_if_possible(key, arrays)
        return unpack(arrays, sha256)

    def missing() -> str:
        return "" if cache.path(key).exists() else needs()

    return DataSource(name, summary, task, licence, origin, size_mib, load, missing, sha256=sha256)


def keep(source: DataSource, arrays: Arrays) -> None:
    """Verify the arrays of a source that were got in another way than by loading it, and keep them.

    Raises:
        DataUnavailable: they are not what the source pins, or the cache folder cannot be written.
    """
    check_sha256(source.name, sha256_of(arrays), source.sha256, source.origin)
    cache.write_or_explain(cache_key(source.name, source.sha256), arrays)


def cache_key(name: str, fingerprint: str) -> str:
    """Return the key under which a data set is kept: its name, and what must change when its arrays do."""
    return f"{name}-{fingerprint[:16]}"
