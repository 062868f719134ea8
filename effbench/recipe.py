"""The recipe of a training run: one field for each term of the weight update.

    w  <-  update( w, optimizer, lr(progress) * gradient( loss( model(transform(batch)), targets ) ) )

A technique is a function from a recipe to a recipe. It *wraps* a term (the new one calls the old one) or *swaps* it
(the new one discards the old one, which is a conflict if another technique had changed it).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from effbench.clock import Ledger
from effbench.distributed import sharing
from effbench.distributed.group import Group
from effbench.errors import Conflict, InvalidTechnique, UnknownName


@dataclass(frozen=True, slots=True)
class Examples:
    """A data set in memory: N examples. May be views of one another, such as windows of a text."""

    inputs: Tensor  # (N, ...)
    targets: Tensor  # (N,) classes, or (N, T) tokens with -100 = ignore

    def __len__(self) -> int:
        return len(self.inputs)


class Batch:
    """B examples. Indexing with (K,) indices or a (B,) mask gives a batch of K. Not to be changed: see `replace`.

    inputs: (B, ...)
    targets: (B,) classes, (B, C) class probabilities, (B, T) tokens with -100 = ignore
    index: (B,) positions in the data set, for methods that remember examples
    weight: (B,) how much each example counts: importance x number of valid targets; or a number, where all count alike
    """

    __slots__ = ("_weight", "index", "inputs", "targets")

    def __init__(self, inputs: Tensor, targets: Tensor, index: Tensor, weight: Tensor | float = 1.0) -> None:
        self.inputs, self.targets, self.index, self._weight = inputs, targets, index, weight

    @property
    def weight(self) -> Tensor:
        """How much each example counts, (B,); made when first asked for where all count alike."""
        if not isinstance(self._weight, Tensor):
            self._weight = torch.full((len(self),), self._weight, device=self.inputs.device)
        return self._weight

    @property
    def counts_alike(self) -> bool:
        """Whether every example counts as much as any other, and nobody has asked for the weights yet."""
        return not isinstance(self._weight, Tensor)

    def __len__(self) -> int:
        return self.inputs.shape[0]  # len() of a tensor is a slow call

    def __getitem__(self, chosen: Tensor | slice) -> Batch:
        weight = self._weight[chosen] if isinstance(self._weight, Tensor) else self._weight
        return Batch(self.inputs[chosen], self.targets[chosen], self.index[chosen], weight)

    def replace(
        self,
        *,
        inputs: Tensor | None = None,
        targets: Tensor | None = None,
        index: Tensor | None = None,
        weight: Tensor | float | None = None,
    ) -> Batch:
        """Return a copy with the named parts changed."""
        return Batch(
            self.inputs if inputs is None else inputs,
            self.targets if targets is None else targets,
            self.index if index is None else index,
            self._weight if weight is None else weight,
        )


Sampler = Callable[["Training"], Iterator[Tensor]]  # endless (K,) chunks of positions: which examples, in which order
Loader = Callable[[Tensor, "Training"], Batch]  # (B,) positions -> batch
Transform = Callable[[Batch, "Training"], Batch]
Loss = Callable[[Any, Batch], Tensor]  # (outputs, batch) -> (B,)
Gradient = Callable[["Training", Batch], Tensor]  # adds to p.grad; returns the losses (B,), detached
Update = Callable[["Training"], None]  # spends p.grad, and clears it
Schedule = Callable[[float], float]  # progress in [0, 1] -> factor on the learning rate
ModelFactory = Callable[[], nn.Module]
Placement = Callable[[nn.Module], nn.Module]  # -> what is called in the forward pass
OptimizerFactory = Callable[[nn.Module], Optimizer]
EvalModel = Callable[["Training"], nn.Module]
Finish = Callable[["Training"], None]

#: What steps a weight, at most: it and its gradient, all of its tensor, or anything.
Scope = Literal["element", "tensor", "model"]


@dataclass(frozen=True, slots=True)
class Milestone:
    """Something to do once, before the first step at or after `progress`; at 1 it is never done.

    Raises:
        InvalidTechnique: the progress is not in [0, 1].
    """

    progress: float
    action: Callable[[Training], None]

    def __post_init__(self) -> None:
        """Refuse a progress that is none."""
        if not 0.0 <= self.progress <= 1.0:
            raise InvalidTechnique(
                f"a milestone lies at a progress in [0, 1], the share of the budget that is spent; "
                f"found {self.progress}"
            )


@dataclass(slots=True)
class Training:
    """The mutable side of one run.

    A technique keeps what it remembers between steps in `kept`, under its own name; never on itself or in a module.
    """

    recipe: Recipe  # the finished one
    model: nn.Module  # plain: its parameters are what is trained
    forward: Callable[[Tensor], Any]  # the placed model: what is called
    optimizer: Optimizer
    rng: torch.Generator  # randomness of the techniques
    order: torch.Generator  # randomness of the baseline: example order, masking
    epoch_examples: int  # train examples of the baseline: one epoch
    group: Group = field(default_factory=Group)
    ledger: Ledger = field(default_factory=Ledger)
    progress: float = 0.0  # share of the budget that is spent, in [0, 1]
    step: int = 0
    examples: int = 0  # drawn, over all ranks
    tokens: int = 0
    generation: int = 0  # how often the model got other parameters
    losses: Tensor | None = None  # (B,) of the last step, this rank, detached
    kept: dict[str, Any] = field(default_factory=dict)
    measured: dict[str, float] = field(
        default_factory=dict
    )  # by techniques, for the record: name with its unit -> value

    @property
    def loss(self) -> Loss:
        """The finished loss."""
        return self.recipe.loss

    def extra(self) -> AbstractContextManager[None]:
        """Charge what happens inside to the ledger's line for techniques' own work. It stays on the clock."""
        return self.ledger.line("extra")


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to train: the terms, then the facts that techniques may ask for. Terms change by `wrap` and `swap` alone."""

    dataset: Examples
    sampler: Sampler
    loader: Loader
    batch_size: Callable[[float], int]  # progress -> examples of one optimizer step, over all ranks
    transform: Transform
    model: ModelFactory
    placement: Placement
    loss: Loss
    gradient: Gradient
    optimizer: OptimizerFactory
    lr_schedule: Schedule
    update: Update
    eval_model: EvalModel
    share: Transform = sharing.share  # batch -> this rank's part, its weights as shares of the whole step
    finish: Finish = sharing.nothing  # what is left to do, once, when the budget is spent
    processes: int = 1
    in_step: bool = True  # whether all ranks take every step together; else each goes by its own clock
    milestones: tuple[Milestone, ...] = ()
    phases: tuple[float, ...] = ()  # progresses from which on a step costs another price, though its shapes stay

    classes: int | None = None  # number of classes where targets are classes
    traits: frozenset[str] = frozenset()  # "image", "text", "causal", "padded", "clipped", "any_resolution", ...

    author: str = ""  # the technique that is being applied
    history: tuple[tuple[str, str, str], ...] = ()  # (verb, term, author), in order
    scopes: Mapping[str, Scope] = field(default_factory=dict)  # author -> what its optimizer and update look at

    def wrap(self, **terms: Any) -> Recipe:
        """Return a recipe with new terms that call the old ones."""
        return self._change("wrap", terms)

    def swap(self, **terms: Any) -> Recipe:
        """Return a recipe with new terms that discard the old ones.

        Raises:
            Conflict: another technique has changed one of these terms; its work would be lost.
        """
        for term in terms:
            others = sorted({author for _, t, author in self.history if t == term and author != self.author})
            if others:
                raise Conflict(f"{self.author or 'the recipe'} replaces the {term} that {' and '.join(others)} changed")
        return self._change("swap", terms)

    def at(self, progress: float, action: Callable[[Training], None]) -> Recipe:
        """Return a recipe that also does `action` once, when `progress` is reached."""
        return self.wrap(milestones=(*self.milestones, Milestone(progress, action)))

    def _change(self, verb: str, terms: Mapping[str, Any]) -> Recipe:
        for term in terms:
            if term not in TERMS:
                raise UnknownName("term of a recipe", term, TERMS)
        done = tuple((verb, term, self.author) for term in terms)
        return dataclasses.replace(self, **terms, history=self.history + done)


#: The fields of a recipe that a technique may change.
TERMS: tuple[str, ...] = tuple(
    f.name for f in dataclasses.fields(Recipe) if f.name not in {"classes", "traits", "author", "history", "scopes"}
)
