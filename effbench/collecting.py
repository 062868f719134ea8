"""Python's search for cycles of garbage, put off while very many objects are made that have none."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def put_off(*, for_good: bool = False) -> Iterator[None]:
    """Look for no garbage inside: a hundred thousand records have no cycles, and looking takes longer than reading.

    for_good: nor ever after in what is there at the end, as where the process ends next.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if for_good:
            gc.freeze()
        if was_on:
            gc.enable()
