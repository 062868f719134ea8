from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch import nn

from effbench.distributed.launch import run_ranks
from effbench.distributed.mailbox import Mailbox, Message, messages
from effbench.distributed.pipeline import Pipeline
from effbench.distributed.pipeline_schedules import Action, fill_drain, interleaved, one_forward_one_backward
from effbench.distributed.pipelined import Plan, micro_batches
from effbench.distributed.stages import Elsewhere, keep, shared_parameters, stages_of
from effbench.errors import NotApplicable
from effbench.models import Network, gpt, mlp, switch_gpt
from effbench.recipe import Batch
from effbench.terms import cross_entropy, cut

torch.set_num_threads(1)


def perceptron(depth: int = 5) -> Network:
    torch.manual_seed(0)
    return mlp(6, 4, width=8, depth=depth)


def batch(count: int = 7) -> Batch:
    random = torch.Generator().manual_seed(0)
    weight = torch.rand(count, generator=random)
    targets = torch.randint(4, (count,), generator=random)
    return Batch(torch.randn(count, 6, generator=random), targets, torch.arange(count), weight / weight.sum())


# --- stages -------------------------------------------------------------------------------------------------------


def test_blocks_are_dealt_out_evenly_with_the_embedding_first_and_the_head_last() -> None:
    assert stages_of(perceptron(6), 2, "it") == [
        ["embed", "blocks.0", "blocks.1"],
        ["blocks.2", "blocks.3", "blocks.4", "head"],
    ]
    assert stages_of(perceptron(2), 1, "it") == [["embed", "blocks.0", "head"]]


def test_a_model_that_is_more_or_less_than_its_parts_cannot_be_cut() -> None:
    with pytest.raises(NotApplicable, match="it cuts a model between its blocks, and this model has none"):
        stages_of(nn.Sequential(nn.Linear(2, 2)), 1, "it")

    class Doubled(Network):
        def forward(self, inputs):
            return 2 * super().forward(inputs)

    with pytest.raises(NotApplicable, match="this model has none, or does more"):
        stages_of(Doubled(nn.Linear(2, 2), [nn.Linear(2, 2)], nn.Linear(2, 2)), 1, "it")
    hooked = perceptron()
    hooked.register_forward_hook(lambda module, given, said: 2 * said)
    with pytest.raises(NotApplicable, match="this model has none, or does more"):
        stages_of(hooked, 1, "it")
    more = perceptron()
    more.scale = nn.Parameter(torch.ones(1))
    with pytest.raises(NotApplicable, match="scale lies in none of its parts"):
        stages_of(more, 2, "it")
    with pytest.raises(NotApplicable, match="into 5 stages, and it has 4"):
        stages_of(perceptron(), 5, "it")
    with pytest.raises(NotApplicable, match="experts add one of balance"):
        stages_of(switch_gpt(5, length=4, width=8, heads=2), 2, "it")


def test_parameters_that_stages_share_are_found_wherever_they_are() -> None:
    model = gpt(5, length=4, width=8, depth=3, heads=2)
    stages = stages_of(model, 3, "it")
    (parameter, users), *others = shared_parameters(model, stages)
    assert parameter is model.embed.tokens.weight
    assert users == (0, 2)
    assert not others


def test_a_process_keeps_its_own_stages_under_their_names_and_nothing_else() -> None:
    model, names = perceptron(), perceptron().state_dict().keys()
    (chunk,) = keep(model, stages_of(model, 2, "it"), [1])
    assert model.state_dict().keys() == {name for name in names if name.startswith(("blocks.2", "blocks.3", "head"))}
    assert [*chunk.parameters()] == [*model.parameters()]
    assert isinstance(model.embed, Elsewhere)
    with pytest.raises(NotApplicable, match="no embed to call"):
        model(torch.ones(1, 6))


# --- messages -----------------------------------------------------------------------------------------------------


def test_features_go_to_the_next_stage_and_slopes_to_the_one_before() -> None:
    plan = [Action("forward", 0, 3), Action("forward", 1, 3), Action("backward", 1, 3), Action("backward", 0, 3)]
    assert list(messages(plan, 0, 2, 3)) == [
        (1, Message("forward", 1, 3)),
        (1, Message("forward", 3, 3)),
        (1, Message("backward", 1, 3)),
    ]
    assert list(messages(plan, 1, 2, 3)) == [
        (0, Message("forward", 2, 3)),
        (0, Message("backward", 2, 3)),
        (0, Message("backward", 0, 3)),
    ]


def test_what_comes_before_it_is_needed_is_kept() -> None:
    plan = [Action("forward", 0, number) for number in range(3)]

    def body(group) -> list[float]:
        mailbox = Mailbox((0, 1), group.rank, last=1)
        mailbox.expect([plan, []])
        if group.rank == 0:
            for number in range(3):
                mailbox.send(torch.tensor([10.0 + number]), 1)
            mailbox.settle()
            return mailbox.receive(torch.empty(3), 1).tolist()
        wanted = [Message("forward", 1, number) for number in (2, 0, 1)]
        taken = [mailbox.take(message, 0, lambda message: torch.empty(1)) for message in wanted]
        mailbox.send(torch.cat(taken), 0)
        mailbox.settle()
        return []

    assert run_ranks(2, body) == [12.0, 10.0, 11.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_a_form_tells_shape_and_type(dtype) -> None:
    def body(group) -> tuple[tuple[int, ...], torch.dtype]:
        mailbox = Mailbox((0, 1), group.rank, last=1)
        if group.rank:
            mailbox.send_form(torch.empty(2, 3, 5, dtype=dtype), 0)
            mailbox.settle()
            return (), dtype
        empty = mailbox.receive_form(1, torch.device("cpu"))
        return tuple(empty.shape), empty.dtype

    assert run_ranks(2, body) == ((2, 3, 5), dtype)


# --- the engine ---------------------------------------------------------------------------------------------------


def gradients(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


def alone() -> tuple[dict[str, torch.Tensor], list[float]]:
    model, examples = perceptron(), batch()
    losses = cross_entropy(model(examples.inputs), examples)
    losses.backward(examples.weight)
    return gradients(model), losses.tolist()


@pytest.mark.parametrize(
    ("schedule", "devices", "chunks", "count"),
    [
        (fill_drain, 2, 1, 3),
        (one_forward_one_backward, 2, 1, 3),
        (one_forward_one_backward, 4, 1, 2),
        (interleaved(2), 2, 2, 2),
    ],
)
def test_any_schedule_gives_the_gradient_of_one_process(schedule, devices, chunks, count) -> None:
    def body(group):
        model = perceptron()
        pipeline = Pipeline(model, stages_of(model, devices * chunks, "it"), range(devices)[::-1])
        parts = cut(batch(), count)
        plans = [schedule(device, devices, count) for device in range(devices)]
        losses = pipeline.carry_out(plans, dict(enumerate(parts)), cross_entropy)
        told = pipeline.told(losses, batch())
        pipeline.mailbox.settle()
        assert not pipeline.under_way
        everyone: list[object] = [None] * devices
        dist.all_gather_object(everyone, (gradients(model), told.tolist()))
        return everyone

    expected, losses = alone()
    everyone = run_ranks(devices, body)
    found = {name: gradient for ours, _ in everyone for name, gradient in ours.items()}
    assert found.keys() == expected.keys()
    assert sum(len(ours) for ours, _ in everyone) == len(expected)  # each has its own
    for name in expected:
        assert float((found[name] - expected[name]).abs().max()) < 1e-6
    for _, told in everyone:
        assert told == pytest.approx(losses, abs=1e-6)


def test_without_gradients_all_devices_get_the_outputs() -> None:
    def body(group):
        model = perceptron()
        pipeline = Pipeline(model, stages_of(model, 4, "it"), (1, 0))
        with torch.no_grad():
            outputs = [pipeline(batch(count).inputs) for count in (7, 3, 7)]
        with pytest.raises(NotApplicable, match="somebody wants it otherwise"):
            pipeline(batch().inputs)
        everyone: list[object] = [None] * 2
        dist.all_gather_object(everyone, outputs)
        return everyone

    expected = [perceptron()(batch(count).inputs) for count in (7, 3, 7)]
    for outputs in run_ranks(2, body):
        torch.testing.assert_close(outputs, expected)


def test_features_may_not_change_their_shape_for_inputs_of_the_same() -> None:
    class Fickle(nn.Module):
        times = 0

        def forward(self, x):
            self.times += 1
            return x[:, : 9 - self.times]

    def body(group):
        model = perceptron()
        model.blocks[1] = Fickle()
        pipeline = Pipeline(model, stages_of(model, 2, "it"), (0, 1))
        plans = [fill_drain(device, 2, 2) for device in range(2)]
        pipeline.carry_out(plans, dict(enumerate(cut(batch(8), 2))), cross_entropy)

    with pytest.raises(NotApplicable, match="features of the same shape"):
        run_ranks(2, body)


def test_micro_batches_have_two_examples_and_come_in_groups() -> None:
    def sizes(count: int, plan: Plan) -> list[int]:
        return [len(part) for part in micro_batches(batch(count), plan)]

    assert sizes(7, Plan(fill_drain, 2, 3)) == [2, 2, 3]
    assert sizes(7, Plan(fill_drain, 2, 5)) == [2, 2, 3]
    assert sizes(1, Plan(fill_drain, 2, 5)) == [1]
    assert sizes(7, Plan(interleaved(2), 2, 4, groups=2)) == [3, 4]
    with pytest.raises(NotApplicable, match="2 micro-batches need two examples each, and the batch has 3 in all"):
        sizes(3, Plan(interleaved(2), 2, 4, groups=2))
