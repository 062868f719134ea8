"""Deep gradient compression: send the largest numbers of a gradient, and keep the others until they are large."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.futures import Future
from torch.optim import SGD, Optimizer

from effbench import Recipe, Training, technique
from effbench.distributed.data_parallel import check_processes
from effbench.distributed.replicas import Bucket, done, replicate
from effbench.errors import InvalidTechnique
from effbench.recipe import OptimizerFactory

_FIRST = 0.25  # share that is sent when the warm-up begins
_TWICE = "it takes two gradients in a step, and what one of them lacks would be made up for in the other"


@technique(
    "system_centric/optimization",
    paper="Lin et al., Deep Gradient Compression: Reducing the Communication Bandwidth for Distributed Training, "
    "arXiv:1712.01887",
    claim="270 to 600 times less traffic without loss of accuracy",
    neutral={"processes": 1},
    conflicts={"sam": _TWICE, "sophia": _TWICE},
    title="Deep gradient compression",
    unequal="small numbers of a gradient are sent when they have added up to large ones",
)
def topk_dgc(
    recipe: Recipe, *, share: float = 0.01, warmup: float = 0.1, masking: bool = True, processes: int = 2
) -> Recipe:
    """Send the largest numbers of the gradient of each parameter, and add up the others until they are large, too.

    What each replica adds up is not the gradient but its momentum, where the optimizer is SGD with momentum, which is
    taken over from it together with its weight decay: so late numbers weigh as much as they would have. Other
    optimizers keep theirs, and get what was added up of the gradient. Sent are values and their positions, 8 bytes in
    all. Batches are divided as with ddp, and so are the exceptions: BatchNorm and dropout.

    When it helps: slow networks and large models, of which most numbers hardly change.
    When it does not: fast networks: the largest must be found. Many processes: each sends other positions to all.

    share: share of the numbers that is sent, in (0, 1]; 0.001 in the paper.
    warmup: share of the budget in which that falls, exponentially, from a quarter.
    masking: whether the momentum of what was sent is forgotten, as it is stale; without it, and with the share 1, the
        weights are those of plain data parallelism.
    processes: number of processes; 1 turns it off.
    """
    check_processes("topk_dgc", processes)
    if not 0.0 < share <= 1.0:
        raise InvalidTechnique(f"topk_dgc: share is {share}; it should be above 0 and at most 1")
    if not 0.0 <= warmup <= 1.0:
        raise InvalidTechnique(f"topk_dgc: warmup is {warmup}; it should be in [0, 1]")
    if processes == 1:
        return recipe

    def average(training: Training, bucket: Bucket) -> Future[Tensor]:
        memory: dict[nn.Parameter, Waiting] = training.kept.setdefault("topk_dgc", {})
        now = share_at(training.progress, share, warmup)
        rules = {p: group for group in training.optimizer.param_groups for p in group["params"]}
        sent = []
        for parameter, slope in zip(bucket.parameters(), bucket.gradients(), strict=True):
            waiting = memory.setdefault(parameter, Waiting(torch.zeros_like(slope), torch.zeros_like(slope)))
            waiting.add(parameter, slope, rules.get(parameter, {}))
            sent.append(waiting.take(now, masking=masking))
        exchange(bucket.gradients(), sent)
        return done(bucket.buffer())

    return replicate(recipe.wrap(optimizer=without_momentum(recipe.optimizer)), processes, average)


def without_momentum(factory: OptimizerFactory) -> OptimizerFactory:
    """Return the factory of the same optimizer; if it is SGD, its momentum and decay are left to those who send."""

    def optimizer(model: nn.Module) -> Optimizer:
        built = factory(model)
        if isinstance(built, SGD):
            for group in built.param_groups:
                group["local"] = {name: group[name] for name in ("momentum", "weight_decay", "nesterov")}
                group.update(momentum=0.0, weight_decay=0.0, nesterov=False)
        return built

    return optimizer


def share_at(progress: float, share: float, warmup: float) -> float:
    """Return the share of numbers that is sent at a progress: falling exponentially, then `share`."""
    if progress >= warmup or share >= _FIRST:
        return share
    return float(_FIRST * (share / _FIRST) ** (progress / warmup))


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a replica has of a parameter's gradients that was not sent yet; both of the parameter's shape."""

    velocity: Tensor
    total: Tensor

    @torch.no_grad()
    def add(self, parameter: nn.Parameter, slope: Tensor, group: Mapping[str, Any]) -> None:
        """Add a gradient, with momentum and weight decay as the optimizer had them."""
        rule = group.get("local", {"momentum": 0.0, "weight_decay": 0.0, "nesterov": False})
        decayed = slope.add(parameter, alpha=rule["weight_decay"])
        self.velocity.mul_(rule["momentum"]).add_(decayed)
        self.total.add_(decayed.add(self.velocity, alpha=rule["momentum"]) if rule["nesterov"] else self.velocity)

    def take(self, share: float, *, masking: bool) -> tuple[Tensor, Tensor]:
        """Take out the share that is largest by absolute value: (k,) numbers, and their (k,) flat positions."""
        total = self.total.view(-1)
        positions = total.abs().topk(math.ceil(share * total.numel()), sorted=False).indices
        numbers = total[positions]
        total[positions] = 0.0
        if masking:
            self.velocity.view(-1)[positions] = 0.0
        return numbers, positions


@torch.no_grad()
def exchange(slopes: list[Tensor], sent: list[tuple[Tensor, Tensor]]) -> None:
    """Replace gradients by the mean over the ranks of what each sends of them: (numbers, positions); 0 elsewhere."""
    ranks, counts = dist.get_world_size(), [len(numbers) for numbers, _ in sent]
    parts = torch.cat([numbers for numbers, _ in sent]), torch.cat([positions for _, positions in sent]).int()
    arrived = [[torch.empty_like(part) for _ in range(ranks)] for part in parts]
    for everyones, part in zip(arrived, parts, strict=True):
        dist.all_gather(everyones, part)
    for slope in slopes:
        slope.zero_()
    for rank in range(ranks):
        numbers, positions = (torch.split(part[rank], counts) for part in arrived)
        for slope, number, position in zip(slopes, numbers, positions, strict=True):
            slope.view(-1).index_add_(0, position.long(), number, alpha=1.0 / ranks)
