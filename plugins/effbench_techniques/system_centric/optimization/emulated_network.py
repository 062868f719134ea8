"""Emulated network: what is sent takes as long as on a slower network, and one rank computes as on a slower machine."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor

from effbench import Batch, Recipe, Training, technique
from effbench.distributed.wire import Link
from effbench.errors import InvalidTechnique

_LONGEST, _SLOWEST = 60.0, 1e6  # beyond them nothing would arrive while anybody waits


@technique(
    "system_centric/optimization",
    paper="no paper: Hockney's model of a message, latency + bytes / bandwidth (The Communication Challenge for MPP, "
    "Parallel Computing 20(3), 1994)",
    claim="none: it is a condition under which parallel methods can be compared on one machine",
    neutral={"latency": 0.0, "bandwidth": 0.0, "slowdown": 1.0},
    title="Emulated network",
    last=True,
    scope="element",
)
def emulated_network(
    recipe: Recipe, *, latency: float = 1e-4, bandwidth: float = 125e6, slowdown: float = 1.0, often: float = 1.0
) -> Recipe:
    """Let the processes of a trial be as far apart as those of a cluster, whatever they send each other.

    A control, no technique: it changes no number, only when it arrives. A collective takes as many messages one after
    the other, and as many bytes, as its ring does: for N ranks an all-reduce of S bytes takes 2 (N - 1) latency +
    2 (N - 1) / N S / bandwidth. What a rank sends leaves in order, one after the other, while it computes on, so that
    what can be hidden behind computing is hidden. A straggler sleeps after what it has computed: it is the last rank,
    always, or any rank, each in some of its steps, as on a machine that others use too.
    Only training is slowed down: not the set-up, nor evaluation, nor the harness's own words. A single process has no
    network.

    When it helps: to see on one machine from which bandwidth on compressing pays, or what a straggler costs those who
        wait for it. It needs a budget of wall time: other clocks see no waiting.
    When it does not: to say how fast a cluster is; real networks jam, and real transports choose their algorithms.

    latency: seconds that each message takes beyond its bytes.
    bandwidth: bytes per second that each rank can send: 125e6 is gigabit Ethernet; 0 for any number.
    slowdown: how many times slower than others a straggler computes.
    often: share of its steps in which any rank is a straggler, by lot; 1 for the last rank, and always.
    """
    if not 0.0 <= latency <= _LONGEST or not (bandwidth == 0.0 or bandwidth >= 1.0):
        raise InvalidTechnique(
            f"emulated_network: latency is {latency} and bandwidth {bandwidth}; they should be from 0 to {_LONGEST:g} "
            "seconds, and 0 (any) or a byte per second or more"
        )
    if not 1.0 <= slowdown <= _SLOWEST:
        raise InvalidTechnique(
            f"emulated_network: slowdown is {slowdown}; it should be from 1 (off) to {_SLOWEST:g} times"
        )
    if not 0.0 <= often <= 1.0:
        raise InvalidTechnique(f"emulated_network: often is {often}; it should be a share of the steps, from 0 to 1")
    if latency == bandwidth == 0.0 and slowdown == 1.0:
        return recipe
    link = Link(latency, bandwidth or math.inf)

    @contextmanager
    def far_away(training: Training) -> Iterator[None]:
        group = training.group
        began = time.thread_time()
        with group.wire.emulating(link):
            yield
        if straggles(training, often):
            seconds = (slowdown - 1.0) * (time.thread_time() - began)  # waiting for others is no computing
            training.kept["emulated_network"] = training.kept.get("emulated_network", 0.0) + seconds
            time.sleep(seconds)

    def gradient(training: Training, batch: Batch) -> Tensor:
        with far_away(training):
            return recipe.gradient(training, batch)

    def update(training: Training) -> None:
        with far_away(training):
            recipe.update(training)

    def finish(training: Training) -> None:
        with far_away(training):
            recipe.finish(training)

    return recipe.wrap(gradient=gradient, update=update, finish=finish)


def straggles(training: Training, often: float) -> bool:
    """Tell whether this rank is slow in this step; the lot is the same in every run."""
    group = training.group
    if often == 1.0:
        return group.rank == group.size - 1
    return random.Random(f"rank {group.rank} step {training.step}").random() < often  # noqa: S311 - chance, no secret
