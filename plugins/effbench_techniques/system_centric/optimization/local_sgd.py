"""Local SGD: let processes train by themselves, and average their weights every few steps."""

from __future__ import annotations

from torch import nn

from effbench import Recipe, Training, technique
from effbench.averages import tensors_of
from effbench.distributed.averaging import average, average_model
from effbench.distributed.data_parallel import check_processes, share_batches
from effbench.errors import InvalidTechnique


@technique(
    "system_centric/optimization",
    paper="Stich, Local SGD Converges Fast and Communicates Little, arXiv:1805.09767; post-local SGD after Lin et al., "
    "Don't Use Large Mini-Batches, Use Local SGD, arXiv:1808.07217",
    claim="communication rounds fall by up to the square root of the number of steps, at the convergence of mini-batch "
    "SGD; post-local SGD generalises better than large batches",
    neutral={"processes": 1},
    conflicts=dict.fromkeys(
        ("gradual_magnitude_pruning", "rigl"), "replicas keep other weights, and their average keeps all"
    ),
    title="Local SGD",
    unequal="each process takes several steps by itself before weights are averaged",
)
def local_sgd(recipe: Recipe, *, processes: int = 2, interval: int = 8, start: float = 0.0) -> Recipe:
    """Let each process train its own replica on its share of every batch, and average the replicas now and then.

    After every `interval` steps parameters and floating-point buffers are replaced by their means over the processes,
    in one message; optimizer states stay with their process. Each process draws for itself where a technique chooses
    examples by what its replica has seen. The mean is evaluated. With `interval` 1 and plain SGD, momentum or not, it
    is data parallelism. A process sends 2 (n - 1) / n bytes every `interval` steps for each byte of the model, where
    data parallelism sends as many in each step.

    When it helps: links so slow that processes wait for gradients, of latency above all.
    When it does not: fast links; long intervals at high rates, at which replicas drift apart.

    processes: number of processes; 1 turns it off.
    interval: steps from one average to the next.
    start: share of the budget before which weights are averaged after every step (post-local SGD).
    """
    check_processes("local_sgd", processes)
    if interval < 1:
        raise InvalidTechnique(f"local_sgd: interval is {interval}; it should be 1 or more steps")
    if not 0.0 <= start <= 1.0:
        raise InvalidTechnique(f"local_sgd: start is {start}; it should be a share of the budget, from 0 to 1")
    if processes == 1:
        return recipe

    def update(training: Training) -> None:
        recipe.update(training)
        if training.progress < start or (training.step + 1) % interval == 0:
            with training.extra():
                average(tensors_of(training.model).values(), training.group)

    def mean(training: Training) -> nn.Module:
        return average_model(recipe.eval_model(training), training.group)

    return share_batches(recipe, processes, alike=False).wrap(update=update, eval_model=mean)
