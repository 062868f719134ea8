"""How far an optimizer may look when it steps a weight, where each process has a part of a model."""

import dataclasses

import pytest
import torch
from torch import nn, optim

from effbench import Recipe, laws, technique
from effbench.distributed.scopes import ELEMENTWISE, scope_of
from effbench.errors import Conflict, InvalidTechnique
from effbench.laws.alone import Case
from effbench.optimizers import WeightByWeight
from effbench.techniques import compose
from effbench.toys import TOYS
from effbench_techniques.optimization_centric.large_batch.lamb import lamb
from effbench_techniques.optimization_centric.large_batch.lars import lars
from effbench_techniques.optimization_centric.learning_rate.muon import muon
from effbench_techniques.optimization_centric.learning_rate.one_cycle import one_cycle
from effbench_techniques.optimization_centric.learning_rate.rate_factor import rate_factor
from effbench_techniques.optimization_centric.learning_rate.sgd_nesterov import sgd_nesterov
from effbench_techniques.optimization_centric.learning_rate.soap import soap
from effbench_techniques.system_centric.model.expert_parallel import expert_parallel
from effbench_techniques.system_centric.model.fsdp import fsdp
from effbench_techniques.system_centric.model.gpipe import gpipe
from effbench_techniques.system_centric.model.hybrid_3d import hybrid_3d
from effbench_techniques.system_centric.model.one_f_one_b import one_f_one_b
from effbench_techniques.system_centric.model.pipedream import pipedream
from effbench_techniques.system_centric.model.tensor_parallel import tensor_parallel
from effbench_techniques.system_centric.model.zero1_weight_update_sharding import zero1_weight_update_sharding
from pipelines import TOLERANCE, deep, gap, whole
from toy import run, tokens

LEAF = "optimization_centric/learning_rate"
CARD = {"paper": "Somebody, Some Optimizer, arXiv:0000.00000", "claim": "none"}
PARTS = [fsdp, tensor_parallel, gpipe, one_f_one_b, hybrid_3d, expert_parallel, zero1_weight_update_sharding]


def by_its_size(weight: nn.Parameter, state: dict[str, object], group: dict[str, float]) -> None:
    """Step along the gradient of the whole tensor, at a length of its own."""
    weight.sub_(weight.grad / (0.1 + weight.grad.norm()), alpha=group["lr"])


def by_itself(weight: nn.Parameter, state: dict[str, object], group: dict[str, float]) -> None:
    """Step each number as if there were no other."""
    weight.sub_(weight.grad / (0.1 + weight.grad.abs()), alpha=group["lr"])


def stranger(rule, **card: object):
    """A technique of somebody else, with an optimizer of its own."""

    @technique(LEAF, **CARD, **card)
    def strange(recipe: Recipe) -> Recipe:
        """Step by a rule that nobody has heard of."""

        def build(model: nn.Module) -> optim.Optimizer:
            return WeightByWeight([{"params": list(model.parameters())}], rule, lr=0.1)

        return recipe.swap(optimizer=build)

    return strange


def alone(other) -> Recipe:
    """What one process trains with another technique."""
    return compose(deep(), {other.name: {}}, {other.name: other})[0]


def together(parts, other, **options: object):
    """What is evaluated when several processes train with another technique."""
    return whole(parts, deep(), options, {other.name: other})


@pytest.mark.parametrize("parts", [fsdp, tensor_parallel, hybrid_3d], ids=lambda each: each.name)
def test_a_strangers_optimizer_that_says_that_it_is_elementwise_trains_the_weights_of_one_process(parts) -> None:
    options = {"data": 1, "tensor": 2} if parts is hybrid_3d else {}
    strange = stranger(by_itself, scope="element")
    assert gap(together(parts, strange, **options), alone(strange)) < TOLERANCE


@pytest.mark.parametrize("other", [one_cycle, rate_factor, sgd_nesterov], ids=lambda each: each.name)
def test_so_do_ours(other) -> None:
    assert gap(together(tensor_parallel, other), alone(other)) < TOLERANCE


@pytest.mark.parametrize("parts", [gpipe, zero1_weight_update_sharding], ids=lambda each: each.name)
def test_one_that_looks_at_whole_tensors_goes_where_tensors_are_whole(parts) -> None:
    strange = stranger(by_its_size, scope="tensor")
    assert gap(together(parts, strange), alone(strange)) < TOLERANCE


@pytest.mark.parametrize("other", [lamb, lars, muon, soap, stranger(by_its_size, scope="tensor")])
def test_it_is_refused_by_name_where_they_are_not(other) -> None:
    for parts, options in ((tensor_parallel, {}), (hybrid_3d, {"pipeline": 1, "tensor": 2})):
        with pytest.raises(Conflict, match=f"{parts.name} cuts matrices into parts, and the update of {other.name} "):
            together(parts, other, **options)
    with pytest.raises(
        Conflict, match=f"fsdp leaves each process a share of every tensor, and the update of {other.name} "
    ):
        together(fsdp, other)


@pytest.mark.parametrize("parts", [*PARTS, pipedream], ids=lambda each: each.name)
def test_one_that_says_nothing_is_refused_by_name_wherever_a_process_has_a_part_of_the_model(parts) -> None:
    with pytest.raises(Conflict, match=rf"{parts.name} .* the update of strange \(scope 'model'\) may look at"):
        together(parts, stranger(by_itself))


def test_the_optimizer_of_a_baseline_is_known_by_its_kind() -> None:
    def build(kind) -> Recipe:
        return tokens(optimizer=lambda model: kind(model.parameters(), lr=0.01))

    class Own(optim.SGD):
        pass

    for parts in PARTS:
        with pytest.raises(Conflict, match=r"the baseline's Own \(scope 'model'\)"):
            parts.apply(build(Own), {})
    with pytest.raises(Conflict, match=r"cuts matrices into parts, and the baseline's Adafactor \(scope 'tensor'\)"):
        tensor_parallel.apply(build(optim.Adafactor), {})
    assert zero1_weight_update_sharding.apply(build(optim.Adafactor), {}).processes == 2


@pytest.mark.parametrize("kind", sorted(ELEMENTWISE, key=lambda kind: kind.__name__))
def test_kinds_of_torch_that_are_said_to_be_elementwise_are(kind) -> None:
    def trained(positions: slice) -> torch.Tensor:
        random = torch.Generator().manual_seed(0)
        weight = nn.Parameter(torch.randn(4, 3, generator=random)[positions])
        optimizer = kind([weight], lr=0.1, weight_decay=0.1)
        for _ in range(5):
            weight.grad = torch.randn(4, 3, generator=random)[positions]
            optimizer.step()
        return weight.detach()

    assert torch.equal(trained(slice(4))[1:3], trained(slice(1, 3)))
    assert scope_of(kind) == "element"


# --- what a technique states --------------------------------------------------------------------------------------


def test_a_scope_is_one_of_three() -> None:
    with pytest.raises(InvalidTechnique, match="scope = 'row': it should be one of 'element', 'tensor', 'model'"):
        stranger(by_itself, scope="row")


def test_a_recipe_knows_the_scope_of_each_author() -> None:
    recipe = alone(stranger(by_itself, scope="element"))
    assert recipe.scopes == {"strange": "element"}
    assert alone(muon).scopes == {"muon": "tensor"}


@pytest.mark.parametrize("toy", ["patches", "text"])
def test_who_looks_farther_than_the_scope_says_is_found(toy: str) -> None:
    liar = stranger(by_its_size, scope="element")
    case = Case.of(liar, {}, TOYS[toy]())
    assert "its scope is 'element', and yet" in laws.LAWS["scoped"](case)
    honest = dataclasses.replace(case, technique=dataclasses.replace(liar, scope="tensor"))
    assert laws.LAWS["scoped"](honest) == ""


def test_who_looks_at_other_tensors_is_found() -> None:
    @technique(LEAF, **CARD, scope="tensor")
    def whole_model(recipe: Recipe) -> Recipe:
        """Bring the whole gradient to a length of its own."""

        def update(training) -> None:
            nn.utils.clip_grad_norm_(training.model.parameters(), 0.1)
            recipe.update(training)

        return recipe.wrap(update=update)

    case = Case.of(whole_model, {}, TOYS["vectors"]())
    assert "its scope is 'tensor', and yet" in laws.LAWS["scoped"](case)
    silent = dataclasses.replace(case, technique=dataclasses.replace(whole_model, scope="model"))
    assert laws.LAWS["scoped"](silent) is None


def test_a_schedule_has_no_scope_to_keep() -> None:
    assert laws.LAWS["scoped"](Case.of(one_cycle, {}, TOYS["vectors"]())) == ""
    assert run(alone(one_cycle)).step == 6
