"""LR range test: try rising rates for a moment, and train with one that made the loss fall fastest."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from effbench import Recipe, Training, technique
from effbench.errors import InvalidTechnique, NotApplicable
from effbench.surgery import members
from effbench.train import set_rate

_SMOOTHING = 0.9  # share of the mean loss that stays from step to step
_DIVERGED = 4.0  # times the lowest mean loss: higher rates are not tried
_SETTLED = 3  # first steps whose mean loss is still that of single batches


@technique(
    "optimization_centric/learning_rate",
    paper="Smith, Cyclical Learning Rates for Training Neural Networks, arXiv:1506.01186",
    claim="one short run replaces a grid of runs with different rates",
    title="LR range test",
)
def lr_range_test(recipe: Recipe, *, steps: int = 60, low: float = 0.01, high: float = 100.0) -> Recipe:
    """Sweep the rate from low to high in a few steps, then train with the one at which the loss fell fastest.

    The rate rises exponentially from `low` to `high` times its peak, one random batch a step, until the smoothed loss
    is four times its lowest. Then everything is put back, bit by bit: weights, buffers, optimizer, generators and what
    techniques remember. The schedule keeps its shape; its peak becomes the rate of the steepest fall, for all groups in
    proportion. The sweep is on the clock, in budgets of time; a budget of steps does not count its steps.

    When it helps: rates that nobody has tuned, as those of an optimizer that another technique brings.
    When it does not: beside a tuned rate; what falls fastest at first need not lead farthest.

    steps: steps of the sweep, 10 or more.
    low: lowest rate, as a multiple of the peak.
    high: highest rate, as a multiple of the peak.
    """
    if steps < 10:
        raise InvalidTechnique(f"lr_range_test: steps is {steps}; it should be 10 or more")
    if not 0.0 < low < high < math.inf:
        raise InvalidTechnique(f"lr_range_test: low is {low} and high is {high}; it should be 0 < low < high")

    def choose(training: Training) -> None:
        factors = [low * (high / low) ** (step / (steps - 1)) for step in range(steps)]
        with put_back(training):
            losses = sweep(training, factors)
        factor = factors[steepest(losses)]
        training.kept["lr_range_test"] = {"factor": factor, "losses": losses}
        for group in training.optimizer.param_groups:
            group["initial_lr"] *= factor

    return recipe.at(0.0, choose)


def sweep(training: Training, factors: list[float]) -> list[float]:
    """Take a step at each rate until the loss has diverged; return the smoothed losses, one for each step."""
    recipe, smoothed, mean = training.recipe, [], 0.0
    for step, factor in enumerate(factors, 1):
        set_rate(training, factor)
        count = recipe.batch_size(0.0)
        positions = torch.randint(len(recipe.dataset), (count,), generator=training.rng)
        batch = recipe.share(recipe.transform(recipe.loader(positions, training), training), training)
        losses = recipe.gradient(training, batch)
        recipe.update(training)
        loss = training.group.sum_float(float(losses.mean())) / training.group.size
        mean = _SMOOTHING * mean + (1.0 - _SMOOTHING) * loss
        smoothed.append(mean / (1.0 - _SMOOTHING**step))
        if not smoothed[-1] <= _DIVERGED * min(smoothed):  # also where it is no number
            return smoothed[:-1]
    return smoothed


def steepest(losses: list[float]) -> int:
    """Return the step at which the smoothed loss falls fastest, by the slope between its neighbours.

    Raises:
        NotApplicable: the loss never falls, so that no rate is to be preferred.
    """
    slopes = {step: losses[step + 1] - losses[step - 1] for step in range(_SETTLED, len(losses) - 1)}
    best = min(slopes, key=lambda step: slopes[step], default=None)
    if best is None or slopes[best] >= 0.0:
        raise NotApplicable("lr_range_test: the loss does not fall at any rate of the sweep; try a lower `low`")
    return best


@contextmanager
def put_back(training: Training) -> Iterator[None]:
    """Put everything that training changes back, bit by bit: all but the time that it took."""
    model = {name: tensor.clone() for name, tensor in training.model.state_dict().items()}
    groups = [{key: value for key, value in g.items() if key != "params"} for g in training.optimizer.param_groups]
    states = [{p: copy.deepcopy(s) for p, s in member.state.items()} for member in members(training.optimizer)]
    kept, generators = copy.deepcopy(training.kept), [training.rng.get_state(), training.order.get_state()]
    device = next(training.model.parameters()).device
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        try:
            yield
        finally:
            training.model.load_state_dict(model)
            for group, values in zip(training.optimizer.param_groups, groups, strict=True):
                for key in group.keys() - values.keys() - {"params"}:
                    del group[key]
                group.update(values)
            for member, state in zip(members(training.optimizer), states, strict=True):
                member.state.clear()
                member.state.update(state)
            training.kept = kept
            training.rng.set_state(generators[0])
            training.order.set_state(generators[1])
