import pytest
import torch
from torch import nn

from effbench.errors import Conflict, InvalidTechnique, NotApplicable
from effbench.models import mlp
from effbench.optimizers import sgd
from effbench.techniques import compose
from effbench_techniques.data_centric.sampling.importance_sampling import importance_sampling
from effbench_techniques.model_centric.compression.rigl import rigl
from effbench_techniques.model_centric.curriculum.progressive_stacking import progressive_stacking
from effbench_techniques.optimization_centric.averaged_weights.ema import ema
from effbench_techniques.system_centric.model.ddp import ddp
from effbench_techniques.system_centric.optimization.local_sgd import local_sgd
from ranks import counted, distance, evaluated, on_all_ranks, two_by_hand
from toy import CLASSES, flat, images, run, same, tokens, vectors

KNOWN = {each.name: each for each in (local_sgd, ddp, ema, importance_sampling, progressive_stacking, rigl)}
PLAIN, MOMENTUM = sgd(0.1, 0.0, 0.0, nesterov=False), sgd(0.1, momentum=0.9, weight_decay=0.01)
TOLERANCE = 1e-6


@pytest.mark.parametrize("processes", [2, 4])
@pytest.mark.parametrize("optimizer", [PLAIN, MOMENTUM])
@pytest.mark.parametrize("toy", [vectors, tokens])
def test_averaging_after_every_step_is_data_parallelism(toy, optimizer, processes: int) -> None:
    recipe = toy(optimizer=optimizer)
    assert distance(local_sgd.apply(recipe, {"processes": processes, "interval": 1}), recipe) < TOLERANCE


def test_rare_averages_are_those_of_replicas_that_train_by_themselves() -> None:
    def meet(models: list[nn.Module]) -> None:
        for one, other in zip(*(model.parameters() for model in models), strict=True):
            one.data = (one.data + other.data) / 2
            other.data = one.data.clone()

    recipe = vectors(lr_schedule=lambda progress: 1.0)
    twins = two_by_hand(recipe, 8, 3, meet)
    trained = on_all_ranks(local_sgd.apply(recipe, {"interval": 3}), evaluated, 8)[0]
    assert float((trained - flat(twins[0])).abs().max()) < TOLERANCE


def test_replicas_are_alike_after_an_average_and_not_before() -> None:
    seen: list[list[float]] = []

    def look(training) -> None:
        seen.append([float(tensor.double().sum()) for tensor in training.model.state_dict().values()])

    told = on_all_ranks(local_sgd.apply(images(), {"interval": 3}), lambda training: seen, look=look)
    alike = [one == other for one, other in zip(*told, strict=True)]
    assert alike == [False, False, True, False, False, True]


@pytest.mark.parametrize("processes", [2, 3])
def test_communication_falls_by_the_interval(processes: int) -> None:
    size = sum(tensor.nbytes for tensor in mlp(6, CLASSES, width=8, depth=2).parameters())
    once = 2 * (processes - 1) / processes * size
    for interval, rounds in ((1, 12), (4, 3), (5, 2)):
        sent = counted(local_sgd.apply(vectors(), {"processes": processes, "interval": interval}), steps=12)
        assert sent == [{"all_reduce": (pytest.approx(rounds * once), rounds)}] * processes
    sent = counted(ddp.apply(vectors(), {"processes": processes}), steps=12)
    assert sent[0]["all_reduce"].bytes == pytest.approx(12 * once)


def test_each_replica_draws_for_itself_and_tells_nobody() -> None:
    recipe, _ = compose(vectors(), {"importance_sampling": {"start": 0.0}, "local_sgd": {"interval": 6}}, KNOWN)
    assert list(counted(recipe, steps=6)[0]) == ["all_reduce"]


def test_at_first_it_may_average_after_every_step() -> None:
    recipe = local_sgd.apply(vectors(), {"interval": 4, "start": 0.5})
    assert counted(recipe, steps=8)[0]["all_reduce"].calls == 4 + 1


def test_the_mean_is_evaluated_and_training_goes_on_as_it_was() -> None:
    recipe = local_sgd.apply(images(), {"interval": 100})

    def both(training) -> tuple[list[float], list[float]]:
        mean = training.recipe.eval_model(training)
        return [
            [float(tensor.double().sum()) for tensor in model.state_dict().values()] for model in (training.model, mean)
        ]

    (own, mean), (other, same_mean) = on_all_ranks(recipe, both)
    assert own != other
    assert mean == same_mean
    assert mean == pytest.approx([(one + two) / 2 for one, two in zip(own, other, strict=True)], abs=1e-4)
    watched = on_all_ranks(recipe, evaluated, look=evaluated)[0]
    assert watched.equal(on_all_ranks(recipe, evaluated)[0])


def test_averages_of_each_replica_are_averaged() -> None:
    recipe, _ = compose(vectors(), {"ema": {"half_life": 0.3}, "local_sgd": {"interval": 100}}, KNOWN)

    def both(training) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.cat([t.flatten() for t in training.kept["ema"]["tensors"].values()]), evaluated(training)

    (one, mean), (other, _) = on_all_ranks(recipe, both)
    assert torch.allclose(mean.float(), (one + other) / 2, atol=1e-6)


def test_a_model_may_grow() -> None:
    recipe, _ = compose(tokens(), {"progressive_stacking": {}, "local_sgd": {"interval": 2}}, KNOWN)
    one, other = on_all_ranks(recipe, lambda training: (training.generation, evaluated(training).tolist()))
    assert one == other
    assert one[0] > 0


def test_one_process_is_the_baseline() -> None:
    assert same(run(local_sgd.apply(tokens(), {"processes": 1})).model, run(tokens()).model)


def test_what_it_refuses() -> None:
    with pytest.raises(InvalidTechnique, match="interval is 0; it should be 1 or more steps"):
        local_sgd.apply(vectors(), {"interval": 0})
    with pytest.raises(InvalidTechnique, match="start is 2"):
        local_sgd.apply(vectors(), {"start": 2.0})
    with pytest.raises(NotApplicable, match="9 processes share batches of 8 examples"):
        local_sgd.apply(vectors(), {"processes": 9})
    with pytest.raises(Conflict, match="local_sgd replaces the processes"):
        compose(vectors(), {"ddp": {}, "local_sgd": {}}, KNOWN)
    with pytest.raises(Conflict, match="their average keeps all"):
        compose(tokens(), {"rigl": {}, "local_sgd": {}}, KNOWN)
