"""What tests of several processes share: train, and bring home what every rank has to tell."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

from effbench.budget import Budget
from effbench.clock import StepClock
from effbench.distributed.group import Group
from effbench.distributed.launch import run_ranks
from effbench.distributed.traffic import Sent
from effbench.recipe import Recipe, Training
from effbench.train import start, train
from toy import flat


def on_all_ranks(
    recipe: Recipe, tell: Callable[[Training], object], steps: int = 6, look: Callable[[Training], object] | None = None
) -> list[object]:
    """Train in as many processes as the recipe wants; `look` after each step; return what each rank tells."""

    def body(group: Group) -> list[object]:
        training = start(recipe, 0, group=group)
        for _ in train(training, Budget(steps, "steps"), StepClock()):
            if look is not None:
                look(training)
        told: list[object] = [tell(training)]
        if group.size > 1:
            everyone: list[object] = [None] * group.size
            dist.all_gather_object(everyone, told[0])
            return everyone
        return told

    return run_ranks(recipe.processes, body)


def gradients(recipe: Recipe, left: Callable[[Training], Tensor], steps: int = 6) -> Tensor:
    """The sum of all gradients that an optimizer gets, which never steps, and of what is `left` on all ranks, (n,)."""

    def update(training: Training) -> None:
        slopes = torch.cat([p.grad.flatten() for p in training.model.parameters()])
        training.kept["sum"] = training.kept.get("sum", 0.0) + slopes
        training.model.zero_grad()

    def tell(training: Training) -> tuple[Tensor, Tensor]:
        return training.kept["sum"], left(training)

    told = on_all_ranks(recipe.swap(update=update), tell, steps)
    return told[0][0] + torch.stack([rest for _, rest in told]).mean(0)


def evaluated(training: Training) -> torch.Tensor:
    """The weights of the model that would be evaluated, in one vector."""
    return flat(training.recipe.eval_model(training))


def distance(recipe: Recipe, one_process: Recipe, steps: int = 6) -> float:
    """The largest difference of a weight when rank 0 of several processes and when one process has trained it."""
    several, alone = on_all_ranks(recipe, evaluated, steps)[0], on_all_ranks(one_process, evaluated, steps)[0]
    assert several.shape == alone.shape
    return float((several - alone).abs().max())


def counted(recipe: Recipe, steps: int = 6) -> list[dict[str, Sent]]:
    """What each rank sends in some steps, by collective: not what it sends to begin with."""

    def body(group: Group) -> list[dict[str, Sent]]:
        training = start(recipe, 0, group=group)
        before = group.wire.traffic.so_far()
        for _ in train(training, Budget(steps, "steps"), StepClock()):
            pass
        mine = group.wire.traffic.since(before)
        everyone: list[dict[str, Sent]] = [{}] * group.size
        dist.all_gather_object(everyone, mine)
        return everyone

    return run_ranks(recipe.processes, body)


def two_by_hand(
    recipe: Recipe, steps: int, interval: int, meet: Callable[[list[nn.Module]], object]
) -> list[nn.Module]:
    """Train two replicas in one process, each on half of each batch; they meet now and then, and at the end."""
    training = start(recipe, 0)
    batches = torch.cat(list(itertools.islice(recipe.sampler(training), 2))).split(recipe.batch_size(0.0))
    models = [copy.deepcopy(training.model) for _ in range(2)]
    optimizers = [recipe.optimizer(model) for model in models]
    for step in range(steps):
        for rank, (model, optimizer) in enumerate(zip(models, optimizers, strict=True)):
            own = batches[step][rank::2]
            F.cross_entropy(model(recipe.dataset.inputs[own]), recipe.dataset.targets[own]).backward()
            optimizer.step()
            optimizer.zero_grad()
        if (step + 1) % interval == 0 or step + 1 == steps:
            meet(models)
    return models
