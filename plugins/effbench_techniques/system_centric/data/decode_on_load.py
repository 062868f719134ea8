"""Decode on load: read each example from a file and decode it whenever it is drawn; the control for data in memory."""

from __future__ import annotations

import itertools
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.data import default_collate

from effbench import Batch, Recipe, Training, technique
from effbench.errors import InvalidTechnique
from effbench.recipe import Examples
from effbench.terms import valid_targets


@technique(
    "system_centric/data",
    paper="no paper: how torch's DataLoader reads a folder of files; the control for data sets that are decoded once, "
    "as in Jordan, 94% on CIFAR-10 in 3.29 Seconds on a Single GPU, arXiv:2404.00498",
    claim="airbench: with the data set in memory, the input pipeline is no longer on the critical path",
)
def decode_on_load(recipe: Recipe, *, level: int = 6) -> Recipe:
    """Keep the examples compressed in a memory-mapped file, and decode those of each batch, one by one, when drawn.

    The baselines hold the whole data set in memory as tensors, and a batch is one indexing of them. Here a batch is
    made as a DataLoader without workers does it: each example is read, decoded and made a tensor by itself, and they
    are collated. The examples are the same, bit by bit, so the difference in cost is what data in memory are worth.
    The file is written before the first step, off the clock, and goes with the run.

    When it helps: nowhere but as a control, or where a data set does not fit in memory.
    When it does not: small models, whose step is hardly longer than the decoding of its batch.

    level: effort of zlib's compression, 1 to 9; 0 stores the examples as they are, which leaves reading and collating.
    """
    if not 0 <= level <= 9:
        raise InvalidTechnique(f"decode_on_load: level is {level}; zlib's levels are 0 (stored) to 9")

    def sampler(training: Training) -> Iterator[Tensor]:
        if "decode_on_load" not in training.kept:
            training.kept["decode_on_load"] = Records.of(training.recipe.dataset, level)
        return recipe.sampler(training)

    def load(positions: Tensor, training: Training) -> Batch:
        records: Records = training.kept["decode_on_load"]
        examples = [records.read(position) for position in positions.tolist()]
        inputs, targets = default_collate(examples)
        device = training.recipe.dataset.inputs.device
        inputs, targets = inputs.to(device), targets.to(device)
        return Batch(inputs, targets, positions, valid_targets(targets) if targets.ndim == 2 else 1.0)

    return recipe.wrap(sampler=sampler).swap(loader=load)


@dataclass(frozen=True, slots=True)
class Records:
    """Compressed examples, one after the other in a file that has no name and is mapped into memory."""

    data: Tensor  # (bytes,) uint8, mapped
    ends: Sequence[int]  # of each example
    like: Examples  # one example, for its shapes and types

    @classmethod
    def of(cls, dataset: Examples, level: int) -> Records:
        """Write every example of a data set."""
        packed = [
            zlib.compress(b"".join(part.contiguous().numpy().tobytes() for part in example), level)
            for example in zip(dataset.inputs.cpu(), dataset.targets.cpu(), strict=True)
        ]
        ends = list(itertools.accumulate(map(len, packed)))
        with tempfile.NamedTemporaryFile(prefix="effbench-") as file:  # once mapped, it needs no name
            file.write(b"".join(packed))
            file.flush()
            data = torch.from_file(file.name, shared=True, size=ends[-1], dtype=torch.uint8)
        return cls(data, ends, Examples(dataset.inputs[:1].cpu(), dataset.targets[:1].cpu()))

    def read(self, position: int) -> tuple[Tensor, Tensor]:
        """Decode one example: its inputs and its targets."""
        start = self.ends[position - 1] if position else 0
        found = bytearray(zlib.decompress(self.data[start : self.ends[position]].numpy().tobytes()))
        size = self.like.inputs.nbytes
        inputs, targets = memoryview(found)[:size], memoryview(found)[size:]
        return (
            torch.frombuffer(inputs, dtype=self.like.inputs.dtype).view(self.like.inputs.shape[1:]),
            torch.frombuffer(targets, dtype=self.like.targets.dtype).view(self.like.targets.shape[1:]),
        )
