"""effbench data: list data sets, or fetch one, which is the only time that effbench uses the network."""

from __future__ import annotations

import argparse
from pathlib import Path

from effbench.catalogue import datasets
from effbench.commands import list as listing
from effbench.commands.plugins_of import plugins_of
from effbench.data.source import DataSource
from effbench.errors import DataUnavailable, EffbenchError, UnknownName
from effbench.report.console import Screen, emit


def run(arguments: argparse.Namespace) -> int:
    """List, or fetch."""
    plugins = plugins_of(arguments)
    if arguments.action == "list":
        if arguments.name or arguments.source:
            raise EffbenchError("`effbench data list` takes no name; `effbench show NAME` tells about one data set")
        emit("\n".join(listing.datasets(datasets(plugins), Screen.of())))
        return 0
    known = plugins.offers["effbench_datasets"]
    if arguments.name is None:
        raise EffbenchError(f"`effbench data fetch` needs the name of a data set. There is: {', '.join(sorted(known))}")
    if arguments.name not in known:
        raise UnknownName("data set", arguments.name, known)
    emit(fetch(known[arguments.name], arguments.source))
    return 0


def fetch(source: DataSource, folder: str | None) -> str:
    """Get a data set onto this machine, and say so.

    folder: take it from there; None: over the network.

    Raises:
        DataUnavailable: it cannot be had this way.
    """
    if folder is not None:
        if source.from_folder is None:
            raise DataUnavailable(f"data set {source.name!r} is not taken from a folder; it comes from {source.origin}")
        path = Path(folder).expanduser()
        if not path.is_dir():
            raise DataUnavailable(f"--from {folder}: there is no such folder")
        source.from_folder(path)
    elif not (missing := source.missing()):
        return f"{source.name} is here already."
    elif source.fetch is None:
        raise DataUnavailable(f"data set {source.name!r} cannot be fetched: {missing}")
    else:
        source.fetch()
    if missing := source.missing():
        raise DataUnavailable(f"data set {source.name!r} is still not here: {missing}")
    return f"{source.name} is here now."
