"""Ghost batch normalisation: normalise parts of a batch as if each were the batch."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique, NotApplicable

BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


@technique(
    "optimization_centric/large_batch",
    paper="Hoffer et al., Train Longer, Generalize Better: Closing the Generalization Gap in Large Batch Training of "
    "Neural Networks, arXiv:1705.08741",
    claim="closes the generalisation gap of batches of 4,096 on CIFAR, together with more steps at a higher rate",
    neutral={"size": 0},
    title="Ghost batch normalisation",
)
def ghost_batchnorm(recipe: Recipe, *, size: int = 16) -> Recipe:
    """Let BatchNorm see about `size` examples at a time, however large the batch is.

    A batch of B is cut into B / size parts, rounded down, that differ by one example at most, and each is normalised by
    its own mean and variance. Every part moves the running statistics, so that they forget faster. Evaluation is as
    before.

    When it helps: batches of thousands, whose statistics have less noise than generalises best.
    When it does not: batches that are small already; no gain and 5 % of the throughput (MosaicML Composer's method
        card).

    size: examples that are normalised together, 2 or more; 0 turns it off.
    """
    if size < 2 and size != 0:
        raise InvalidTechnique(f"ghost_batchnorm: size is {size}; it should be 2 or more examples, or 0 (off)")
    if size == 0:
        return recipe
    with torch.random.fork_rng(devices=[]):
        if not any(isinstance(module, BATCH_NORMS) for module in recipe.model().modules()):
            raise NotApplicable("ghost_batchnorm cuts the batches of BatchNorm, and this model has none")

    def model() -> nn.Module:
        made = recipe.model()
        haunt(made, size)
        return made

    return recipe.wrap(model=model)


def haunt(model: nn.Module, size: int) -> None:
    """Put every BatchNorm of a model into a ghost."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, BATCH_NORMS) and not isinstance(parent, GhostBatchNorm):
                setattr(parent, name, GhostBatchNorm(child, size))


class GhostBatchNorm(nn.Module):
    """A BatchNorm that normalises a batch in parts of about `size` examples while it trains."""

    def __init__(self, norm: nn.Module, size: int) -> None:
        super().__init__()
        self.norm, self.size = norm, size

    def forward(self, x: Tensor) -> Tensor:
        """Normalise (B, ...)."""
        parts = len(x) // self.size if self.training else 1
        if parts <= 1:
            whole: Tensor = self.norm(x)
            return whole
        return torch.cat([self.norm(part) for part in x.tensor_split(parts)])

    def extra_repr(self) -> str:
        """Show the size of a part."""
        return f"size={self.size}"
