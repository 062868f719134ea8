"""Data sets and where they come from. Nothing is read before a data set is loaded."""

from __future__ import annotations

import functools

from effbench.data import (
    cluttered_digits,
    digits,
    g2p,
    kjv,
    kjv_books,
    mnist1d,
    mnist5k,
    multimnist,
    shakespeare,
)
from effbench.data.hub_entries import HUB_SOURCES
from effbench.data.source import DataSource, Splits
from effbench.errors import UnknownName
from effbench.hookspecs import hookimpl

__all__ = ["SOURCES", "DataSource", "Splits", "load"]

#: The data sets that effbench itself offers.
SOURCES: tuple[DataSource, ...] = (
    digits.SOURCE,
    mnist1d.SOURCE,
    mnist5k.SOURCE,
    cluttered_digits.SOURCE,
    multimnist.SOURCE,
    kjv.SOURCE,
    kjv_books.SOURCE,
    shakespeare.SOURCE,
    g2p.SOURCE,
    *HUB_SOURCES,
)


@hookimpl
def effbench_datasets() -> tuple[DataSource, ...]:
    """Offer the built-in data sets."""
    return SOURCES


@functools.lru_cache(maxsize=2)
def load(name: str) -> Splits:
    """Load a built-in data set, once in a process: all who ask share its tensors, which nobody may write into.

    Raises:
        UnknownName: there is no built-in data set of that name.
        DataUnavailable: it is not on this machine, or not the one that effbench compares on.
    """
    known = {source.name: source for source in SOURCES}
    if name not in known:
        raise UnknownName("built-in data set", name, known)
    return known[name].load()
