"""What the processes of a trial send each other, counted for each rank: bytes and calls, by collective.

Bytes are *algorithmic*: what a rank has to send when a collective runs by the algorithm that needs least bandwidth (the
ring of Patarasuk and Yuan, Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations, 2009), so that they
are the papers' closed forms and the same under gloo and NCCL. What a transport really sends is more, by headers, or
where it prefers fewer rounds to fewer bytes. Sends and receives that a technique writes out are counted as they are.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Message:
    """One call of a collective, as one rank sees it."""

    collective: str  # "all_reduce", ...
    sent: float  # bytes that this rank sends
    rounds: int  # how many messages one after the other it takes, each with the latency of the network


class Sent(NamedTuple):
    """What a rank has sent by one collective."""

    bytes: float = 0.0
    calls: int = 0


Amounts = Mapping[str, Sent]  # collective -> what was sent by it


class Traffic:
    """What one rank has sent so far; it may be asked and told from several threads."""

    __slots__ = ("_bytes", "_calls", "_lock")

    def __init__(self) -> None:
        self._bytes, self._calls, self._lock = Counter[str](), Counter[str](), threading.Lock()

    def count(self, message: Message) -> None:
        """Add one call."""
        with self._lock:
            self._bytes[message.collective] += message.sent  # type: ignore[assignment]  # a Counter of floats
            self._calls[message.collective] += 1

    def so_far(self) -> dict[str, Sent]:
        """Return what was sent until now, by collective."""
        with self._lock:
            return {name: Sent(float(self._bytes[name]), calls) for name, calls in self._calls.items()}

    def since(self, earlier: Amounts) -> dict[str, Sent]:
        """Return what was sent after `earlier`, an answer of `so_far`; collectives without a call are left out."""
        return {
            name: Sent(now.bytes - before.bytes, now.calls - before.calls)
            for name, now in self.so_far().items()
            if now.calls > (before := earlier.get(name, Sent())).calls
        }

    def sent_bytes(self, *collectives: str) -> float:
        """Return the bytes sent so far by these collectives; by all of them where none is named."""
        with self._lock:
            return float(sum(self._bytes[name] for name in collectives or tuple(self._bytes)))


def all_reduce(size: float, ranks: int) -> Message:
    """Sum `size` bytes over all ranks: reduce-scatter, then all-gather."""
    return Message("all_reduce", 2 * _share_of_others(ranks) * size, 2 * (ranks - 1))


def reduce_scatter(size: float, ranks: int) -> Message:
    """Sum `size` bytes, of which each rank gets its part."""
    return Message("reduce_scatter", _share_of_others(ranks) * size, ranks - 1)


def all_gather(part: float, ranks: int) -> Message:
    """Give all ranks the part of `part` bytes that this one has: it goes once around the ring."""
    return Message("all_gather", (ranks - 1) * part, ranks - 1)


def all_to_all(size: float, ranks: int) -> Message:
    """Send other ranks `size` bytes in all, each its own part."""
    return Message("all_to_all", size, ranks - 1)


def broadcast(size: float, ranks: int, distance: int) -> Message:
    """Pass `size` bytes down a chain that begins at the root; this rank is `distance` ranks from it."""
    return Message("broadcast", size if distance < ranks - 1 else 0.0, ranks - 1)


def reduce(size: float, ranks: int, distance: int) -> Message:
    """Sum `size` bytes along a chain that ends at the root; this rank is `distance` ranks from it."""
    return Message("reduce", size if distance else 0.0, ranks - 1)


def gather(part: float, ranks: int, distance: int) -> Message:
    """Send the root, which is `distance` ranks from here, this rank's part of `part` bytes."""
    return Message("gather", part if distance else 0.0, ranks - 1)


def scatter(size: float, ranks: int, distance: int) -> Message:
    """Send every rank its part of the `size` bytes that the root has; this rank is `distance` ranks from it."""
    return Message("scatter", 0.0 if distance else _share_of_others(ranks) * size, ranks - 1)


def send(size: float) -> Message:
    """Send `size` bytes to one other rank."""
    return Message("send", size, 1)


def barrier(ranks: int) -> Message:
    """Wait for all ranks: nothing but latency, in as many rounds as it takes until all have heard of all."""
    return Message("barrier", 0.0, (ranks - 1).bit_length())


def _share_of_others(ranks: int) -> float:
    return (ranks - 1) / ranks
