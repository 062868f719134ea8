"""The law that several processes train the weights of one, and what it may let pass."""

from __future__ import annotations

import dataclasses
import os

import torch
import torch.distributed as dist
from torch import Tensor

from effbench import laws
from effbench.distributed.data_parallel import share_batches
from effbench.laws.alone import Case
from effbench.laws.finding import Remark
from effbench.laws.observing import Observation
from effbench.recipe import Batch, Recipe, Training
from effbench.techniques import technique
from effbench.toys import TOYS
from planted import CARD, broken


@technique("system_centric/model", **CARD)
def sharing(recipe: Recipe, *, forget: bool = False) -> Recipe:
    """Share each batch between two processes, and add up their gradients.

    forget: add up nothing, a fault.
    """

    def half(batch: Batch, training: Training) -> Batch:
        return recipe.transform(batch, training)[training.group.rank :: 2]

    def gradient(training: Training, batch: Batch) -> Tensor:
        losses = recipe.gradient(training, batch)
        for parameter in training.model.parameters():
            if not forget:
                parameter.grad = training.group.sum(parameter.grad)
        return losses

    return recipe.swap(processes=2).wrap(transform=half, gradient=gradient)


def test_processes_that_do_not_train_the_weights_of_one_are_found_unless_they_are_not_meant_to():
    case = Case.of(sharing, {"forget": True}, TOYS["text"]())
    fault = laws.LAWS["parallel"](case)
    assert "the weights of 2 processes differ from those of one by" in fault
    assert "the tolerance is 0.0001" in fault
    lenient = dataclasses.replace(case, technique=dataclasses.replace(sharing, tolerance=10.0))
    assert laws.LAWS["parallel"](lenient) == ""
    unequal = dataclasses.replace(case, technique=dataclasses.replace(sharing, unequal="nothing is added up"))
    remark = laws.LAWS["parallel"](unequal)
    assert isinstance(remark, Remark)
    assert remark.endswith("of the way that training moved these: nothing is added up")


def test_weights_that_are_said_to_be_unequal_must_be_but_not_lost():
    case = Case.of(sharing, {}, TOYS["text"]())
    liar = dataclasses.replace(case, technique=dataclasses.replace(sharing, unequal="it pretends"))
    assert "it says that they are unequal (it pretends), and yet after 6 steps" in laws.LAWS["parallel"](liar)
    untrained = Observation({name: 2 * w for name, w in case.plain.seen.initial.items()}, case.run.seen)
    lost = dataclasses.replace(liar, run=untrained)
    assert "as if nothing had been learnt" in laws.LAWS["parallel"](lost)
    assert not isinstance(laws.LAWS["parallel"](lost), Remark)
    other = dataclasses.replace(case, run=Observation({"its own": torch.ones(1)}, case.run.seen))
    assert "the models do not have the same weights" in laws.LAWS["parallel"](other)
    assert not isinstance(laws.LAWS["parallel"](other), Remark)
    said = dataclasses.replace(other, technique=liar.technique)
    assert isinstance(laws.LAWS["parallel"](said), Remark)
    assert laws.LAWS["parallel"](said).endswith(": it pretends")


@technique("system_centric/model", **CARD, unequal="chance decides", races=True)
def racing(recipe: Recipe) -> Recipe:
    """Share each batch between two processes, and let chance say how much of the gradient counts."""

    def gradient(training: Training, batch: Batch) -> Tensor:
        luck = training.group.agree(0.5 + int.from_bytes(os.urandom(4), "big") / 2**32)
        return recipe.gradient(training, batch.replace(weight=batch.weight * luck))

    return share_batches(recipe, 2).wrap(gradient=gradient)


def test_what_races_is_not_compared_with_itself_and_that_is_said():
    findings = laws.check(racing, toys={"patches": TOYS["patches"]})
    assert all(found.ok for found in findings)
    remarks = {found.law: found.detail for found in findings if found.detail}
    assert set(remarks) == {"fresh", "watched", "parallel"}
    assert "processes race" in remarks["fresh"]
    assert remarks["parallel"].endswith(": chance decides")
    steady = dataclasses.replace(racing, races=False)
    assert "a second run trains other weights" in broken(steady, "patches")["fresh"]


def test_a_term_that_only_another_rank_calls_is_called():
    @technique("system_centric/model", **CARD)
    def divided(recipe: Recipe) -> Recipe:
        """Let rank 1 alone look at the loss."""

        def loss(outputs: Tensor, batch: Batch) -> Tensor:
            return recipe.loss(outputs, batch) if dist.get_rank() == 1 else outputs.flatten(1).sum(1)

        return recipe.swap(processes=2).wrap(loss=loss)

    assert laws.LAWS["wraps"](Case.of(divided, {}, TOYS["patches"]())) == ""


def test_batch_statistics_and_dropout_are_no_matter_of_parallelism():
    findings = laws.check(sharing, toys={toy: TOYS[toy] for toy in ("vectors", "masked_text")})
    assert all(found.ok for found in findings)
    compared = {found.toy: found.detail for found in findings if found.law == "parallel"}
    assert compared["masked_text"] == ""
    assert "batch statistics or dropout of its own" in compared["vectors"]
