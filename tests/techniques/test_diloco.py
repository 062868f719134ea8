import pytest
import torch
from torch import nn

from effbench.errors import Conflict, InvalidTechnique
from effbench.models import mlp
from effbench.optimizers import sgd
from effbench.techniques import compose
from effbench.train import start
from effbench_techniques.model_centric.curriculum.progressive_stacking import progressive_stacking
from effbench_techniques.optimization_centric.averaged_weights.ema import ema
from effbench_techniques.optimization_centric.averaged_weights.lookahead import lookahead
from effbench_techniques.system_centric.optimization.diloco import diloco
from effbench_techniques.system_centric.optimization.local_sgd import local_sgd
from ranks import counted, distance, evaluated, on_all_ranks, two_by_hand
from toy import CLASSES, flat, run, same, tokens, vectors

KNOWN = {each.name: each for each in (diloco, ema, lookahead, progressive_stacking)}
SGD = sgd(0.1, momentum=0.9, weight_decay=0.01)
AVERAGING = {"outer_lr": 1.0, "momentum": 0.0}
TOLERANCE = 1e-6


@pytest.mark.parametrize("processes", [2, 4])
def test_outer_steps_that_go_all_the_way_are_averages(processes: int) -> None:
    recipe = tokens(optimizer=SGD)
    every = {"processes": processes, "interval": 1}
    assert distance(diloco.apply(recipe, {**every, **AVERAGING}), recipe) < TOLERANCE
    rarely = {"processes": processes, "interval": 3}
    assert distance(diloco.apply(recipe, {**rarely, **AVERAGING}), local_sgd.apply(recipe, rarely)) < TOLERANCE


def test_outer_steps_are_those_of_nesterov() -> None:
    """Against a twin in one process: two replicas, and torch's SGD, whose gradient is the mean of their ways."""
    recipe = vectors(lr_schedule=lambda progress: 1.0)
    common = mlp(6, CLASSES, width=8, depth=2)
    outer = torch.optim.SGD(common.parameters(), lr=0.7, momentum=0.9, nesterov=True)

    def meet(models: list[nn.Module]) -> None:
        for weight, one, other in zip(common.parameters(), *(model.parameters() for model in models), strict=True):
            weight.grad = weight.data - (one.data + other.data) / 2
        outer.step()
        for weight, one, other in zip(common.parameters(), *(model.parameters() for model in models), strict=True):
            one.data, other.data = weight.data.clone(), weight.data.clone()

    common.load_state_dict(start(recipe, 0).model.state_dict())
    two_by_hand(recipe, 8, 3, meet)
    trained = on_all_ranks(diloco.apply(recipe, {"interval": 3}), evaluated, 8)[0]
    assert float((trained - flat(common)).abs().max()) < TOLERANCE


def test_one_process_without_momentum_looks_ahead() -> None:
    alone = diloco.apply(vectors(), {"processes": 1, "interval": 3, "outer_lr": 0.5, "momentum": 0.0})
    assert distance(alone, lookahead.apply(vectors(), {"alpha": 0.5, "interval": 3}), steps=9) < TOLERANCE


def test_replicas_are_alike_after_an_outer_step_and_not_before() -> None:
    seen: list[list[float]] = []
    recipe = diloco.apply(vectors(), {"interval": 3})
    told = on_all_ranks(recipe, lambda training: seen, look=lambda training: seen.append(flat(training.model).tolist()))
    assert [one == other for one, other in zip(*told, strict=True)] == [False, False, True, False, False, True]


def test_communication_falls_by_the_interval() -> None:
    size = sum(tensor.nbytes for tensor in mlp(6, CLASSES, width=8, depth=2).parameters())
    for processes in (2, 3):
        sent = counted(diloco.apply(vectors(), {"processes": processes, "interval": 5}), steps=12)
        assert sent == [{"all_reduce": (pytest.approx(2 * 2 * (processes - 1) / processes * size), 2)}] * processes


def test_looking_changes_nothing_and_all_ranks_see_the_same() -> None:
    recipe = diloco.apply(vectors(), {"interval": 4})
    one, other = on_all_ranks(recipe, evaluated, look=evaluated)
    assert one.equal(other)
    assert one.equal(on_all_ranks(recipe, evaluated)[0])


def test_a_model_may_grow() -> None:
    recipe, _ = compose(tokens(), {"progressive_stacking": {}, "diloco": {"interval": 2}}, KNOWN)
    one, other = on_all_ranks(recipe, lambda training: (training.generation, evaluated(training).tolist()))
    assert one == other
    assert one[0] > 0


def test_neutral_options_are_the_baseline() -> None:
    assert same(run(diloco.apply(tokens(), {"processes": 1, **AVERAGING})).model, run(tokens()).model)


def test_what_it_refuses() -> None:
    with pytest.raises(InvalidTechnique, match="interval is 0; it should be 1 or more steps"):
        diloco.apply(vectors(), {"interval": 0})
    with pytest.raises(InvalidTechnique, match="outer_lr is inf"):
        diloco.apply(vectors(), {"outer_lr": float("inf")})
    with pytest.raises(InvalidTechnique, match=r"outer_lr is 0\.7 and momentum 1\.0"):
        diloco.apply(vectors(), {"momentum": 1.0})
    with pytest.raises(Conflict, match="each says which average of the weights is evaluated"):
        compose(vectors(), {"ema": {}, "diloco": {}}, KNOWN)
