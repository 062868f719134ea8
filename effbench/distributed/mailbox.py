"""What the devices of a pipeline send each other, received in the order in which it was sent.

No message has a tag, so that any backend can carry them: since schedules are known to all, a device knows what its
neighbours send it, and in which order, and keeps what comes before it is needed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from effbench.distributed.pipeline_schedules import Action, Kind

#: Types of tensors by number, so that one can be named in a message.
_TYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
_DIMENSIONS = 8  # at the most


class Message(NamedTuple):
    """Features that go forward into a stage, or the slope of the loss with respect to those that left it."""

    kind: Kind
    stage: int  # to which it goes
    micro_batch: int


def messages(plan: Sequence[Action], device: int, devices: int, last: int) -> Iterator[tuple[int, Message]]:
    """Yield (device, message) for all that a device sends while it carries out a plan; `last` is the last stage."""
    for action in plan:
        stage = device + devices * action.chunk + (1 if action.kind == "forward" else -1)
        if 0 <= stage <= last:
            yield stage % devices, Message(action.kind, stage, action.micro_batch)


class Mailbox:
    """The messages of one device.

    ranks: the rank of each device.
    last: the number of the last stage.
    group: processes that nobody else sends messages in, where some are under way between steps; None for all.
    """

    def __init__(self, ranks: Sequence[int], device: int, last: int, group: dist.ProcessGroup | None = None) -> None:
        self.ranks, self.device, self.last, self.group = ranks, device, last, group
        self._announced: list[deque[Message]] = [deque() for _ in ranks]
        self._kept: dict[Message, Tensor] = {}
        self._leaving: list[tuple[dist.Work, Tensor]] = []

    def expect(self, plans: Sequence[Sequence[Action]]) -> None:
        """Be prepared for what the other devices send while they carry out their plans."""
        for sender, plan in enumerate(plans):
            if sender != self.device:
                for receiver, message in messages(plan, sender, len(self.ranks), self.last):
                    if receiver == self.device:
                        self._announced[sender].append(message)

    def take(self, message: Message, sender: int, empty: Callable[[Message], Tensor]) -> Tensor:
        """Return what a message holds, once it is there.

        empty: makes a tensor of the shape of a message's.
        """
        while message not in self._kept:
            following = self._announced[sender].popleft()
            self._kept[following] = self.receive(empty(following), sender)
        return self._kept.pop(message)

    def receive(self, empty: Tensor, sender: int) -> Tensor:
        """Fill `empty` with the next tensor that a device sends; return it."""
        dist.recv(empty, self.ranks[sender], group=self.group)
        return empty

    def send(self, tensor: Tensor, receiver: int) -> None:
        """Send a tensor, and go on at once; it must not be changed."""
        self._leaving = [(work, sent) for work, sent in self._leaving if not work.is_completed()]
        sent = tensor.detach().contiguous()
        work = dist.isend(sent, self.ranks[receiver], group=self.group)
        assert work is not None  # as it is for a rank outside of the group
        self._leaving.append((work, sent))

    def settle(self) -> None:
        """Wait until all that was sent is on its way, so that whoever sent it may change it."""
        for work, _ in self._leaving:
            work.wait()
        self._leaving = []

    def send_form(self, tensor: Tensor, receiver: int) -> None:
        """Say of which shape and type a tensor is."""
        form = [_TYPES.index(tensor.dtype), tensor.ndim, *tensor.shape]
        self.send(torch.tensor(form + [0] * (2 + _DIMENSIONS - len(form))), receiver)

    def receive_form(self, sender: int, device: torch.device) -> Tensor:
        """Return an empty tensor of the shape and type that a device says."""
        kind, dimensions, *shape = self.receive(torch.zeros(2 + _DIMENSIONS, dtype=torch.long), sender).tolist()
        return torch.empty(shape[:dimensions], dtype=_TYPES[kind], device=device)
