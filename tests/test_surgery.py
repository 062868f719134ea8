"""Changing a model while it trains: the optimizer and the placement follow."""

from __future__ import annotations

import copy
import dataclasses

import pytest
import torch
from torch import Tensor, nn

from effbench.budget import Budget
from effbench.clock import StepClock
from effbench.optimizers import Together
from effbench.recipe import Milestone, Recipe, Training
from effbench.surgery import carry_state, members, operate
from effbench.toys import TOYS
from effbench.train import Positions, start, take_step, train

torch.set_num_threads(1)


def text(**changes: object) -> Recipe:
    return dataclasses.replace(TOYS["text"](), **changes)


def trained(recipe: Recipe, steps: int = 3) -> Training:
    training = start(recipe, 0)
    positions = Positions(recipe.sampler(training))
    for _ in range(steps):
        take_step(training, positions)
    return training


def take_one(training: Training) -> None:
    take_step(training, Positions(training.recipe.sampler(training)))


def state_of(training: Training) -> dict[nn.Parameter, dict[str, Tensor]]:
    return {p: {k: v.clone() for k, v in s.items()} for p, s in training.optimizer.state.items()}


def grow(model: nn.Module) -> dict[nn.Parameter, nn.Parameter]:
    """Put a copy of the last block on top."""
    copied = copy.deepcopy(model.blocks[-1])
    origin = dict(zip(copied.parameters(), model.blocks[-1].parameters(), strict=True))
    model.blocks.append(copied)
    return origin


def test_what_stays_keeps_its_state_and_what_is_new_inherits_that_of_its_origin():
    training = trained(text())
    before, optimizer = state_of(training), training.optimizer
    operate(training, grow)
    assert training.generation == 1
    assert training.optimizer is not optimizer
    state = training.optimizer.state
    assert len(state) == len(before) + len(list(training.model.blocks[-1].parameters()))
    for parameter, old in before.items():
        assert all(torch.equal(state[parameter][name], value) for name, value in old.items())
    for new, old in zip(training.model.blocks[-1].parameters(), training.model.blocks[-2].parameters(), strict=True):
        for name, value in before[old].items():
            assert torch.equal(state[new][name], value)
            assert state[new][name] is not state[old][name]
    take_one(training)


def test_what_is_new_without_an_origin_starts_afresh():
    training = trained(text())
    operate(training, lambda model: model.blocks.append(copy.deepcopy(model.blocks[0])) and None)
    assert not any(p in training.optimizer.state for p in training.model.blocks[-1].parameters())
    take_one(training)
    assert all(training.optimizer.state[p]["step"] == 1 for p in training.model.blocks[-1].parameters())
    assert all(training.optimizer.state[p]["step"] == 4 for p in training.model.blocks[0].parameters())


def test_what_is_gone_is_forgotten():
    training = trained(text())
    gone = list(training.model.blocks[-1].parameters())
    operate(training, lambda model: model.blocks.__delitem__(-1))
    held = {p for group in training.optimizer.param_groups for p in group["params"]}
    assert held.isdisjoint(gone)
    assert not any(p in training.optimizer.state for p in gone)
    take_one(training)


def test_an_operation_that_changes_nothing_moves_no_weight():
    """Adam's moments, its step and the rates go on as if nothing had been."""

    def run(milestones: tuple[Milestone, ...]) -> list[Tensor]:
        training = start(text(milestones=milestones), 0)
        for _ in train(training, Budget(8, "steps"), StepClock()):
            pass
        return [tensor.clone() for tensor in training.model.state_dict().values()]

    nothing = Milestone(0.5, lambda training: operate(training, lambda model: None))
    assert all(torch.equal(one, other) for one, other in zip(run(()), run((nothing,)), strict=True))


def test_the_next_step_has_the_rate_of_the_moment_and_not_the_peak():
    training = trained(text())
    for group in training.optimizer.param_groups:
        group["lr"] = 0.25 * group["initial_lr"]
    operate(training, grow)
    assert [group["lr"] for group in training.optimizer.param_groups] == [0.0025, 0.0025]
    assert [group["initial_lr"] for group in training.optimizer.param_groups] == [0.01, 0.01]


def test_each_parameter_keeps_the_peak_that_it_had():
    def optimizer(model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.SGD([{"params": [p]} for p in model.parameters()], lr=0.1)

    training = trained(text(optimizer=optimizer))
    raised = training.optimizer.param_groups[2]
    raised["initial_lr"], raised["lr"] = 0.7, 0.35
    operate(training, grow)
    for group in training.optimizer.param_groups:
        is_raised = group["params"][0] is raised["params"][0]
        assert group["initial_lr"] == (0.7 if is_raised else 0.1)
        assert group["lr"] == (0.35 if is_raised else 0.1)


def test_a_group_of_new_parameters_alone_stands_where_the_schedule_stands():
    def optimizer(model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.SGD([{"params": [p]} for p in model.parameters()], lr=0.1)

    training = trained(text(optimizer=optimizer))
    for group in training.optimizer.param_groups:
        group["lr"] = 0.05
    operate(training, grow)
    assert {(group["initial_lr"], group["lr"]) for group in training.optimizer.param_groups} == {(0.1, 0.05)}


def test_the_model_is_placed_anew_before_its_optimizer_is_built():
    calls: list[str] = []
    recipe = text()

    def placement(model: nn.Module):
        calls.append("placement")
        return recipe.placement(model)

    def optimizer(model: nn.Module):
        calls.append("optimizer")
        return recipe.optimizer(model)

    training = trained(text(placement=placement, optimizer=optimizer))
    operate(training, grow)
    assert calls == ["placement", "optimizer"] * 2


def test_frozen_parts_leave_the_optimizer_and_come_back_afresh():
    def optimizer(model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.01)

    training = trained(text(optimizer=optimizer))
    operate(training, lambda model: model.blocks[0].requires_grad_(False) and None)
    frozen = list(training.model.blocks[0].parameters())
    before = [p.clone() for p in frozen]
    take_one(training)
    assert all(torch.equal(p, old) for p, old in zip(frozen, before, strict=True))
    operate(training, lambda model: model.blocks[0].requires_grad_(True) and None)
    take_one(training)
    assert all(training.optimizer.state[p]["step"] == 1 for p in frozen)


def test_state_of_a_parameter_that_was_resized_in_place_is_left_out():
    training = trained(TOYS["vectors"](), 2)
    layer = training.model.head

    def widen(model: nn.Module) -> None:
        """Give the last layer one more input, whose weight is zero."""
        weight = model.head.weight
        weight.data = nn.functional.pad(weight.data, (0, 1))
        model.blocks.append(nn.ZeroPad1d((0, 1)))

    operate(training, widen)
    assert layer.weight not in training.optimizer.state
    assert layer.bias in training.optimizer.state
    take_one(training)
    assert training.optimizer.state[layer.weight]["exp_avg"].shape == (3, 17)


def test_state_of_an_origin_of_another_shape_is_left_out():
    small, large = nn.Linear(2, 2), nn.Linear(2, 3)
    old, new = (torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9) for layer in (small, large))
    small(torch.ones(1, 2)).sum().backward()
    old.step()
    carry_state(old, new, {large.weight: small.weight})
    assert not new.state


def test_optimizers_that_step_together_carry_their_state_too():
    def optimizer(model: nn.Module) -> torch.optim.Optimizer:
        matrices = [p for p in model.parameters() if p.ndim == 2]
        rest = [p for p in model.parameters() if p.ndim != 2]
        return Together(torch.optim.SGD(matrices, lr=0.1, momentum=0.9), torch.optim.AdamW(rest, lr=0.01))

    training = trained(text(optimizer=optimizer))
    assert len(members(training.optimizer)) == 2
    before = state_of(training)
    operate(training, grow)
    for new, old in zip(training.model.blocks[-1].parameters(), training.model.blocks[-2].parameters(), strict=True):
        kept = training.optimizer.state[new]
        assert kept.keys() == before[old].keys()
        assert all(torch.equal(kept[name], value) for name, value in before[old].items())
    take_one(training)


def double_first(model: nn.Module) -> None:
    model.blocks.insert(1, copy.deepcopy(model.blocks[0]))


@pytest.mark.parametrize(("toy", "edit"), [("text", grow), ("images", double_first)])
def test_growing_in_the_middle_of_a_run_trains_on_with_finite_weights(toy, edit):
    recipe = dataclasses.replace(TOYS[toy](), milestones=(Milestone(0.5, lambda training: operate(training, edit)),))
    training = start(recipe, 0)
    depth = len(training.model.blocks)
    for _ in train(training, Budget(6, "steps"), StepClock()):
        pass
    assert len(training.model.blocks) == depth + 1
    assert training.generation == 1
    assert all(torch.isfinite(p).all() for p in training.model.parameters())
    assert training.ledger.wall["extra"] > 0
