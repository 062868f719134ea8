"""Hold Ctrl-C back while trials run, so that what runs is ended in order and recorded before anything is given up."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # Ctrl-C, `kill`, and a terminal that is closed


@contextlib.contextmanager
def held_back() -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether somebody asked to stop; asking twice changes nothing.

    Raises:
        KeyboardInterrupt: at the end, where somebody asked.
    """
    if threading.current_thread() is not threading.main_thread():  # only the main thread may handle signals
        yield lambda: False
        return
    asked = False

    def hear(*_: object) -> None:
        nonlocal asked
        asked = True

    numbers = [number for number in _NUMBERS if number != signal.SIGHUP or not _is_ignored(number)]
    former = {number: signal.signal(number, hear) for number in numbers}
    try:
        yield lambda: asked
    finally:
        for number, handler in former.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
    if asked:
        raise KeyboardInterrupt


def _is_ignored(number: signal.Signals) -> bool:
    return signal.getsignal(number) is signal.SIG_IGN  # as `nohup` has it for SIGHUP
