"""The training loop: a generator that yields after every step, until the budget is spent.

Evaluation, curves, progress bars and checkpoints are whoever iterates. Their time is not on the clock.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator

import torch
from torch import Tensor

from effbench.budget import Budget
from effbench.clock import Clock, Ledger
from effbench.distributed.group import Group
from effbench.distributed.pace import Pace
from effbench.errors import InvalidTechnique
from effbench.recipe import Batch, Recipe, Training

ALONE = Group()
_WHOLE = 1.0 - 1e-8  # a budget spent but for rounding


def start(
    recipe: Recipe,
    seed: int,
    *,
    epoch_examples: int | None = None,
    group: Group = ALONE,
    ledger: Ledger | None = None,
) -> Training:
    """Build everything that a run needs. The same seed gives the same initial weights and the same example order.

    epoch_examples: examples in one epoch of the baseline; default: of this recipe.
    """
    torch.manual_seed(_derive(seed, "weights"))
    model = recipe.model()
    torch.manual_seed(_derive(seed, f"dropout of rank {group.rank}"))
    forward = recipe.placement(model)
    optimizer = recipe.optimizer(model)
    for parameters in optimizer.param_groups:
        parameters.setdefault("initial_lr", parameters["lr"])
    ledger = ledger or Ledger()
    if group.size > 1:
        group.wire.traffic.line = lambda: ledger.open_line
    return Training(
        recipe=recipe,
        model=model,
        forward=forward,
        optimizer=optimizer,
        rng=torch.Generator().manual_seed(_derive(seed, "techniques")),
        order=torch.Generator().manual_seed(_derive(seed, "order")),
        epoch_examples=epoch_examples or len(recipe.dataset),
        group=group if recipe.in_step else group.apart(),
        ledger=ledger,
    )


def train(training: Training, budget: Budget, clock: Clock) -> Iterator[Training]:
    """Train until `budget` is spent by `clock`; yield `training` after every step.

    The learning rate of a step is the schedule's at the progress at which the step is expected to end, so that the
    last step of any budget ends fully decayed.
    """
    recipe, ledger = training.recipe, training.ledger
    positions = Positions(recipe.sampler(training))
    milestones = deque(sorted(recipe.milestones, key=lambda milestone: milestone.progress))
    ahead, pace = Lookahead(steady=budget.is_counted), Pace(training, budget, clock)
    while True:
        ledger.switch("data")
        pace.look(training)
        while milestones and milestones[0].progress <= training.progress < 1.0:
            with training.extra():
                milestones.popleft().action(training)
            pace.ask(training)
        if training.progress >= 1.0:
            with training.extra():
                recipe.finish(training)
            ledger.switch("idle")
            return
        set_rate(training, recipe.lr_schedule(ahead.of(training.progress)))
        take_step(training, positions)
        ledger.switch("idle")
        yield training


def take_step(training: Training, positions: Positions) -> None:
    """Draw a batch, add its gradient, update the weights."""
    recipe, ledger = training.recipe, training.ledger
    size = recipe.batch_size(training.progress)
    batch = recipe.transform(recipe.loader(positions.take(size), training), training)
    ledger.switch("forward_backward")
    tokens = size * tokens_per_example(batch)
    batch = recipe.share(batch, training)
    training.losses = recipe.gradient(training, batch)
    del batch  # so that the optimizer works in memory that is still in the caches
    ledger.switch("update")
    recipe.update(training)
    training.step += 1
    training.examples += size
    training.tokens += tokens


def set_rate(training: Training, factor: float) -> None:
    """Set every learning rate to `factor` times what the optimizer was built with."""
    for parameters in training.optimizer.param_groups:
        parameters["lr"] = parameters["initial_lr"] * factor


def tokens_per_example(batch: Batch) -> int:
    """Return the number of tokens of an example, 0 where inputs are no token ids."""
    inputs = batch.inputs
    return inputs.shape[1] if inputs.ndim == 2 and not inputs.is_floating_point() else 0


class Positions:
    """Cuts the sampler's chunks into batches of any size; batches run across epochs, so none is a remainder."""

    __slots__ = ("_at", "_chunk", "_chunks", "_end")

    def __init__(self, chunks: Iterator[Tensor]) -> None:
        self._chunks, self._chunk, self._at, self._end = chunks, torch.empty(0, dtype=torch.long), 0, 0

    def take(self, count: int) -> Tensor:
        """Return the next (count,) positions.

        Raises:
            InvalidTechnique: none are asked for, or none are left.
        """
        end = self._at + count
        if end > self._end or count < 1:
            self._fill(count)
            end = count
        taken, self._at = self._chunk[self._at : end], end
        return taken

    def _fill(self, count: int) -> None:
        """Let the chunk begin where it was cut last, and hold `count` positions at the least."""
        if count < 1:
            raise InvalidTechnique(f"the batch size is {count}; a step needs one example at the least")
        rest, self._at = self._chunk[self._at :], 0
        while len(rest) < count:
            chunk = next(self._chunks, None)
            if chunk is None:
                raise InvalidTechnique("the sampler came to an end; a sampler yields chunks of positions without end")
            if not len(chunk):
                raise InvalidTechnique("the sampler yielded a chunk without positions; are there examples left?")
            rest = torch.cat([rest, chunk]) if len(rest) else chunk
        self._chunk, self._end = rest, len(rest)


class Lookahead:
    """Tells the progress at which a step will probably end; never less than it told before.

    steady: whether the first step is like the others. Where time is measured it is not: it may compile and warm up.
    """

    __slots__ = ("_last", "_share", "_steady", "_told")

    def __init__(self, *, steady: bool) -> None:
        self._steady, self._share, self._told = steady, 0.0, 0.0
        self._last: float | None = None  # where the step before began; what was done before the first one is no step

    def of(self, progress: float) -> float:
        """Return the expected progress at the end of a step that starts at `progress`.

        A step is expected to take as long as the shorter of the last two, so that one hiccup moves nothing.
        """
        share, self._last = progress - (progress if self._last is None else self._last), progress
        expected = min(share, self._share) if self._share or not self._steady else share
        self._share = share
        end = progress + expected
        self._told = max(self._told, end if end < _WHOLE else 1.0)
        return self._told


def _derive(seed: int, purpose: str) -> int:
    """Make a seed of its own for each purpose, so that one stream of random numbers never shifts another."""
    return int.from_bytes(hashlib.sha256(f"{seed} {purpose}".encode()).digest()[:7], "big")
