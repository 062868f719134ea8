"""How probable it is that each of several sets is the best, given how few seeds there are."""

from __future__ import annotations

from collections.abc import Mapping

_DRAWS = 20_000


def chances_of_being_best(gains: Mapping[str, Mapping[str, Mapping[int, float]]]) -> dict[str, float]:
    """Return, for each set, the share of draws in which its mean over workloads is the highest.

    gains: set -> workload -> seed -> gain over the baseline, which is itself a set, of gains 0. All sets have the same
        workloads; seeds that not all of them have are left out.

    What is drawn are the true means that could lie behind the values: around the means of the seeds, spread as the
    seeds are, with the same luck for all sets on one seed, for they share its first weights and its examples. Each
    set alone is then spread as Student's t with n - 1 degrees of freedom, which is the posterior under a flat prior,
    so that for two sets the answer is one minus the one-sided p value of the paired t test.
    """
    import numpy as np

    names = list(gains)
    if not names:
        return {}
    dice = np.random.default_rng(0)
    workloads = list(gains[names[0]])
    total = np.zeros((_DRAWS, len(names)))
    for workload in workloads:
        seeds = sorted(set.intersection(*(set(gains[name][workload]) for name in names)))
        if len(seeds) < 2:
            return {}
        values = np.array([[gains[name][workload][seed] for name in names] for seed in seeds])  # (seeds, sets)
        n = len(seeds)
        centred = values - values.mean(0)
        luck = dice.standard_normal((_DRAWS, n))
        widened = np.sqrt(1.0 / dice.chisquare(n - 1, (_DRAWS, 1)) / n)
        total += values.mean(0) + (luck * widened) @ centred
    best = total == total.max(axis=1, keepdims=True)
    shares = (best / best.sum(axis=1, keepdims=True)).mean(axis=0)
    return dict(zip(names, map(float, shares), strict=True))
