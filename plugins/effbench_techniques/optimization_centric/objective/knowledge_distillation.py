"""Knowledge distillation: learn from what another model believes, and not from the labels alone."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from effbench import Batch, Recipe, Training, technique
from effbench.aside import train_aside
from effbench.errors import InvalidTechnique, NotApplicable
from effbench.losses import mean_of_valid, minimising
from effbench.workloads.evaluation import evaluating


@technique(
    "optimization_centric/objective",
    paper="Hinton et al., Distilling the Knowledge in a Neural Network, arXiv:1503.02531; Blakeney et al., Reduce, "
    "Reuse, Recycle: Improving Training Efficiency with Distillation, arXiv:2211.00683",
    claim="ResNet-50 on ImageNet up to 1.96 times faster, BERT up to 1.42 times, with a teacher that is given",
    neutral={"weight": 0.0},
    conflicts={"sparse_mlm_head": "the teacher predicts all tokens of a text, and the loss sees those that are masked"},
)
def knowledge_distillation(
    recipe: Recipe, *, weight: float = 0.5, temperature: float = 2.0, teacher_steps: int = 50, until: float = 0.5
) -> Recipe:
    """Ask for the probabilities that a teacher gives to all classes, which tell more of an example than its label.

    The loss is `(1 - weight) * loss + weight * temperature^2 * CE(teacher, student)`, where both probabilities are
    softened: logits are divided by the temperature. The teacher sees what the student sees, whatever was done to it.
    Here it is paid for: a model of the same kind, from other weights, which is trained for some steps on all examples,
    with its rate decayed, before the student's first step; all of that is on the clock. After `until` the student
    learns from the labels alone, which for BERT was best after 20 to 50 % of the steps.

    When it helps: a teacher that there is already, or that teaches many students.
    When it does not: a teacher whose training counts, as it does here: the student has so many steps less, and the
        teacher has seen no more than it.

    weight: share of the loss that is the teacher's; 0 turns it off.
    temperature: what logits are divided by, above 0; the higher, the more the improbable classes count.
    teacher_steps: steps of training of the teacher, in the student's batches.
    until: share of the budget in which the teacher is asked.
    """
    check(weight, temperature, teacher_steps, until)
    if recipe.classes is None and not {"causal", "masked"} & recipe.traits:
        raise NotApplicable("knowledge_distillation teaches classes or tokens, and this workload has neither")
    if weight == 0.0:
        return recipe

    def train_teacher(training: Training) -> None:
        everything = torch.arange(len(recipe.dataset))
        training.kept["knowledge_distillation"] = train_aside(recipe, training, everything, teacher_steps)

    def gradient(training: Training, batch: Batch) -> Tensor:
        teacher: nn.Module | None = training.kept.get("knowledge_distillation")
        if teacher is None:
            return recipe.gradient(training, batch)
        finished = training.loss

        def loss(outputs: Any, part: Batch) -> Tensor:
            with training.extra(), evaluating(teacher):
                beliefs = teacher(part.inputs)
            return (1.0 - weight) * finished(outputs, part) + weight * distilled(outputs, beliefs, part, temperature)

        with minimising(training, loss):
            return recipe.gradient(training, batch)

    return recipe.wrap(gradient=gradient).at(0.0, train_teacher).at(until, forget)


def check(weight: float, temperature: float, teacher_steps: int, until: float) -> None:
    """Raise InvalidTechnique where an option is out of its range."""
    if not 0.0 <= weight <= 1.0:
        raise InvalidTechnique(f"knowledge_distillation: weight is {weight}; it should be a share, from 0 (off) to 1")
    if not 0.0 < temperature < math.inf:
        raise InvalidTechnique(f"knowledge_distillation: temperature is {temperature}; it should be above 0")
    if teacher_steps < 1:
        raise InvalidTechnique(f"knowledge_distillation: teacher_steps is {teacher_steps}; it should be 1 or more")
    if not 0.0 < until <= 1.0:
        raise InvalidTechnique(f"knowledge_distillation: until is {until}; it should be a share above 0, up to 1")


def forget(training: Training) -> None:
    """Let the teacher go."""
    training.kept.pop("knowledge_distillation", None)


def distilled(outputs: Tensor, beliefs: Tensor, batch: Batch, temperature: float) -> Tensor:
    """Return `temperature^2` times the cross-entropy of the student's softened probabilities, (B,) nats.

    The factor keeps its gradient as large as that of the labels, whatever the temperature.

    outputs, beliefs: (B, C) logits of the student and of the teacher, or (B, T, V) logits of tokens, of which those
        without a target do not count.
    """
    wanted = (beliefs.float() / temperature).softmax(-1)
    found = (outputs.float() / temperature).log_softmax(-1)
    return mean_of_valid(-(temperature**2) * (wanted * found).sum(-1), batch.targets)
