"""Time several step generators in turns, in one process: ratios that a busy machine does not move."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping

import numpy as np


def in_turns(steps: Mapping[str, Iterator[None]], rounds: int, warm_up: int = 50) -> dict[str, np.ndarray]:
    """Return name -> (rounds,) CPU seconds; every round takes one step of each, in an order of its own."""
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    orders, names = random.Random(0), list(steps)
    for number in range(warm_up + rounds):
        for name in orders.sample(names, len(names)):
            before = time.process_time()
            next(steps[name])
            if number >= warm_up:
                seconds[name].append(time.process_time() - before)
    return {name: np.asarray(taken) for name, taken in seconds.items()}


def ratio(seconds: Mapping[str, np.ndarray], name: str, to: str) -> float:
    """Return the median of paired ratios."""
    return float(np.median(seconds[name] / seconds[to]))


def extra_microseconds(seconds: Mapping[str, np.ndarray], name: str, to: str) -> float:
    """Return the median of paired differences, microseconds."""
    return float(np.median(seconds[name] - seconds[to]) * 1e6)
