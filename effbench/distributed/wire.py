"""The wire between a rank and the others: it counts what passes, and takes its time where a network is emulated."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist

from effbench.distributed.traffic import Message, Traffic


@dataclass(frozen=True, slots=True)
class Link:
    """A network as one rank feels it: every message takes latency + bytes / bandwidth, one after the other.

    latency: seconds of each message.
    bandwidth: bytes per second that a rank can send; infinite where only latency counts.
    """

    latency: float
    bandwidth: float

    def seconds(self, message: Message) -> float:
        """Return how long a message is under way."""
        return message.rounds * self.latency + message.sent / self.bandwidth


class Wire:
    """All that one rank sends goes through here.

    Where a link is emulated, what is sent waits in a line, leaves one after the other, and holds up whoever waits for
    it, and nobody else: computing goes on meanwhile, as it does beside a network card.
    """

    __slots__ = ("_closed", "_line", "link", "seconds", "traffic")

    def __init__(self) -> None:
        self.traffic = Traffic()
        self.link: Link | None = None
        self.seconds = 0.0  # that messages have been under way by emulation
        self._line: ThreadPoolExecutor | None = None
        self._closed = threading.Event()

    def send(self, message: Message, begin: Callable[[], dist.Work]) -> dist.Work:
        """Count a message, let it take its time, then `begin` it; return at once with what waits for it."""
        self.traffic.count(message)
        if self.link is None and self._line is None:
            return begin()
        delay = 0.0 if self.link is None else self.link.seconds(message)
        self.seconds += delay
        self._line = self._line or ThreadPoolExecutor(1, thread_name_prefix="emulated link")

        def leave() -> dist.Work:
            self._closed.wait(delay)
            return begin()

        return Delayed(self._line.submit(leave))  # also without delay: what was sent before leaves before

    @contextmanager
    def emulating(self, link: Link | None) -> Iterator[None]:
        """Send what is sent inside over an emulated link."""
        before, self.link = self.link, link
        try:
            yield
        finally:
            self.link = before

    def close(self) -> None:
        """Let go of what still waits in the line."""
        self._closed.set()
        if self._line is not None:
            self._line.shutdown(cancel_futures=True)


class Delayed(dist.Work):
    """The work of a message that has yet to leave."""

    def __init__(self, begun: Future[dist.Work]) -> None:
        super().__init__()
        self._begun = begun

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until it has left and the collective is done."""
        work = self._begun.result()
        return work.wait() if timeout is None else work.wait(timeout)

    def is_completed(self) -> bool:
        """Tell whether the collective is done."""
        return self._begun.done() and self._begun.result().is_completed()

    def get_future(self) -> torch.futures.Future[list[torch.Tensor]]:
        """Return a future of the collective's tensors, for those who go on when it is done, such as DDP."""
        over = torch.futures.Future[None]()

        def follow(begun: Future[dist.Work]) -> None:
            try:
                begun.result().get_future().add_done_callback(lambda _: over.set_result(None))
            except Exception:  # noqa: BLE001 - whoever looks at the tensors hears of it
                over.set_result(None)

        self._begun.add_done_callback(follow)
        tensors: torch.futures.Future[list[torch.Tensor]] = over.then(
            lambda _: self._begun.result().get_future().value()  # raises what went wrong; C++ sees it only so
        )
        return tensors
