"""The engine of all pipelines: one device's part of the model, and how it carries out any schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn

from effbench.distributed.mailbox import Mailbox, Message
from effbench.distributed.parts import Copies
from effbench.distributed.pipeline_schedules import Action
from effbench.distributed.stages import Stages, keep, shared_parameters
from effbench.errors import NotApplicable
from effbench.recipe import Batch, Loss

Finish = Callable[[], None]  # what there is to do after a micro-batch has gone back
#: (a chunk of the model, its inputs) -> what it says of them, with a graph, and what to do after that went back
Pass = Callable[[nn.Module, Tensor], tuple[Tensor, Finish]]
Form = tuple[torch.Size, torch.dtype]


def as_it_is(chunk: nn.Module, inputs: Tensor) -> tuple[Tensor, Finish]:
    """Call a chunk."""
    return chunk(inputs), lambda: None


def one(parameter: nn.Parameter) -> int:  # noqa: ARG001 - the signature of Copies
    """Say that there is one pipeline, which has each parameter once."""
    return 1


def contiguous_like(tensor: Tensor) -> Tensor:
    """Return an empty tensor of the same shape, in the layout in which tensors are received."""
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


@dataclass(slots=True)
class UnderWay:
    """A micro-batch that has gone forward through a stage, and not yet back."""

    inputs: Tensor
    outputs: Tensor  # features; behind the last stage the losses, (B,)
    finish: Finish


class Pipeline(nn.Module):
    """One device of a pipeline: some of the stages of a model, and how to reach the others.

    Called without gradients, it gives what the whole model says; all devices must call it, with the same inputs.

    model: the whole model, of which this device's stages are left.
    ranks: the rank of each device.
    go: how a chunk is called.
    pipelines: how many pipelines hold the same part of a parameter that one of their devices has.
    is_synchronous: whether all devices take the gradient of the same batch, so that together it has one norm.
    group: processes that nobody else sends messages in, where some are under way between steps; None for all.
    """

    def __init__(
        self,
        model: nn.Module,
        stages: Stages,
        ranks: Sequence[int],
        *,
        go: Pass = as_it_is,
        pipelines: Copies = one,
        is_synchronous: bool = True,
        group: dist.ProcessGroup | None = None,
    ) -> None:
        super().__init__()
        self.ranks, self.stages, self.go, self.pipelines = tuple(ranks), stages, go, pipelines
        self.is_synchronous = is_synchronous
        self.device = self.ranks.index(dist.get_rank())
        self.last = len(stages) - 1
        shared = shared_parameters(model, stages)
        self.chunks = keep(model, stages, range(self.device, len(stages), len(ranks)))
        self.mailbox = Mailbox(self.ranks, self.device, self.last, group)
        self.under_way: dict[tuple[int, int], UnderWay] = {}  # (stage, micro-batch)
        self._forms: dict[tuple[int, torch.Size], Form] = {}  # (stage, inputs of the model) -> features for the stage
        self._holders = {parameter: sorted({s % len(ranks) for s in users}) for parameter, users in shared}

    def copies(self, parameter: nn.Parameter) -> int:
        """Return on how many ranks a parameter of this device lies."""
        holders = len(self._holders[parameter]) if parameter in self._holders else 1
        return holders * self.pipelines(parameter)

    def carry_out(
        self, plans: Sequence[Sequence[Action]], parts: Mapping[int, Batch], loss: Loss, done: Finish = lambda: None
    ) -> dict[int, Tensor]:
        """Do what this device is to do; return the losses of the micro-batches that reached the end of the model here.

        plans: what each device does, in order.
        parts: the micro-batches, by the numbers that the plans have for them.
        done: is called whenever a micro-batch has gone back.
        """
        self.mailbox.expect(plans)
        losses: dict[int, Tensor] = {}
        for action in plans[self.device]:
            stage, number = self.device + len(self.ranks) * action.chunk, action.micro_batch
            if action.kind == "backward":
                self._backward(stage, number, parts)
                done()
            else:
                self._forward(stage, number, parts, loss)
                if stage == self.last:
                    losses[number] = self.under_way[stage, number].outputs.detach()
        return losses

    def _forward(self, stage: int, number: int, parts: Mapping[int, Batch], loss: Loss) -> None:
        """Take a micro-batch from the stage before, and pass it on to the one behind."""
        inputs = parts[number].inputs
        if stage:
            inputs = self._take(Message("forward", stage, number), stage - 1, parts).requires_grad_()
        outputs, finish = self.go(self.chunks[stage // len(self.ranks)], inputs)
        if stage == self.last:
            outputs = loss(outputs, parts[number])
        else:
            self._pass_on(outputs, stage + 1, parts[number].inputs.shape)
        self.under_way[stage, number] = UnderWay(inputs, outputs, finish)

    def _backward(self, stage: int, number: int, parts: Mapping[int, Batch]) -> None:
        """Take a slope from the stage behind, add the gradient, and send the slope on to the stage before."""
        way = self.under_way[stage, number]
        if stage == self.last:
            slope = parts[number].weight.to(way.outputs.dtype)
        else:
            slope = self._take(Message("backward", stage, number), stage + 1, parts)
        if way.outputs.requires_grad:
            torch.autograd.backward(way.outputs, slope)
        way.finish()
        if stage:
            assert way.inputs.grad is not None
            self.mailbox.send(way.inputs.grad, (stage - 1) % len(self.ranks))
        del self.under_way[stage, number]

    def _take(self, message: Message, sender: int, parts: Mapping[int, Batch]) -> Tensor:
        """Return what came from the stage `sender`."""
        device = sender % len(self.ranks)

        def empty(following: Message) -> Tensor:
            if following.kind == "backward":
                return contiguous_like(self.under_way[following.stage, following.micro_batch].outputs)
            return self._empty_features(following.stage, parts[following.micro_batch].inputs, device)

        return self.mailbox.take(message, device, empty)

    def _empty_features(self, stage: int, inputs: Tensor, sender: int) -> Tensor:
        """Return an empty tensor of the form of the features that go into `stage`; of a new one, the sender tells."""
        key = stage, inputs.shape
        if key not in self._forms:
            empty = self.mailbox.receive_form(sender, inputs.device)
            self._forms[key] = empty.shape, empty.dtype
        shape, dtype = self._forms[key]
        return torch.empty(shape, dtype=dtype, device=inputs.device)

    def _pass_on(self, features: Tensor, stage: int, inputs: torch.Size) -> None:
        """Send features to the device of `stage`, and before the first of their form say what that is."""
        form = self._forms.get((stage, inputs))
        if form is None:
            form = self._forms[stage, inputs] = features.shape, features.dtype
            self.mailbox.send_form(features, stage % len(self.ranks))
        if form != (features.shape, features.dtype):
            raise NotApplicable("a pipeline sends features of the same shape for inputs of the same, and these differ")
        self.mailbox.send(features, stage % len(self.ranks))

    def told(self, losses: Mapping[int, Tensor], batch: Batch) -> Tensor:
        """Return the losses of a batch, (B,), on all devices, from those of its micro-batches on the last one."""
        last = len(self.ranks) - 1
        if self.device < last:
            return self.mailbox.receive(torch.empty(len(batch), device=batch.inputs.device), last)
        whole = torch.cat([losses[number] for number in sorted(losses)]).float()
        for device in range(last):
            self.mailbox.send(whole, device)
        return whole

    def sum_shared(self) -> None:
        """Give every device that uses a parameter the sum of the gradients of all that use it."""
        for parameter, holders in self._holders.items():
            if len(holders) == 1 or self.device not in holders or parameter.grad is None:
                continue
            own = parameter.grad
            for device in holders:
                if device != self.device:
                    self.mailbox.send(own, device)
            parts = [own if d == self.device else self.mailbox.receive(contiguous_like(own), d) for d in holders]
            self.mailbox.settle()
            parameter.grad = torch.stack(parts).sum(0)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return what the whole model says of (B, ...) inputs.

        Raises:
            NotApplicable: gradients are asked for, or micro-batches are under way.
        """
        if torch.is_grad_enabled():
            raise NotApplicable("a pipeline takes its gradient by its schedule, and somebody wants it otherwise")
        if self.under_way:
            raise NotApplicable("a pipeline that is never empty has no time for a forward pass aside")
        devices, features = len(self.ranks), inputs
        for stage in range(self.device, len(self.stages), devices):
            if stage:
                empty = self._empty_features(stage, inputs, (stage - 1) % devices)
                features = self.mailbox.receive(empty, (stage - 1) % devices)
            features = self.chunks[stage // devices](features)
            if stage < self.last:
                self._pass_on(features, stage + 1, inputs.shape)
        return self._told_outputs(features, inputs.device)

    def _told_outputs(self, outputs: Tensor, device: torch.device) -> Tensor:
        """Return the model's outputs on all devices; the last one has them."""
        last = len(self.ranks) - 1
        if self.device < last:
            return self.mailbox.receive(self.mailbox.receive_form(last, device), last)
        for receiver in range(last):
            self.mailbox.send_form(outputs, receiver)
            self.mailbox.send(outputs, receiver)
        return outputs

    def collect(self, state: Mapping[str, Tensor], whole: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return, on the last device, all weights and buffers by their names in the whole model; on others their own.

        state: those of this device.
        whole: some of the same forms for all; on the last device.
        """
        devices, last = len(self.ranks), len(self.ranks) - 1
        if self.device < last:
            for name in sorted(state):
                self.mailbox.send(state[name], last)
            self.mailbox.settle()
            return dict(state)
        found = dict(state)
        for sender in range(last):
            modules = tuple(f"{name}." for stage in self.stages[sender::devices] for name in stage)
            for name in sorted(name for name in whole if name.startswith(modules)):
                found[name] = self.mailbox.receive(contiguous_like(whole[name]), sender)
        return found
