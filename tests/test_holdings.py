"""What a rank holds, against ZeRO's formulae: P parameters are 4P + 4P + 8P bytes with Adam in float32."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import nn

from effbench import holdings
from effbench.budget import Budget
from effbench.clock import StepClock
from effbench.distributed.group import Group
from effbench.distributed.launch import run_ranks
from effbench.holdings import gradient_bytes, kept_bytes, nbytes, optimizer_bytes, parameter_bytes
from effbench.meters import MIB
from effbench.models.network import Network
from effbench.recipe import Recipe, Training
from effbench.techniques import compose
from effbench.toys import TOYS
from effbench.train import start, train
from effbench_techniques.optimization_centric.averaged_weights.ema import ema
from effbench_techniques.system_centric.model.ddp import ddp
from effbench_techniques.system_centric.model.fsdp import fsdp

torch.set_num_threads(1)

KNOWN = {technique.name: technique for technique in (ddp, fsdp, ema)}
WIDE, TENSORS = 8, 5
PARAMETERS = TENSORS * WIDE * WIDE


def matrices(*names: str) -> Recipe:
    """Five 8 x 8 matrices, which two ranks can halve exactly."""

    def model() -> nn.Module:
        layers = [nn.Linear(WIDE, WIDE, bias=False) for _ in range(TENSORS)]
        return Network(layers[0], layers[1:-1], layers[-1])

    plain = dataclasses.replace(
        TOYS["vectors"](), model=model, optimizer=lambda network: torch.optim.AdamW(network.parameters())
    )
    return compose(plain, {name: {} for name in names}, KNOWN)[0]


def held(recipe: Recipe) -> list[tuple[int, int, int, int]]:
    def body(group: Group) -> list[tuple[int, int, int, int]]:
        training = start(recipe, 0, group=group)
        for _ in train(training, Budget(2, "steps"), StepClock()):
            pass
        own = parameter_bytes(training), gradient_bytes(training), optimizer_bytes(training), kept_bytes(training)
        assert training.step == 2
        return group.gather(own)

    return run_ranks(recipe.processes, body)


COUNTERS = 4 * TENSORS  # of steps, one for each tensor


def test_one_process_and_each_replica_hold_everything():
    whole = (4 * PARAMETERS, 4 * PARAMETERS, 8 * PARAMETERS + COUNTERS, 0)
    assert held(matrices()) == [whole]
    assert held(matrices("ddp")) == [whole] * 2


def test_fsdp_divides_parameters_gradients_and_state_by_the_number_of_ranks():
    assert held(matrices("fsdp")) == [(2 * PARAMETERS, 2 * PARAMETERS, 4 * PARAMETERS + COUNTERS, 0)] * 2


def test_what_techniques_keep_is_held_too():
    parameters, gradients, state, kept = held(matrices("ema"))[0]
    assert (parameters, gradients, state) == (4 * PARAMETERS, 4 * PARAMETERS, 8 * PARAMETERS + COUNTERS)
    assert kept == pytest.approx(4 * PARAMETERS, rel=0.05)


def test_tensors_are_found_however_deep_and_counted_once():
    @dataclasses.dataclass
    class Remembered:
        one: torch.Tensor
        others: list[object]

    tensor = torch.zeros(3)
    layer = nn.Linear(2, 2)
    found = {"a": Remembered(tensor, [tensor, (torch.zeros(2, dtype=torch.float64), "text", 7)]), "b": layer}
    assert nbytes(found) == 12 + 16 + 24
    assert nbytes([None, 3, "text", iter([tensor])]) == 0  # an iterator would be used up


def test_the_meters_tell_of_the_rank_that_holds_most():
    meters = {meter.name: meter for meter in holdings.effbench_meters()}

    def body(group: Group) -> list[float]:
        training: Training = start(matrices("ddp"), 0, group=group)
        if group.rank == 1:
            training.kept["mine"] = torch.zeros(MIB, dtype=torch.uint8)
        return [meters[f"held_{part}_mib"].measure(training) for part in ("parameters", "by_techniques")]

    assert run_ranks(2, body) == [4 * PARAMETERS / MIB, 1.0]
