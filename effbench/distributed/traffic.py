"""What the processes of a trial send each other, counted for each rank: bytes and calls, by collective.

Bytes are *algorithmic*: what a rank has to send when a collective runs by the algorithm that needs least bandwidth (the
ring of Patarasuk and Yuan, Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations, 2009), so that they
are the papers' closed forms and the same under gloo and NCCL. What a transport really sends is more, by headers, or
where it prefers fewer rounds to fewer bytes. Sends and receives that a technique writes out are counted as they are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
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


_NOTHING = Sent()

Amounts = Mapping[str, Sent]  # collective -> what was sent by it


class Traffic:
    """What one rank has sent so far; it may be asked and told from several threads.

    line: the ledger's line that is open, so that bytes are on the clock, or off it, as the time is in which they leave.
    """

    __slots__ = ("_lock", "_sent", "line")

    def __init__(self) -> None:
        self.line: Callable[[], str] = lambda: ""
        self._sent: dict[tuple[str, str], Sent] = {}
        self._lock = threading.Lock()

    def count(self, message: Message) -> None:
        """Add one call."""
        key = self.line(), message.collective
        with self._lock:
            before = self._sent.get(key, _NOTHING)
            self._sent[key] = Sent(before.bytes + message.sent, before.calls + 1)

    def so_far(self, lines: Collection[str] | None = None) -> dict[str, Sent]:
        """Return what was sent until now, by collective.

        lines: only while one of these lines of the ledger was open.
        """
        found: dict[str, Sent] = {}
        with self._lock:
            for (line, name), sent in self._sent.items():
                if lines is None or line in lines:
                    before = found.get(name, _NOTHING)
                    found[name] = Sent(before.bytes + sent.bytes, before.calls + sent.calls)
        return found

    def since(self, earlier: Amounts) -> dict[str, Sent]:
        """Return what was sent after `earlier`, an answer of `so_far`; collectives without a call are left out."""
        return {
            name: Sent(now.bytes - before.bytes, now.calls - before.calls)
            for name, now in self.so_far().items()
            if now.calls > (before := earlier.get(name, _NOTHING)).calls
        }

    def sent_bytes(self, *collectives: str) -> float:
        """Return the bytes sent so far by these collectives; by all of them where none is named."""
        found = self.so_far()
        return sum(sent.bytes for name, sent in found.items() if not collectives or name in collectives)


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
