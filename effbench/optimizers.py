"""Optimizers as the field sets them up: no weight decay on norms and biases, and what others are made of."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, AdamW, Optimizer

from effbench.distributed.parts import clip
from effbench.recipe import OptimizerFactory, Training, Update
from effbench.terms import step

#: Modules whose weights scale what they have normalised.
NORMS: tuple[type[nn.Module], ...] = (
    nn.BatchNorm1d,
    nn.BatchNorm2d,
    nn.BatchNorm3d,
    nn.SyncBatchNorm,
    nn.InstanceNorm1d,
    nn.InstanceNorm2d,
    nn.InstanceNorm3d,
    nn.GroupNorm,
    nn.LayerNorm,
    nn.RMSNorm,
)

_RIDGES = (0.0, 1e-12, 1e-9, 1e-6)  # added to a diagonal, one after the other, until eigenvectors are found


def decay_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Return parameter groups in which matrices decay, and biases, gains and norms do not.

    Decided by structure, not by the names of layers: what has one dimension or none, what is called `bias`,
    and what belongs to a norm does not decay. Embeddings do, as in GPT-2 and BERT. Every parameter is in one
    group, once; one that is shared decays only if it does wherever it is used.
    """
    plain: dict[nn.Parameter, bool] = {}  # parameter -> whether it decays
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False, remove_duplicate=False):
            decays = parameter.ndim > 1 and name != "bias" and not isinstance(module, NORMS)
            plain[parameter] = decays and plain.get(parameter, True)
    groups = [
        {"params": [p for p, decays in plain.items() if decays], "weight_decay": weight_decay},
        {"params": [p for p, decays in plain.items() if not decays], "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def adamw(rate: float, weight_decay: float, betas: tuple[float, float] = (0.9, 0.999)) -> OptimizerFactory:
    """Make AdamW with peak rate `rate`, decay off norms and biases.

    Loshchilov and Hutter, Decoupled Weight Decay Regularization, arXiv:1711.05101.
    """

    def build(model: nn.Module) -> Optimizer:
        # On the CPU torch loops over the parameters unless told to take them together, which is faster.
        return AdamW(decay_groups(model, weight_decay), lr=rate, betas=betas, foreach=True)

    return build


def sgd(rate: float, momentum: float, weight_decay: float, *, nesterov: bool = True) -> OptimizerFactory:
    """Make stochastic gradient descent with momentum and peak rate `rate`, decay off norms and biases."""

    def build(model: nn.Module) -> Optimizer:
        groups = decay_groups(model, weight_decay)
        return SGD(groups, lr=rate, momentum=momentum, nesterov=nesterov, foreach=True)

    return build


def groups_at(optimizer: Optimizer, lr: float) -> list[dict[str, Any]]:
    """Return the parameter groups of `optimizer` for another one of peak rate `lr`, whose decay is decoupled.

    Decay takes the same share of a weight in a step as before: rate times decay. SGD adds decay to its gradient, so
    that its momentum repeats it, 1 / (1 - momentum) times in all.
    """
    groups = []
    for group in optimizer.param_groups:
        repeats = 1.0 / (1.0 - group["momentum"]) if isinstance(optimizer, SGD) else 1.0
        groups.append({"params": group["params"], "weight_decay": group["weight_decay"] * group["lr"] * repeats / lr})
    return groups


def rate_for_batch(optimizer: Optimizer, growth: float) -> float:
    """Return the factor on the learning rate for batches `growth` times as large.

    A step of SGD is as long as its gradient, and should stand for `growth` steps (Goyal et al., arXiv:1706.02677); the
    steps of Adam and its kin are as long as their rate, and take the root (Malladi et al., arXiv:2205.10287).
    """
    is_sgd = all(type(member) is SGD for member in getattr(optimizer, "members", (optimizer,)))
    return growth if is_sgd else math.sqrt(growth)


def loss_of(closure: Callable[[], float] | None) -> float | None:
    """Return the loss that `closure` computes with gradients, None where there is none: how a `step` begins."""
    if closure is None:
        return None
    with torch.enable_grad():
        return closure()


def clipped_step(limit: float = 1.0) -> Update:
    """Take one optimizer step with the gradient scaled down to the norm `limit` where it is longer.

    Pascanu et al., On the Difficulty of Training Recurrent Neural Networks, arXiv:1211.5063.
    """

    def update(training: Training) -> None:
        clip(training, limit)
        step(training)

    return update


#: (weight with a gradient, its state, its group) -> None: step it, by the gradient, which stays as it is
Rule = Callable[[nn.Parameter, dict[str, Any], dict[str, Any]], None]


class WeightByWeight(Optimizer):
    """Steps one weight after the other by a rule, those without a gradient left out.

    settings: what every group has, such as `lr` and `betas`, where it does not say otherwise; decay is 0.
    """

    def __init__(self, groups: list[dict[str, Any]], rule: Rule, **settings: Any) -> None:
        super().__init__(groups, {"weight_decay": 0.0, **settings})
        self.rule = rule

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]  # torch has two
        """Take one step, after `closure`, if there is one; return its loss."""
        loss = loss_of(closure)
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    self.rule(weight, self.state[weight], group)
        return loss

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "rule": self.rule}


def adam_direction(gradient: Tensor, state: dict[str, Any], betas: tuple[float, float], eps: float) -> Tensor:
    """Return Adam's step at rate 1, shape of the gradient, and move the means in `state` on."""
    if "step" not in state:
        state["step"], state["mean"], state["square"] = 0, torch.zeros_like(gradient), torch.zeros_like(gradient)
    beta1, beta2 = betas
    state["step"] += 1
    state["mean"].lerp_(gradient, 1.0 - beta1)
    state["square"].lerp_(gradient.square(), 1.0 - beta2)
    scale = (state["square"] / (1.0 - beta2 ** state["step"])).sqrt_().add_(eps)
    mean: Tensor = state["mean"] / (1.0 - beta1 ** state["step"])
    return mean.div_(scale)


def eigenvectors(square: Tensor, solve: Callable[[Tensor], Any] = torch.linalg.eigh) -> Tensor:
    """Return the eigenvectors of a symmetric matrix, (n, n), as columns, that of the largest eigenvalue first.

    Sums of few squares have few directions, and many elements that are exactly zero; on these the solver may fail to
    converge. So it works in double precision; where it fails even so, a share of the largest element is added to the
    diagonal, which changes no eigenvector: a millionth of a millionth, then a thousand times and a million times that.
    They are not numbers where the matrix is not finite.

    Raises:
        torch.linalg.LinAlgError: `solve` finds none, not even with the largest ridge.
    """
    if not (size := float(square.abs().max())) < math.inf:
        return torch.full_like(square, math.nan)
    exact = square.double()
    diagonal = torch.eye(len(square), dtype=exact.dtype, device=exact.device)

    def with_ridge(share: float) -> Tensor:
        vectors: Tensor = solve(exact + share * size * diagonal).eigenvectors
        return vectors.flip(1).to(square.dtype)

    for share in _RIDGES[:-1]:
        with suppress(torch.linalg.LinAlgError):  # type: ignore[attr-defined]  # torch's stub lacks it
            return with_ridge(share)
    return with_ridge(_RIDGES[-1])


class Together(Optimizer):
    """Several optimizers that step as one, such as Muon for the matrices and AdamW for the rest.

    `param_groups` holds the very groups of the members, and `state` is one mapping that all of them share:
    what is read, set, saved or loaded here is theirs.

    Raises:
        ValueError: two members have a parameter in common.
    """

    def __init__(self, *members: Optimizer) -> None:
        self.members: tuple[Optimizer, ...] = ()
        groups = [group for member in members for group in member.param_groups]
        parameters = [parameter for group in groups for parameter in group["params"]]
        if len(set(parameters)) < len(parameters):
            raise ValueError("a parameter belongs to two optimizers, which would both step it")
        super().__init__(parameters, {})
        self.members, self.param_groups = members, groups
        for member in members:
            self.state.update(member.state)
            member.state = self.state

    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]  # torch has two
        """Let every member take its step, after `closure`, if there is one; return its loss."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for member in self.members:
            member.step()
        return loss

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Refuse: nothing says which member the group is for.

        Raises:
            TypeError: always, once the members are known.
        """
        if self.members:
            raise TypeError("Together takes no parameter groups; build its members with them")
        super().add_param_group(param_group)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "members": self.members}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        groups = iter(self.param_groups)
        for member in self.members:
            own = list(islice(groups, len(member.param_groups)))
            member.__setstate__({"state": self.state, "param_groups": own})
