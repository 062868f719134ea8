import pytest
import torch
from torch import nn
from torch.nn.functional import kl_div, log_softmax, one_hot, softmax

from effbench import optimizers
from effbench.distributed.sharing import share
from effbench.errors import Conflict, InvalidTechnique, NotApplicable
from effbench.recipe import Batch
from effbench.techniques import compose
from effbench.terms import IGNORED
from effbench_techniques.optimization_centric.large_batch.gradient_accumulation import gradient_accumulation
from effbench_techniques.optimization_centric.objective.knowledge_distillation import distilled, knowledge_distillation
from effbench_techniques.optimization_centric.objective.sparse_mlm_head import sparse_mlm_head
from toy import CLASSES, begun, first_batch, flat, masked_tokens, random_numbers, run, same, tokens, vectors


def batch_of(targets: torch.Tensor) -> Batch:
    return Batch(torch.zeros(len(targets), 1), targets, torch.arange(len(targets)))


def test_at_temperature_one_a_certain_teacher_is_the_label() -> None:
    student, labels = random_numbers(7, CLASSES), torch.arange(7) % CLASSES
    certain = 1e4 * one_hot(labels, CLASSES).float()
    found = distilled(student, certain, batch_of(labels), 1.0)
    torch.testing.assert_close(found, nn.functional.cross_entropy(student, labels, reduction="none"))


def test_softened_probabilities_are_compared_and_the_slope_is_that_of_hintons_loss() -> None:
    student, teacher = random_numbers(5, CLASSES).requires_grad_(), random_numbers(6, CLASSES)[1:]
    distilled(student, teacher, batch_of(torch.zeros(5, dtype=torch.long)), 3.0).sum().backward()
    # T^2 / T times the difference of the softened probabilities
    expected = 3.0 * (softmax(student.detach() / 3.0, 1) - softmax(teacher / 3.0, 1))
    torch.testing.assert_close(student.grad, expected)
    twin = student.detach().clone().requires_grad_()
    (9.0 * kl_div(log_softmax(twin / 3.0, 1), softmax(teacher / 3.0, 1), reduction="sum")).backward()
    torch.testing.assert_close(student.grad, twin.grad)


def test_tokens_without_a_target_do_not_count() -> None:
    student, teacher = random_numbers(2, 3, 5), random_numbers(3, 3, 5)[1:]
    targets = torch.tensor([[1, IGNORED, 2], [IGNORED, IGNORED, IGNORED]])
    by_token = -4.0 * (softmax(teacher / 2, -1) * log_softmax(student / 2, -1)).sum(-1)
    found = distilled(student, teacher, batch_of(targets), 2.0)
    torch.testing.assert_close(found, torch.stack([(by_token[0, 0] + by_token[0, 2]) / 2, torch.tensor(0.0)]))


def gradient_of(recipe, model: nn.Module, teacher: nn.Module | None) -> torch.Tensor:
    training = begun(recipe)
    training.model.load_state_dict(model.state_dict())
    if teacher is not None:
        training.kept["knowledge_distillation"] = teacher
    recipe.gradient(training, share(first_batch(recipe, training), training))
    return torch.cat([weight.grad.flatten() for weight in training.model.parameters()])


def test_the_gradient_is_that_of_labels_and_teacher_by_weight_in_whatever_parts_it_is_taken() -> None:
    student, teacher = begun(tokens(), 1).model, begun(tokens(), 2).model
    known = {each.name: each for each in (knowledge_distillation, gradient_accumulation)}

    def found(weight: float, parts: int = 1, asked: nn.Module | None = teacher) -> torch.Tensor:
        sets = {"knowledge_distillation": {"weight": weight}, "gradient_accumulation": {"micro_batches": parts}}
        return gradient_of(compose(tokens(), sets, known)[0], student, asked)

    plain, taught = gradient_of(tokens(), student, None), found(1.0)
    assert (plain - taught).norm() > 0.1 * plain.norm()
    torch.testing.assert_close(found(0.3), 0.7 * plain + 0.3 * taught, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(found(0.3, parts=4), found(0.3), rtol=1e-4, atol=1e-6)
    assert torch.equal(found(0.3, asked=None), plain)


def test_a_teacher_is_trained_first_and_let_go_at_its_time() -> None:
    seen = []

    def look(training) -> None:
        seen.append("knowledge_distillation" in training.kept)

    training = run(knowledge_distillation.apply(vectors(), {"teacher_steps": 150}), 6, look=look)
    assert seen == [True, True, True, False, False, False]
    assert training.ledger.wall["extra"] > 0.0

    training = begun(knowledge_distillation.apply(vectors(), {"teacher_steps": 400}))
    first, last = training.recipe.milestones
    assert (first.progress, last.progress) == (0.0, 0.5)
    first.action(training)
    teacher = training.kept["knowledge_distillation"]
    dataset = training.recipe.dataset
    right = teacher(dataset.inputs).argmax(1) == dataset.targets
    assert float(right.float().mean()) > 0.6  # of four classes
    assert same(training.model, begun(vectors()).model)
    assert not same(teacher, training.model)


def test_a_student_without_labels_of_its_own_becomes_its_teacher() -> None:
    told = optimizers.adamw(2e-2, weight_decay=0.0)
    recipe = knowledge_distillation.apply(vectors(optimizer=told), {"weight": 1.0, "until": 1.0, "teacher_steps": 20})
    training = run(recipe, 300)
    teacher, inputs = training.kept["knowledge_distillation"], training.recipe.dataset.inputs
    with torch.no_grad():
        apart = (teacher(inputs).softmax(1) - training.model(inputs).softmax(1)).abs().max()
    assert float(apart) < 0.1
    assert not torch.equal(flat(teacher), flat(training.model))


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="has neither"):
        knowledge_distillation.apply(vectors(classes=None), {})
    known = {each.name: each for each in (knowledge_distillation, sparse_mlm_head)}
    with pytest.raises(Conflict, match="the loss sees those that are masked"):
        compose(masked_tokens(), {name: {} for name in known}, known)
    for options in ({"weight": 1.1}, {"temperature": 0.0}, {"teacher_steps": 0}, {"until": 0.0}):
        with pytest.raises(InvalidTechnique, match=f"{next(iter(options))} is"):
            knowledge_distillation.apply(vectors(), options)
