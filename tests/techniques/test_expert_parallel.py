import pytest
import torch
from torch import nn

from effbench.distributed.launch import run_ranks
from effbench.distributed.spread_experts import Axis, exchanged
from effbench.errors import Conflict, InvalidTechnique, NotApplicable
from effbench.models import gpt, switch_gpt
from effbench.models.experts import Experts, balanced, most_probable
from effbench.recipe import Recipe
from effbench.techniques import compose
from effbench.terms import backward
from effbench_techniques.data_centric.sampling.selective_backprop import selective_backprop
from effbench_techniques.model_centric.architecture.moe_gshard_top2 import moe_gshard_top2
from effbench_techniques.model_centric.architecture.moe_switch import moe_switch
from effbench_techniques.model_centric.curriculum.progressive_layer_dropping import progressive_layer_dropping
from effbench_techniques.optimization_centric.averaged_weights.ema import ema
from effbench_techniques.optimization_centric.large_batch.gradient_accumulation import gradient_accumulation
from effbench_techniques.optimization_centric.objective.sam import sam
from effbench_techniques.system_centric.model.activation_checkpointing import activation_checkpointing
from effbench_techniques.system_centric.model.ddp import ddp
from effbench_techniques.system_centric.model.expert_parallel import expert_parallel
from pipelines import TOLERANCE, deep
from ranks import on_all_ranks
from toy import VOCABULARY, images, run, same

KNOWN = {
    each.name: each
    for each in (
        *(expert_parallel, moe_switch, moe_gshard_top2, ema, gradient_accumulation, activation_checkpointing),
        *(sam, ddp, selective_backprop, progressive_layer_dropping),
    )
}


def shallow(**changes: object) -> Recipe:
    return deep(2, **{"batch_size": lambda progress: 7, **changes})


def off(recipe: Recipe, others: dict[str, dict[str, object]], processes: int = 2) -> float:
    """How far weights are from those of one process that trains the same mixture."""

    def told(training) -> dict[str, torch.Tensor]:
        return training.recipe.eval_model(training).state_dict()

    several, _ = compose(recipe, {**others, "expert_parallel": {"processes": processes}}, KNOWN)
    alone, _ = compose(recipe, others, KNOWN)
    found, expected = on_all_ranks(several, told)[0], on_all_ranks(alone, told)[0]
    assert found.keys() == expected.keys()
    return max(float((found[name] - expected[name]).abs().max()) for name in expected)


@pytest.mark.parametrize("processes", [2, 4])
def test_several_processes_train_the_mixture_of_one(processes: int) -> None:
    """Shares of 4 and 3 examples, experts without room for all, a loss of balance that is felt, a clipped gradient."""
    assert off(shallow(), {"moe_switch": {"capacity": 0.6, "balance": 1.0}}, processes) < TOLERANCE


def test_experts_that_are_not_shared_out_evenly_and_tokens_that_ask_two() -> None:
    assert off(shallow(), {"moe_switch": {"experts": 3}}) < TOLERANCE
    assert off(shallow(), {"moe_gshard_top2": {"capacity": 0.7}}, processes=3) < TOLERANCE


def test_a_model_that_has_experts_needs_no_other_technique() -> None:
    def model() -> nn.Module:
        return switch_gpt(VOCABULARY, length=16, width=8, depth=2, heads=2)

    assert off(shallow(model=model, gradient=balanced(backward, 0.5)), {}) < TOLERANCE


def test_one_without_gets_those_of_moe_switch() -> None:
    def told(training) -> dict[str, torch.Tensor]:
        return training.recipe.eval_model(training).state_dict()

    found = on_all_ranks(expert_parallel.apply(shallow(), {}), told)[0]
    expected = run(moe_switch.apply(shallow(), {})).model.state_dict()
    assert found.keys() == expected.keys()
    assert max(float((found[name] - expected[name]).abs().max()) for name in expected) < TOLERANCE


def test_micro_batches_recomputation_and_averages_go_on_as_in_one_process() -> None:
    plenty = {
        "moe_switch": {"capacity": 100.0, "balance": 0.0}
    }  # micro-batches are cut from shares, not from the whole
    even = shallow(batch_size=lambda progress: 8)
    assert off(even, {**plenty, "gradient_accumulation": {"micro_batches": 2}}) < TOLERANCE
    assert off(even, {"moe_switch": {}, "activation_checkpointing": {}, "ema": {}}) < TOLERANCE


def test_layers_that_are_dropped_rest_as_in_one_process() -> None:
    assert off(shallow(), {"moe_switch": {}, "progressive_layer_dropping": {"theta": 0.3}}) < TOLERANCE


def test_each_process_has_its_experts_and_all_else() -> None:
    def told(training) -> tuple[int, float, list[str]]:
        weights = list(training.model.parameters())
        layer = training.model.blocks[0].feed_forward
        kinds = [type(expert).__name__ for expert in layer.first]
        return sum(p.numel() for p in weights), sum(p.numel() / training.forward.copies(p) for p in weights), kinds

    one, other = on_all_ranks(expert_parallel.apply(shallow(), {}), told)
    everything = sum(p.numel() for p in run(moe_switch.apply(shallow(), {})).model.parameters())
    assert one[1] + other[1] == pytest.approx(everything)
    assert one[0] < 0.7 * everything
    assert one[2] == ["Linear", "Linear", "Elsewhere", "Elsewhere"]
    assert other[2] == ["Elsewhere", "Elsewhere", "Linear", "Linear"]


def test_only_tokens_whose_expert_is_elsewhere_travel_forth_and_back_forward_and_backward() -> None:
    travellers: list[int] = []

    def counting(chances, capacity):
        routing = most_probable(chances, capacity)
        examples = torch.arange(len(chances)) // 16
        home, owner = examples % 2, torch.arange(4) // 2
        travellers.append(int((routing.sent & (owner != home[:, None])).sum()))
        return routing

    def model() -> nn.Module:
        made = gpt(VOCABULARY, length=16, width=8, depth=2, heads=2)
        made.blocks[0].feed_forward = Experts(made.blocks[0].feed_forward, 4, counting, 1.25)
        return made

    def told(training) -> tuple[float, int]:
        sent = training.group.wire.traffic.sent_bytes("all_to_all")
        return sent, sum(travellers)

    (one, count), (other, same_count) = on_all_ranks(expert_parallel.apply(shallow(model=model), {}), told, steps=3)
    assert count == same_count > 0
    assert one + other == pytest.approx(4 * count * 8 * 4)


def test_tokens_are_conserved_and_slopes_go_the_same_way_back() -> None:
    leaving = [[1, 2], [0, 3]]  # from each process to each

    def body(group) -> tuple[list[float], list[float]]:
        axis = Axis((0, 1), group.rank)
        rows = torch.arange(3.0)[:, None] + 10.0 * group.rank
        rows.requires_grad_()
        arrived = exchanged(rows, axis, leaving[group.rank], [leaving[0][group.rank], leaving[1][group.rank]])
        (arrived * (1.0 + group.rank)).sum().backward()
        return arrived.flatten().tolist(), rows.grad.flatten().tolist()

    assert run_ranks(2, body) == ([0.0], [1.0, 2.0, 2.0])


def test_one_process_is_the_baseline() -> None:
    assert same(run(expert_parallel.apply(shallow(), {"processes": 1})).model, run(shallow()).model)


def test_it_refuses_what_it_cannot_do() -> None:
    with pytest.raises(NotApplicable, match="this model has none"):
        expert_parallel.apply(images(), {})
    with pytest.raises(NotApplicable, match="5 processes share 4 experts"):
        expert_parallel.apply(shallow(), {"processes": 5})
    with pytest.raises(InvalidTechnique, match="expert_parallel: processes is 0"):
        expert_parallel.apply(shallow(), {"processes": 0})

    def dropping() -> nn.Module:
        made = gpt(VOCABULARY, length=16, width=8, depth=2, heads=2)
        made.embed = nn.Sequential(made.embed, nn.Dropout(0.5))
        return made

    by_chance, _ = compose(shallow(model=dropping), {"moe_gshard_top2": {}, "expert_parallel": {}}, KNOWN)
    with pytest.raises(NotApplicable, match="have drawn unlike numbers"):  # for shares of 4 and 3 examples
        on_all_ranks(by_chance, lambda training: None)
    assert on_all_ranks(expert_parallel.apply(shallow(model=dropping), {}), lambda training: training.step) == [6, 6]

    def cropping(batch, training):
        return batch if training.group.rank else batch.replace(inputs=batch.inputs[:, :8], targets=batch.targets[:, :8])

    with pytest.raises(NotApplicable, match="texts differ in length"):
        on_all_ranks(expert_parallel.apply(shallow(transform=cropping), {}), lambda training: None)
    for other in (sam, ddp, selective_backprop):
        with pytest.raises(Conflict, match=f"expert_parallel.*{other.name}|{other.name}.*expert_parallel"):
            compose(shallow(), {"expert_parallel": {}, other.name: {}}, KNOWN)
