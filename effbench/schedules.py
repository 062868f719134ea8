"""What schedules of the learning rate have in common."""

from __future__ import annotations

from effbench.recipe import Schedule


def warmed_up(warmup: float, then: Schedule) -> Schedule:
    """Rise linearly from almost 0 to 1 over the share `warmup` of the budget; from there on follow `then`."""

    def factor(progress: float) -> float:
        if progress < warmup:
            return (progress + 0.02 * warmup) / (1.02 * warmup)  # never exactly 0: the first step should count
        return then(progress)

    return factor


def constant(progress: float) -> float:  # noqa: ARG001 - the signature of a schedule
    """Stay at the peak rate."""
    return 1.0
