"""Time several step generators in turns, in one process: ratios that a busy machine does not move.

Where in memory a model happens to lie moves the time of its step by one per cent. What differs by so little is
therefore built several times over, in an order that changes.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterator, Mapping

import numpy as np


def in_turns(
    steps: Mapping[str, Iterator[None]], rounds: int, stretch: int = 1, warm_up: int = 50
) -> dict[str, np.ndarray]:
    """Return name -> (rounds,) CPU seconds of a step; every round takes a stretch of each, in an order of its own.

    stretch: steps of one loop that follow one another, as they do where it is alone. The first of them finds the
        caches full of another loop's code, and pays for that.
    """
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    orders, names = random.Random(0), list(steps)
    for loop in steps.values():
        for _ in range(warm_up):
            next(loop)
    gc.collect()
    gc.disable()  # as timeit does: a test session is full of objects that no training has
    for _ in range(rounds):
        for name in orders.sample(names, len(names)):
            loop, before = steps[name], time.process_time()
            for _ in range(stretch):
                next(loop)
            seconds[name].append((time.process_time() - before) / stretch)
    gc.enable()
    return {name: np.asarray(taken) for name, taken in seconds.items()}


def built_anew(
    makers: Mapping[str, Callable[[], Iterator[None]]], builds: int, rounds: int, stretch: int
) -> list[dict[str, np.ndarray]]:
    """Return what `in_turns` finds, for `builds` copies of each loop one after the other."""
    orders, names, found = random.Random(0), list(makers), []
    for _ in range(builds):
        steps = {name: makers[name]() for name in orders.sample(names, len(names))}
        for loop in steps.values():
            next(loop)  # builds it
        found.append(in_turns(steps, rounds, stretch))
    return found


def ratio(seconds: Mapping[str, np.ndarray], name: str, to: str) -> float:
    """Return the median of paired ratios."""
    return float(np.median(seconds[name] / seconds[to]))


def extra_microseconds(seconds: Mapping[str, np.ndarray], name: str, to: str) -> float:
    """Return the median of paired differences, microseconds."""
    return float(np.median(seconds[name] - seconds[to]) * 1e6)
