from itertools import islice

import pytest
import torch

from effbench import terms
from effbench.budget import Budget
from effbench.clock import StepClock
from effbench.distributed.launch import run_ranks
from effbench.distributed.pipeline_schedules import emptying, without_flush
from effbench.distributed.stages import stages_of
from effbench.errors import Conflict, InvalidTechnique, NotApplicable
from effbench.models import mlp
from effbench.optimizers import clipped_step, sgd
from effbench.techniques import compose
from effbench.train import start, train
from effbench_techniques.data_centric.sampling.selective_backprop import selective_backprop
from effbench_techniques.optimization_centric.averaged_weights.ema import ema
from effbench_techniques.system_centric.model.pipedream import pipedream, through_a_copy
from ranks import evaluated, on_all_ranks
from schedule_slots import most_under_way
from toy import CLASSES, begun, images, random_numbers, run, same, tokens, vectors

RATE = 2.0
STEPS = 6


def plain(**changes: object):
    """A deep perceptron, SGD without momentum at a constant rate."""
    return vectors(
        **{
            "model": lambda: mlp(6, CLASSES, width=8, depth=6),
            "optimizer": sgd(RATE, momentum=0.0, weight_decay=0.0, nesterov=False),
            "lr_schedule": lambda progress: 1.0,
            **changes,
        }
    )


def twin(processes: int) -> dict[str, torch.Tensor]:
    """The rule of the paper in one process: w(t + 1) = w(t) - rate * gradient at (w_1(t - n + 1), ..., w_n(t))."""
    recipe = plain()
    training = begun(recipe)
    model, drawn = training.model, recipe.sampler(training)
    stages = stages_of(model, processes, "the twin")
    stage_of = {
        name: stage
        for stage, modules in enumerate(stages)
        for name, _ in model.named_parameters()
        if name.startswith(tuple(f"{module}." for module in modules))
    }
    versions = [{name: p.detach().clone() for name, p in model.named_parameters()}]
    positions = torch.cat(list(islice(drawn, 1)))
    for step in range(STEPS):
        for name, parameter in model.named_parameters():
            seen = max(0, step - (processes - 1 - stage_of[name]))
            parameter.data = versions[seen][name].clone()
        batch = recipe.loader(positions[8 * step : 8 * (step + 1)], training)
        model.zero_grad()
        terms.cross_entropy(model(batch.inputs), batch).mean().backward()
        versions.append({name: versions[-1][name] - RATE * p.grad for name, p in model.named_parameters()})
    return versions[-1]


@pytest.mark.parametrize("processes", [2, 3, 4])
def test_each_stage_learns_from_gradients_as_late_as_the_paper_says(processes: int) -> None:
    def told(training) -> dict[str, torch.Tensor]:
        return training.recipe.eval_model(training).state_dict()

    found = on_all_ranks(pipedream.apply(plain(), {"processes": processes}), told, STEPS)[0]
    expected = twin(processes)
    assert found.keys() == expected.keys()
    for name in expected:
        assert float((found[name] - expected[name]).abs().max()) < 1e-6
    on_time = run(plain(), STEPS).model.state_dict()
    assert max(float((found[name] - on_time[name]).abs().max()) for name in expected) > 2e-5


def test_a_batch_goes_back_through_the_weights_that_it_went_forward_through() -> None:
    torch.manual_seed(0)
    chunk, inputs = torch.nn.Linear(3, 3), torch.randn(5, 3, requires_grad=True)
    outputs, finish = through_a_copy(chunk, inputs)
    before = chunk.weight.detach().clone()
    with torch.no_grad():
        chunk.weight.mul_(10.0)
    outputs.sum().backward()
    torch.testing.assert_close(inputs.grad, before.sum(0).expand(5, 3))
    assert chunk.weight.grad is None
    finish()
    torch.testing.assert_close(chunk.weight.grad, inputs.detach().sum(0).expand(3, 3))


def test_what_a_batch_brings_back_is_added_to_the_gradient_that_is_there() -> None:
    layer, x = torch.nn.Linear(3, 2), random_numbers(5, 3)
    layer.weight.grad = torch.ones(2, 3)
    outputs, finish = through_a_copy(layer, x)
    outputs.sum().backward()
    finish()
    torch.testing.assert_close(layer.weight.grad, 1.0 + x.sum(0).expand(2, 3))
    torch.testing.assert_close(layer.bias.grad, torch.full((2,), 5.0))


def test_a_stage_has_as_many_batches_under_way_as_there_are_stages_from_it_to_the_end() -> None:
    for device in range(4):
        plan = [action for step in range(9) for action in without_flush(device, 4, step)] + emptying(device, 4, 9)
        assert most_under_way(plan) == 4 - device
        assert sorted(action.micro_batch for action in plan if action.kind == "backward") == list(range(9))


def test_a_run_shorter_than_the_pipeline_loses_nothing_either() -> None:
    for device in range(4):
        plan = [action for step in range(2) for action in without_flush(device, 4, step)] + emptying(device, 4, 2)
        assert len(plan) == 4
    recipe = pipedream.apply(plain(), {"processes": 4})
    weights = on_all_ranks(recipe, evaluated, steps=2)[0]
    assert float((weights - evaluated(begun(plain()))).abs().max()) > 1e-3


def test_looking_at_the_model_on_the_way_changes_nothing_and_so_does_a_step_after_the_end() -> None:
    from effbench.meters import step_aside

    recipe = pipedream.apply(plain(), {"processes": 3})
    looked = on_all_ranks(recipe, lambda training: evaluated(training).tolist(), look=recipe.eval_model)
    assert looked[0] == on_all_ranks(recipe, lambda training: evaluated(training).tolist())[0]

    def stepped(training) -> int:
        for _ in range(3):
            step_aside(training)
        training.recipe.finish(training)
        return len(training.forward.under_way)

    assert on_all_ranks(recipe, stepped) == [0, 0, 0]


def test_two_runs_in_turns_do_not_mix_their_batches() -> None:
    """As when prices are measured: what is under way in one must not be taken for what the other sends."""

    def body(group) -> list[list[float]]:
        recipe = pipedream.apply(plain(), {"processes": 3})
        trainings = [start(recipe, seed, group=group) for seed in (0, 1)]
        runs = [train(training, Budget(STEPS, "steps"), StepClock()) for training in trainings]
        for turn in [0, 0, 1, 1, 1, *[0] * STEPS, *[1] * STEPS]:  # until both have come to their end
            next(runs[turn], None)
        return [evaluated(training).tolist() for training in trainings]

    def alone(seed: int) -> list[float]:
        def body(group) -> list[float]:
            training = start(pipedream.apply(plain(), {"processes": 3}), seed, group=group)
            for _ in train(training, Budget(STEPS, "steps"), StepClock()):
                pass
            return evaluated(training).tolist()

        return run_ranks(3, body)

    assert run_ranks(3, body) == [alone(0), alone(1)]


def test_batch_norm_counts_every_batch_once_and_losses_are_those_of_the_batch() -> None:
    def told(training) -> tuple[list[int], int]:
        state = training.recipe.eval_model(training).state_dict()
        return [int(t) for name, t in state.items() if name.endswith("num_batches_tracked")], len(training.losses)

    (counts, losses), (_, none) = on_all_ranks(pipedream.apply(images(), {}), told)
    assert set(counts) == {6}
    assert (losses, none) == (8, 0)


def test_a_gradient_is_clipped_stage_by_stage() -> None:
    limit = 1e-3

    def moved(training) -> float:
        start = begun(plain()).model.state_dict()
        parts = [(p.detach() - start[name]).flatten() for name, p in training.model.named_parameters()]
        return float(torch.cat(parts).norm())

    recipe = pipedream.apply(plain(update=clipped_step(limit)), {})
    assert on_all_ranks(recipe, moved, steps=1) == pytest.approx([RATE * limit] * 2, rel=1e-3)


@pytest.mark.parametrize("processes", [2, 3])
def test_averages_are_of_the_newest_weights(processes: int) -> None:
    known = {"pipedream": pipedream, "ema": ema}
    alone = on_all_ranks(pipedream.apply(plain(), {"processes": processes}), evaluated)[0]

    def off(half_life: float) -> float:
        options = {"pipedream": {"processes": processes}, "ema": {"half_life": half_life}}
        return float((on_all_ranks(compose(plain(), options, known)[0], evaluated)[0] - alone).abs().max())

    assert off(1e-6) == 0.0  # which forgets all weights but the last
    assert off(0.5) > 1e-3


def test_one_process_is_the_baseline() -> None:
    assert same(run(pipedream.apply(plain(), {"processes": 1})).model, run(plain()).model)


def test_it_refuses_what_it_cannot_do() -> None:
    with pytest.raises(NotApplicable, match=r"several of them use embed.tokens.weight"):
        pipedream.apply(tokens(), {})
    with pytest.raises(NotApplicable, match="pipedream cuts the model's blocks into 3 stages, and it has 1"):
        pipedream.apply(vectors(), {"processes": 3})
    with pytest.raises(InvalidTechnique, match="pipedream: processes is 0"):
        pipedream.apply(plain(), {"processes": 0})
    with pytest.raises(Conflict, match="selective_backprop exclude each other"):
        compose(
            plain(),
            {"pipedream": {}, "selective_backprop": {}},
            {"pipedream": pipedream, "selective_backprop": selective_backprop},
        )
