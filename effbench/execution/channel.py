"""Lines of JSON over a socket between two processes of this machine."""

from __future__ import annotations

import json
import socket
from typing import Any

Message = dict[str, Any]

_BYTES = 1 << 16  # read at once


class Channel:
    """One end of a socket over which two processes send each other lines of JSON."""

    __slots__ = ("_rest", "_socket")

    def __init__(self, end: socket.socket) -> None:
        self._socket, self._rest = end, b""

    def fileno(self) -> int:
        """Return the file descriptor, so that one can wait for several channels at once."""
        return self._socket.fileno()

    def send(self, message: Message) -> None:
        """Send one message.

        Raises:
            OSError: the other end is gone.
        """
        self._socket.sendall(json.dumps(message).encode() + b"\n")

    def send_with(self, message: bytes, passed: socket.socket) -> None:
        """Send one byte, and with it a socket, which then is the other process's too.

        Raises:
            OSError: the other end is gone.
        """
        socket.send_fds(self._socket, [message], [passed.fileno()])

    def take_passed(self) -> socket.socket | None:
        """Return the next socket that was passed, or None where the other end is gone."""
        try:
            message, descriptors, _, _ = socket.recv_fds(self._socket, 1, 1)
        except ConnectionResetError:
            return None
        return socket.socket(fileno=descriptors[0]) if message else None

    def receive(self) -> list[Message] | None:
        """Wait for news and return the messages that are complete; None where the other end is gone.

        A line that is no JSON, such as one whose sender was stopped while it wrote, is left out.
        """
        try:
            heard = self._socket.recv(_BYTES)
        except ConnectionResetError:
            heard = b""
        if not heard:
            return None
        *lines, self._rest = (self._rest + heard).split(b"\n")
        return [message for line in lines if (message := _read(line)) is not None]

    def first(self) -> Message:
        """Wait for a message, and return it.

        Raises:
            ConnectionError: the other end is gone.
        """
        while not (messages := self.receive()):
            if messages is None:
                raise ConnectionError("the other end hung up")
        return messages[0]

    def drain(self) -> list[Message]:
        """Return the messages that have arrived, without waiting."""
        self._socket.setblocking(False)
        found: list[Message] = []
        try:
            while (messages := self.receive()) is not None:
                found += messages
        except BlockingIOError:
            pass
        finally:
            self._socket.setblocking(True)
        return found

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


def _read(line: bytes) -> Message | None:
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) else None
