"""Run a toy for some steps, and see all that a law wants to know."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from effbench.budget import Budget
from effbench.clock import StepClock
from effbench.distributed.group import Group
from effbench.distributed.launch import run_ranks
from effbench.recipe import TERMS, Milestone, Recipe, Training
from effbench.train import start, train

STEPS, SEED = 6, 0

_NOT_CALLED = {"dataset", "processes", "in_step", "milestones", "phases"}
#: The terms that are called in every run.
CALLED: tuple[str, ...] = tuple(term for term in TERMS if term not in _NOT_CALLED)

Weights = Mapping[str, Tensor]


@dataclass(slots=True)
class Seen:
    """What the terms of a baseline saw of one run: on rank 0, but for the calls."""

    calls: Counter[str] = field(default_factory=Counter)  # term -> how often it was called, on all ranks
    initial: Weights = field(default_factory=dict)  # of the first model that the baseline's factory made
    chunks: list[Tensor] = field(default_factory=list)  # positions that the baseline's sampler yielded


@dataclass(frozen=True, slots=True)
class Observation:
    """One run: the weights that would be evaluated, and what the baseline's terms saw."""

    weights: Weights
    seen: Seen


class Witness:
    """A baseline that notes when its terms are called."""

    def __init__(self, baseline: Recipe) -> None:
        self._seen = Seen()
        terms: dict[str, Any] = {term: self._noting(term, getattr(baseline, term)) for term in CALLED}
        halfway = Milestone(0.5, lambda training: self._note("milestones"))  # noqa: ARG005 - an action's signature
        self.recipe = dataclasses.replace(baseline, **terms, milestones=(*baseline.milestones, halfway))

    def observe(self, recipe: Recipe, *, steps: int = STEPS, watched: bool = False) -> Observation:
        """Train `recipe`, made from this baseline, for some steps.

        watched: look at the model after every step, as those do who draw curves.
        """
        self._seen = Seen()

        def body(group: Group) -> Weights:
            training = start(recipe, SEED, group=group)
            for _ in train(training, Budget(steps, "steps"), StepClock()):
                if watched:
                    _look(training)
            model = recipe.eval_model(training)  # on every rank: each may hold a part of it
            self._seen.calls = _added_up(self._seen.calls, group)
            return snapshot(model) if group.rank == 0 else {}

        return Observation(run_ranks(recipe.processes, body), self._seen)

    def _note(self, term: str) -> None:
        self._seen.calls[term] += 1

    def _noting(self, term: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any) -> Any:
            self._note(term)
            return original(*arguments)

        def made() -> nn.Module:
            model: nn.Module = called()
            if not self._seen.initial:
                self._seen.initial = snapshot(model)
            return model

        def drawn(training: Training) -> Iterator[Tensor]:
            for chunk in called(training):
                self._seen.chunks.append(chunk.clone())
                yield chunk

        special: dict[str, Callable[..., Any]] = {"model": made, "sampler": drawn}
        return special.get(term, called)


def _added_up(calls: Counter[str], group: Group) -> Counter[str]:
    """Return the calls of all ranks; a rank that serves the others may do what they never do."""
    if group.size == 1:
        return calls
    everyone: list[Any] = [None] * group.size
    dist.all_gather_object(everyone, calls)
    return sum(everyone, Counter())


def _look(training: Training) -> None:
    """Evaluate two examples, and leave everything as it was."""
    model = training.recipe.eval_model(training)
    if training.group.rank == 0:
        was_training = model.training
        model.eval()
        with torch.no_grad():
            model(training.recipe.dataset.inputs[:2])
        model.train(was_training)


def snapshot(model: nn.Module) -> Weights:
    """Return copies of a model's parameters and buffers."""
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def difference(found: Weights, expected: Weights) -> str:
    """Say which tensors are not equal bit by bit, and by how much; "" where all are."""
    if names := found.keys() ^ expected.keys():
        return f"the models do not have the same weights; one alone has {', '.join(sorted(names)[:3])}"
    unequal = {name: gap(found[name], expected[name]) for name in found if not same(found[name], expected[name])}
    if not unequal:
        return ""
    worst = max(unequal, key=lambda name: unequal[name])
    return f"{len(unequal)} of {len(found)} tensors differ, {worst} most, by up to {unequal[worst]:.3g}"


def same(one: Tensor, other: Tensor) -> bool:
    """Tell whether two tensors are equal bit by bit."""
    return one.dtype == other.dtype and torch.equal(one, other)


def gap(one: Tensor, other: Tensor) -> float:
    """Return the largest difference of two elements; infinite where the shapes differ."""
    if one.shape != other.shape:
        return float("inf")
    return float((one.double() - other.double()).abs().max()) if one.numel() else 0.0
