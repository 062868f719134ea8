import os
import signal
from collections import Counter

import pytest
import torch

from effbench.budget import Budget
from effbench.distributed.launch import RankError, run_ranks
from effbench.errors import Conflict, Diverged, InvalidTechnique, NotApplicable
from effbench.meters import flop_of_a_step
from effbench.models import mlp
from effbench.optimizers import clipped_step, sgd
from effbench.recipe import Recipe
from effbench.techniques import compose
from effbench.train import start, train
from effbench_techniques.data_centric.regularization.mixup import mixup
from effbench_techniques.model_centric.curriculum.progressive_stacking import progressive_stacking
from effbench_techniques.model_centric.curriculum.stochastic_depth import stochastic_depth
from effbench_techniques.optimization_centric.averaged_weights.ema import ema
from effbench_techniques.optimization_centric.learning_rate.sophia import sophia
from effbench_techniques.system_centric.model.parameter_server import parameter_server
from ranks import counted, distance, evaluated, on_all_ranks
from toy import CLASSES, images, run, same, tokens, vectors

KNOWN = {each.name: each for each in (parameter_server, ema, mixup, progressive_stacking, sophia, stochastic_depth)}
SGD = sgd(0.1, momentum=0.9, weight_decay=0.01)
TOLERANCE = 1e-6


@pytest.mark.parametrize("processes", [2, 3, 4])
@pytest.mark.parametrize("toy", [vectors, tokens])
def test_a_server_that_waits_for_all_trains_the_weights_of_one_process(toy, processes: int) -> None:
    recipe = toy(optimizer=SGD, update=clipped_step(0.1))
    assert distance(parameter_server.apply(recipe, {"processes": processes}), recipe) < TOLERANCE


@pytest.mark.parametrize("others", [{"ema": {"half_life": 0.3}}, {"mixup": {"alpha": 1.0}}, {"stochastic_depth": {}}])
def test_the_update_is_the_servers_and_what_is_drawn_is_what_one_process_draws(others) -> None:
    toy = vectors if "mixup" in others else tokens
    alone = compose(toy(optimizer=SGD), others, KNOWN)[0]
    served = compose(toy(optimizer=SGD), {**others, "parameter_server": {}}, KNOWN)[0]
    assert distance(served, alone) < TOLERANCE


def test_the_server_has_the_mean_of_the_workers_statistics() -> None:
    def statistics(training) -> torch.Tensor:
        buffers = training.recipe.eval_model(training).buffers()
        return torch.cat([buffer.flatten() for buffer in buffers if buffer.is_floating_point()])

    server, *workers = on_all_ranks(parameter_server.apply(images(), {}), statistics)
    assert not torch.equal(*workers)
    assert torch.allclose(server, torch.stack(workers).mean(0))


def staleness(training) -> Counter:
    return training.kept["parameter_server"]["staleness"] if training.group.rank == 0 else Counter()


def test_one_worker_that_nobody_waits_for_trains_the_weights_of_one_process() -> None:
    alone = {"processes": 2, "asynchronous": True}
    assert distance(parameter_server.apply(tokens(optimizer=SGD), alone), tokens(optimizer=SGD)) < TOLERANCE
    assert on_all_ranks(parameter_server.apply(tokens(), alone), staleness)[0] == {0: 6}


class Watch:
    """Seconds that a step costs: none on the server, one on the first worker, two on the second."""

    def spent(self, training) -> float:
        return training.step * training.group.rank


def test_each_worker_spends_a_budget_of_its_own_and_all_its_gradients_count() -> None:
    recipe = parameter_server.apply(vectors(), {"asynchronous": True})

    def body(group):
        training = start(recipe, 0, group=group)
        for _ in train(training, Budget.parse("20s"), Watch()):
            pass
        steps = [int(group.sum_float(training.step * (group.rank == rank))) for rank in range(3)]
        return steps, training.examples, staleness(training), training.measured

    steps, examples, seen, measured = run_ranks(3, body)
    assert steps == [10, 20, 10]  # the server's are the slowest worker's
    assert examples == 30 * 8 / 2
    assert seen.total() == 30
    assert measured["largest_staleness_steps"] == max(seen) >= 1
    assert measured["mean_staleness_steps"] == pytest.approx(sum(each * seen[each] for each in seen) / 30)


def test_asynchronous_steps_are_those_of_the_rate_divided_by_the_workers() -> None:
    """Where no gradient depends on the weights, staleness is nothing, and a round of pushes is one step."""
    flat_loss = vectors(
        optimizer=sgd(0.1, 0.0, 0.0, nesterov=False), loss=lambda outputs, batch: outputs.sum(1), model=linear
    )
    assert distance(parameter_server.apply(flat_loss, {"asynchronous": True}), flat_loss) < TOLERANCE


def linear() -> torch.nn.Module:
    return torch.nn.Linear(6, CLASSES)


def dying(recipe: Recipe, how) -> Recipe:
    """Let the second worker come to its end in its third step."""

    def gradient(training, batch):
        if training.group.rank == 2 and training.step == 2:
            how()
        return recipe.gradient(training, batch)

    return recipe.wrap(gradient=gradient)


def fail() -> None:
    raise ZeroDivisionError("found on the way")


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_worker_that_dies_ends_the_trial_with_its_own_story(asynchronous: bool) -> None:
    recipe = parameter_server.apply(vectors(), {"asynchronous": asynchronous})
    with pytest.raises(RankError, match="ZeroDivisionError: found on the way"):
        on_all_ranks(dying(recipe, fail), evaluated)
    with pytest.raises(RankError, match=r"rank 2 was ended by signal 9 \(SIGKILL\)"):
        on_all_ranks(dying(recipe, lambda: os.kill(os.getpid(), signal.SIGKILL)), evaluated)


def test_a_server_that_dies_ends_the_trial() -> None:
    def diverge(training) -> None:
        if training.group.rank == 0 and training.step == 2:
            raise Diverged("the weights are gone")
        recipe.update(training)

    recipe = parameter_server.apply(vectors(), {"asynchronous": True})
    with pytest.raises(Diverged, match="the weights are gone"):
        on_all_ranks(recipe.wrap(update=diverge), evaluated)


def test_workers_send_gradients_and_the_server_weights() -> None:
    tensors = list(mlp(6, CLASSES, width=8, depth=2).parameters())
    weights = 4 * sum(tensor.numel() for tensor in tensors)
    push = weights + 4 * (2 + len(tensors))
    server, *workers = counted(parameter_server.apply(vectors(), {}))
    assert server == {"send": (2 * 6 * weights, 2 * 6)}
    assert workers == [{"send": (6 * push, 6)}] * 2
    server, *workers = counted(parameter_server.apply(vectors(), {"asynchronous": True}))
    assert server["send"] == (2 * 6 * weights, 2 * 6)
    assert [worker["send"] for worker in workers] == [(7 * push, 7)] * 2  # the last says that it is done
    assert server["all_reduce"].calls == 2


@pytest.mark.parametrize("asynchronous", [False, True])
def test_meters_may_take_more_steps_when_all_is_over(asynchronous: bool) -> None:
    recipe = parameter_server.apply(vectors(), {"asynchronous": asynchronous})
    first, *others = on_all_ranks(recipe, lambda training: [flop_of_a_step(training) for _ in range(3)])
    assert others == [first] * 2
    assert first[0] == first[2] > 0.0


def test_one_process_is_the_baseline() -> None:
    assert same(run(parameter_server.apply(tokens(), {"processes": 1})).model, run(tokens()).model)


def test_what_it_refuses() -> None:
    with pytest.raises(InvalidTechnique, match="parameter_server: processes is 0"):
        parameter_server.apply(vectors(), {"processes": 0})
    with pytest.raises(NotApplicable, match="9 workers share batches of 8 examples"):
        parameter_server.apply(vectors(), {"processes": 10})
    with pytest.raises(Conflict, match="progressive_stacking would do something to all of them at once"):
        compose(tokens(), {"progressive_stacking": {}, "parameter_server": {}}, KNOWN)
    with pytest.raises(Conflict, match="sophia would do both"):
        compose(tokens(), {"sophia": {}, "parameter_server": {}}, KNOWN)
