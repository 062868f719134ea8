import pytest
from torch.distributed.tensor import DTensor

from effbench.errors import Conflict, InvalidTechnique, NotApplicable
from effbench.optimizers import clipped_step, sgd
from effbench.recipe import Recipe
from effbench.techniques import compose
from effbench_techniques.data_centric.regularization.mixup import mixup
from effbench_techniques.model_centric.curriculum.progressive_stacking import progressive_stacking
from effbench_techniques.model_centric.curriculum.stochastic_depth import stochastic_depth
from effbench_techniques.optimization_centric.averaged_weights.ema import ema
from effbench_techniques.system_centric.model.activation_checkpointing import activation_checkpointing
from effbench_techniques.system_centric.model.ddp import ddp
from effbench_techniques.system_centric.model.fsdp import fsdp
from ranks import counted, distance, evaluated, on_all_ranks
from toy import run, same, tokens, vectors

KNOWN = {
    technique.name: technique
    for technique in (fsdp, ddp, ema, mixup, progressive_stacking, stochastic_depth, activation_checkpointing)
}
SGD = sgd(0.1, momentum=0.9, weight_decay=0.01)
TOLERANCE = 1e-6


def off(recipe: Recipe, others: dict[str, dict[str, object]] | None = None, processes: int = 2) -> float:
    others = others or {}
    several = compose(recipe, {**others, "fsdp": {"processes": processes}}, KNOWN)[0]
    return distance(several, compose(recipe, others, KNOWN)[0])


@pytest.mark.parametrize(("toy", "processes"), [(vectors, 2), (tokens, 2), (tokens, 3)])
def test_several_processes_train_the_weights_of_one(toy, processes: int) -> None:
    assert off(toy(optimizer=SGD), processes=processes) < TOLERANCE


def test_clipping_mixing_dropping_and_recomputing_go_on_as_in_one_process() -> None:
    clipped = vectors(optimizer=SGD, update=clipped_step(0.1), batch_size=lambda progress: 7)
    assert off(clipped, {"mixup": {}}) < TOLERANCE
    both = {"activation_checkpointing": {}, "stochastic_depth": {"rate": 0.6}}
    assert off(tokens(optimizer=SGD), both) < TOLERANCE


def shares(training) -> tuple[int, int, int, bool]:
    """Weights here, weights in all, numbers in the optimizer's state here, whether the evaluated model is plain."""
    weights = list(training.model.parameters())
    assert all(isinstance(weight, DTensor) for weight in weights)
    moments = [state["exp_avg"].to_local() for state in training.optimizer.state.values()]
    plain = not any(
        isinstance(weight, DTensor) for weight in training.recipe.eval_model(training).state_dict().values()
    )
    return (
        sum(weight.to_local().numel() for weight in weights),
        sum(weight.numel() for weight in weights),
        sum(moment.numel() for moment in moments),
        plain,
    )


def test_each_process_keeps_its_share_of_weights_and_optimizer_state() -> None:
    one, other = on_all_ranks(fsdp.apply(tokens(), {}), shares)
    whole = sum(weight.numel() for weight in tokens().model().parameters())
    assert one[1] == other[1] == whole
    assert one[0] + other[0] == whole
    assert one[0] == pytest.approx(whole / 2, rel=0.05)
    assert (one[2], other[2]) == (one[0], other[0])
    assert one[3]
    assert other[3]


def test_each_block_is_gathered_when_it_is_its_turn_forward_and_backward_and_the_rest_once() -> None:
    steps, blocks = 3, 2
    for sent in counted(fsdp.apply(tokens(), {}), steps):
        assert sent["all_gather"].calls == steps * (2 * blocks + 1)
        assert sent["reduce_scatter"].calls == steps * (blocks + 1)


def test_the_evaluated_model_is_whole_on_every_rank() -> None:
    one, other = on_all_ranks(fsdp.apply(tokens(), {}), lambda training: evaluated(training).tolist())
    assert one == other


def test_looking_at_the_model_on_the_way_changes_nothing() -> None:
    recipe = fsdp.apply(tokens(), {})
    looked = on_all_ranks(recipe, lambda training: evaluated(training).tolist(), look=recipe.eval_model)
    assert looked == on_all_ranks(recipe, lambda training: evaluated(training).tolist())


def test_one_process_is_the_baseline() -> None:
    assert same(run(fsdp.apply(tokens(), {"processes": 1})).model, run(tokens()).model)


def test_it_refuses_what_cannot_be_sharded() -> None:
    for other, why in (
        ("progressive_stacking", "may replace them"),
        ("ema", "would copy it"),
        ("ddp", "the processes"),
    ):
        with pytest.raises(Conflict, match=f"fsdp .*{other}.*{why}|fsdp .*{why}.*{other}"):
            compose(tokens(), {"fsdp": {}, other: {}}, KNOWN)
    with pytest.raises(InvalidTechnique, match="fsdp: processes is 0"):
        fsdp.apply(vectors(), {"processes": 0})
    with pytest.raises(NotApplicable, match="9 processes share batches of 8"):
        fsdp.apply(vectors(), {"processes": 9})
