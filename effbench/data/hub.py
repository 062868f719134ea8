"""Data sets of the Hugging Face hub, decoded once into the same cache as all others.

They come from the hub at the first load, or, where the hub is out of reach, from a local copy that is named once (on
the command line `--data cifar10=/folder`): a folder with the parquet files of the hub's repository. Either way the
decoded arrays land in the cache, where every later trial finds them; the file may also be copied from there to
another machine.
"""

from __future__ import annotations

import functools
import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from effbench.data import cache
from effbench.data.hub_connection import endpoint, import_datasets, in_library_cache, not_installed, unreachable
from effbench.data.hub_decoders import Decode
from effbench.data.prepared import Unpack, cache_key
from effbench.data.source import Arrays, DataSource, Splits, sha256_of
from effbench.errors import DataUnavailable


@dataclass(frozen=True, slots=True)
class HubEntry:
    """A data set of the hub: where it is, and how it becomes arrays and tensors."""

    name: str
    summary: str
    task: str
    licence: str
    size_mib: float  # of the stored arrays
    repository: str  # "uoft-cs/cifar10"
    revision: str  # commit of that repository
    config: str | None
    splits: Mapping[str, str]  # split of ours -> the hub's name for it; at least train and test
    decode: Decode
    unpack: Unpack
    decoding: int = 1  # raise it when `decode` comes to give other arrays
    files: Mapping[str, str] | None = None  # the hub's split -> pattern of files, where not all are wanted

    @property
    def key(self) -> str:
        """The key in the cache."""
        pinned = f"{self.repository} {self.config} {self.revision} {self.decoding}"
        return cache_key(self.name, hashlib.sha256(pinned.encode()).hexdigest())


def hub_source(entry: HubEntry) -> DataSource:
    """Return the source of a data set of the hub."""
    return DataSource(
        name=entry.name,
        summary=entry.summary,
        task=entry.task,
        licence=entry.licence,
        origin=f"{entry.repository} on the Hugging Face hub, revision {entry.revision}",
        size_mib=entry.size_mib,
        load=functools.partial(_load, entry),
        missing=functools.partial(_missing, entry),
        fetch=functools.partial(_fetch, entry),
        from_folder=functools.partial(_from_folder, entry),
    )


def _load(entry: HubEntry) -> Splits:
    arrays = cache.read(entry.key)
    if arrays is None:
        arrays = _from_hub(entry)
        cache.write_if_possible(entry.key, arrays)
    return entry.unpack(arrays, sha256_of(arrays))


def _missing(entry: HubEntry) -> str:
    if cache.path(entry.key).exists():
        return ""
    if reason := not_installed():
        return reason
    if in_library_cache(entry.repository) or not (reason := unreachable()):
        return ""
    return _out_of_reach(entry, reason)


def _fetch(entry: HubEntry) -> None:
    cache.write_or_explain(entry.key, _from_hub(entry))


def _from_folder(entry: HubEntry, folder: Path) -> None:
    files = {split: _parquet_files(entry, folder, theirs) for split, theirs in entry.splits.items()}
    datasets = import_datasets(online=False)
    with tempfile.TemporaryDirectory() as scratch:
        parts = {
            split: datasets.Dataset.from_parquet([str(file) for file in found], cache_dir=scratch)
            for split, found in files.items()
        }
        arrays = _decoded(entry, parts, str(folder))
        del parts
    cache.write_or_explain(entry.key, arrays)


def _from_hub(entry: HubEntry) -> Arrays:
    try:
        datasets = import_datasets(online=True)
        parts = {
            split: datasets.load_dataset(
                entry.repository, entry.config, split=theirs, revision=entry.revision, data_files=entry.files
            )
            for split, theirs in entry.splits.items()
        }
    except DataUnavailable:
        raise
    except ConnectionError as error:
        raise DataUnavailable(_out_of_reach(entry, unreachable() or str(error))) from error
    except Exception as error:  # the library lets through whatever its own libraries raise
        raise DataUnavailable(
            f"data set {entry.name!r} ({entry.repository} on {endpoint()}) could not be loaded; if it asks for a "
            f"login or for terms to be accepted, do so with 'hf auth login' and in a browser. The library says: "
            f"{type(error).__name__}: {error}"
        ) from error
    return _decoded(entry, parts, entry.repository)


def _decoded(entry: HubEntry, parts: Mapping[str, Any], where: str) -> Arrays:
    try:
        return entry.decode(parts)
    except (KeyError, ImportError) as error:
        columns = ", ".join(parts["train"].column_names)
        raise DataUnavailable(
            f"data set {entry.name!r} from {where} cannot be decoded: {error}; its columns are {columns}, "
            "and images need Pillow: pip install 'effbench[hub]'"
        ) from error


def _parquet_files(entry: HubEntry, folder: Path, split: str) -> list[Path]:
    inside = folder / entry.config if entry.config and (folder / entry.config).is_dir() else folder
    every = sorted(inside.rglob("*.parquet"))
    found = [f for f in every if f.name.startswith((f"{split}-", f"{split}.")) or f.parent.name == split]
    if not found:
        names = ", ".join(str(file.relative_to(inside)) for file in every[:5]) or "no parquet file"
        raise DataUnavailable(
            f"the local copy of {entry.name!r} needs files such as {split}-00000-of-00001.parquet, as "
            f"{entry.repository} has; in {inside} there is: {names}"
        )
    return found


def _out_of_reach(entry: HubEntry, reason: str) -> str:
    return (
        f"data set {entry.name!r} comes from the Hugging Face hub ({entry.repository}), which cannot be reached "
        f"({endpoint()}: {reason}), and there is no copy in the cache. You can: run a suite on data that need no "
        f"network ('effbench data list' shows them); point to a local copy (--data {entry.name}=/folder/with/parquet); "
        f"set HF_ENDPOINT to a mirror; or run 'effbench data fetch {entry.name}' on a connected machine and copy "
        f"{cache.path(entry.key)} from there"
    )
