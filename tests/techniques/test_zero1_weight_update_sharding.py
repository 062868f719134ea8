import pytest
import torch
from torch import nn

from effbench.errors import Conflict, InvalidTechnique
from effbench.holdings import gradient_bytes, optimizer_bytes, parameter_bytes
from effbench.models.network import Network
from effbench.optimizers import clipped_step, sgd
from effbench.recipe import Recipe
from effbench.techniques import compose
from effbench_techniques.model_centric.compression.rigl import rigl
from effbench_techniques.model_centric.curriculum.progressive_stacking import progressive_stacking
from effbench_techniques.model_centric.curriculum.stochastic_depth import stochastic_depth
from effbench_techniques.optimization_centric.averaged_weights.ema import ema
from effbench_techniques.optimization_centric.large_batch.agc import agc
from effbench_techniques.optimization_centric.large_batch.gradient_accumulation import gradient_accumulation
from effbench_techniques.optimization_centric.large_batch.lamb import lamb
from effbench_techniques.optimization_centric.learning_rate.prodigy import prodigy
from effbench_techniques.optimization_centric.learning_rate.schedule_free import schedule_free
from effbench_techniques.optimization_centric.objective.sam import sam
from effbench_techniques.system_centric.model.zero1_weight_update_sharding import zero1_weight_update_sharding
from ranks import distance, evaluated, on_all_ranks
from toy import run, same, tokens, vectors

OTHERS = (
    agc,
    ema,
    gradient_accumulation,
    lamb,
    prodigy,
    progressive_stacking,
    rigl,
    sam,
    schedule_free,
    stochastic_depth,
)
KNOWN = {technique.name: technique for technique in (zero1_weight_update_sharding, *OTHERS)}
SGD = sgd(0.1, momentum=0.9, weight_decay=0.01)
TOLERANCE = 1e-6
WIDE, TENSORS = 8, 6


def off(recipe: Recipe, others: dict[str, dict[str, object]] | None = None, processes: int = 2) -> float:
    others = others or {}
    several = compose(recipe, {**others, "zero1_weight_update_sharding": {"processes": processes}}, KNOWN)[0]
    return distance(several, compose(recipe, others, KNOWN)[0])


def matrices() -> Recipe:
    """Six 8 x 8 matrices, which 2 or 3 ranks can share equally, and Adam."""

    def model() -> nn.Module:
        layers = [nn.Linear(6 if number == 0 else WIDE, WIDE, bias=False) for number in range(TENSORS)]
        layers[0] = nn.Sequential(nn.ConstantPad1d((0, 2), 1.0), nn.Linear(WIDE, WIDE, bias=False))
        return Network(layers[0], layers[1:-1], layers[-1])

    return vectors(model=model, optimizer=lambda network: torch.optim.AdamW(network.parameters(), eps=1e-4))


@pytest.mark.parametrize("processes", [2, 3])
@pytest.mark.parametrize("toy", [vectors, tokens])
def test_several_processes_train_the_weights_of_one(toy, processes: int) -> None:
    assert off(toy(optimizer=SGD, batch_size=lambda progress: 7), processes=processes) < TOLERANCE


def test_adam_and_more_ranks_than_tensors() -> None:
    assert off(matrices()) < TOLERANCE
    single = vectors(model=lambda: nn.Linear(6, 4, bias=False), optimizer=SGD)
    assert off(single, processes=3) < TOLERANCE


def test_the_norm_that_is_clipped_is_that_of_the_whole_gradient() -> None:
    assert off(tokens(optimizer=SGD, update=clipped_step(0.1))) < TOLERANCE


@pytest.mark.parametrize(
    "others",
    [
        {"gradient_accumulation": {"micro_batches": 2}},
        {"stochastic_depth": {"rate": 0.6}},
        {"agc": {}},
        {"ema": {}},
        {"lamb": {"lr": 1e-3}},
    ],
    ids=str,
)
def test_techniques_that_look_at_one_parameter_at_a_time_go_on_as_in_one_process(others) -> None:
    assert off(tokens(optimizer=SGD), others) < TOLERANCE


def test_it_sends_what_a_reduce_scatter_and_an_all_gather_send() -> None:
    size = 4 * TENSORS * WIDE * WIDE
    for ranks in (2, 3):
        recipe = zero1_weight_update_sharding.apply(matrices(), {"processes": ranks})
        for sent in on_all_ranks(recipe, lambda training: training.group.wire.traffic.so_far(), steps=5):
            once = 5 * (ranks - 1) / ranks * size
            assert sent == {"reduce_scatter": (pytest.approx(once), 5), "all_gather": (pytest.approx(once), 5)}


def test_each_rank_holds_its_share_of_gradients_and_state() -> None:
    def held(training) -> tuple[int, int, int]:
        return parameter_bytes(training), gradient_bytes(training), optimizer_bytes(training)

    size = 4 * TENSORS * WIDE * WIDE
    assert on_all_ranks(matrices(), held) == [(size, size, 2 * size + 4 * TENSORS)]
    for ranks in (2, 3):
        recipe = zero1_weight_update_sharding.apply(matrices(), {"processes": ranks})
        counters = 4 * TENSORS // ranks
        assert on_all_ranks(recipe, held) == [(size, size // ranks, 2 * size // ranks + counters)] * ranks


def test_unequal_parameters_are_dealt_so_that_nobody_has_much_more() -> None:
    def owned(training) -> int:
        return sum(p.numel() for group in training.optimizer.param_groups for p in group["params"])

    sizes = [p.numel() for p in tokens().model().parameters()]
    found = on_all_ranks(zero1_weight_update_sharding.apply(tokens(), {"processes": 3}), owned)
    assert sum(found) == sum(sizes)
    assert max(found) - min(found) <= max(sizes)


def test_all_ranks_have_the_same_weights() -> None:
    one, other = on_all_ranks(
        zero1_weight_update_sharding.apply(tokens(), {}), lambda training: evaluated(training).tolist()
    )
    assert one == other


def test_one_process_is_the_baseline() -> None:
    ours = zero1_weight_update_sharding.apply(tokens(), {"processes": 1})
    assert same(run(ours).model, run(tokens()).model)


def test_it_refuses_what_would_let_replicas_part() -> None:
    for other, why in (
        ("sam", "before they are averaged"),
        ("rigl", "the gradients of all parameters"),
        ("schedule_free", "other weights than it trains"),
    ):
        with pytest.raises(Conflict, match=f"zero1_weight_update_sharding and {other} exclude each other: .*{why}"):
            compose(tokens(), {"zero1_weight_update_sharding": {}, other: {}}, KNOWN)
    with pytest.raises(
        Conflict, match=r"deals parameters out to processes, and the update of prodigy \(scope 'model'\)"
    ):
        compose(tokens(), {"zero1_weight_update_sharding": {}, "prodigy": {}}, KNOWN)
    growing = compose(tokens(), {"zero1_weight_update_sharding": {}, "progressive_stacking": {}}, KNOWN)[0]
    with pytest.raises(
        Conflict, match="zero1_weight_update_sharding deals parameters out once, and progressive_stacking"
    ):
        on_all_ranks(growing, lambda training: None)
    with pytest.raises(InvalidTechnique, match="zero1_weight_update_sharding: processes is 0"):
        zero1_weight_update_sharding.apply(vectors(), {"processes": 0})
