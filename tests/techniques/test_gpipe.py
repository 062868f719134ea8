import pytest
import torch

from effbench.errors import Conflict, InvalidTechnique, NotApplicable
from effbench.techniques import compose
from effbench_techniques.data_centric.sampling.selective_backprop import selective_backprop
from effbench_techniques.model_centric.curriculum.progressive_stacking import progressive_stacking
from effbench_techniques.optimization_centric.averaged_weights.ema import ema
from effbench_techniques.optimization_centric.large_batch.agc import agc
from effbench_techniques.optimization_centric.large_batch.gradient_accumulation import gradient_accumulation
from effbench_techniques.optimization_centric.objective.sam import sam
from effbench_techniques.system_centric.model.ddp import ddp
from effbench_techniques.system_centric.model.gpipe import again, gpipe
from effbench_techniques.system_centric.optimization.bf16_autocast import bf16_autocast
from pipelines import TOLERANCE, accumulated, bytes_of_steps, deep, gap, losses, whole
from ranks import on_all_ranks
from toy import images, run, same, texts, vectors


@pytest.mark.parametrize(
    ("processes", "micro_batches", "size", "recompute"), [(2, 4, 8, True), (2, 3, 7, False), (4, 2, 8, True)]
)
def test_several_processes_train_the_weights_of_one(processes, micro_batches, size, recompute) -> None:
    recipe = deep(batch_size=lambda progress: size)  # tied weights at both ends, a clipped gradient, ignored targets
    options = {"processes": processes, "micro_batches": micro_batches, "recompute": recompute}
    assert gap(whole(gpipe, recipe, options), recipe) < TOLERANCE


def test_batch_norm_sees_what_it_sees_when_gradients_are_accumulated() -> None:
    for recompute in (True, False):
        found = whole(gpipe, images(), {"processes": 2, "micro_batches": 2, "recompute": recompute})
        assert gap(found, accumulated(images(), 2)) < TOLERANCE  # running statistics and their counters as well


def test_techniques_that_look_forward_or_average_weights_go_on_as_in_one_process() -> None:
    recipe = deep()
    known = {"selective_backprop": selective_backprop, "ema": ema}
    alone, _ = compose(recipe, {name: {} for name in known}, known)
    several, _ = compose(recipe, {**{name: {} for name in known}, "gpipe": {}}, {**known, "gpipe": gpipe})
    ours, theirs = (
        on_all_ranks(each, lambda training: training.recipe.eval_model(training).state_dict())[0]
        for each in (several, alone)
    )
    assert max(float((ours[name] - theirs[name]).abs().max()) for name in theirs) < TOLERANCE


def test_all_processes_know_the_losses() -> None:
    one, other = losses(gpipe.apply(deep(), {}))
    assert one == other == pytest.approx(run(deep()).losses.tolist(), abs=1e-5)


def test_each_process_has_its_blocks_alone_and_all_together_have_all() -> None:
    def told(training) -> tuple[int, int, set[str]]:
        moments = [state["momentum_buffer"] for state in training.optimizer.state.values()]
        weights = {name for name, _ in training.model.named_parameters()}
        return sum(p.numel() for p in training.model.parameters()), sum(m.numel() for m in moments), weights

    first_rank, last_rank = on_all_ranks(gpipe.apply(deep(), {}), told)
    full = run(deep()).model
    tied = full.embed.tokens.weight.numel()
    assert first_rank[0] + last_rank[0] == sum(p.numel() for p in full.parameters()) + tied
    assert (first_rank[1], last_rank[1]) == (first_rank[0], last_rank[0])
    assert first_rank[2] == {n for n in full.state_dict() if n.startswith(("blocks.2", "blocks.3", "head"))}
    assert last_rank[2] == {n for n in full.state_dict() if n.startswith(("embed", "blocks.0", "blocks.1"))}


def test_it_sends_features_slopes_shared_gradients_and_losses_and_nothing_else() -> None:
    features, tied, form, lost = 8 * 16 * 8 * 4, 13 * 8 * 4, 10 * 8, 8 * 4
    has_head, has_embedding = bytes_of_steps(gpipe.apply(deep(), {"micro_batches": 4}), steps=3)
    whole_norm = 2 * 1 / 2 * 8  # of an all-reduced float64, for clipping
    assert has_head == 3 * (features + tied + lost + whole_norm)
    assert has_embedding == 3 * (features + tied + whole_norm) + form


def test_recomputing_keeps_the_inputs_of_a_stage_alone() -> None:
    chunk = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(3)))
    kept: list[int] = []

    def pack(tensor):
        kept.append(tensor.numel())
        return tensor

    inputs = torch.ones(16, 8, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        plain = chunk(inputs)
        without, kept[:] = sum(kept), []
        recomputed, _ = again(chunk, inputs)
    assert sum(kept) == inputs.numel()
    assert without > 3 * inputs.numel()
    assert torch.equal(plain, recomputed)


def test_one_process_is_the_baseline() -> None:
    assert same(run(gpipe.apply(deep(), {"processes": 1})).model, run(deep()).model)


def test_it_refuses_models_that_cannot_be_cut() -> None:
    with pytest.raises(NotApplicable, match="gpipe cuts a model between its blocks, and this model has none"):
        gpipe.apply(texts(), {})
    with pytest.raises(NotApplicable, match="into 3 stages, and it has 1"):
        gpipe.apply(vectors(), {"processes": 3})
    for options in ({"processes": 0}, {"micro_batches": 0}):
        with pytest.raises(InvalidTechnique, match=f"gpipe: {next(iter(options))} is 0"):
            gpipe.apply(deep(), options)


@pytest.mark.parametrize("other", [sam, gradient_accumulation, progressive_stacking, bf16_autocast, ddp, agc])
def test_it_refuses_what_wants_the_gradient_or_the_model_otherwise(other) -> None:
    with pytest.raises(Conflict, match=f"gpipe.*{other.name}|{other.name}.*gpipe"):
        compose(deep(), {"gpipe": {}, other.name: {}}, {"gpipe": gpipe, other.name: other})
