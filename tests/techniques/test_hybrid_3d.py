import pytest
import torch

from effbench.errors import Conflict, InvalidTechnique, NotApplicable
from effbench.techniques import compose
from effbench_techniques.data_centric.sampling.selective_backprop import selective_backprop
from effbench_techniques.optimization_centric.averaged_weights.ema import ema
from effbench_techniques.optimization_centric.learning_rate.muon import muon
from effbench_techniques.system_centric.model.hybrid_3d import hybrid_3d
from effbench_techniques.system_centric.model.tensor_parallel import tensor_parallel
from pipelines import TOLERANCE, bytes_of_steps, deep, gap, whole
from ranks import on_all_ranks
from toy import images, run, same, texts, vectors

GRIDS = [
    {"data": 2, "pipeline": 2, "tensor": 1},
    {"data": 2, "pipeline": 1, "tensor": 2},
    {"data": 1, "pipeline": 2, "tensor": 2},
]


@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: "x".join(map(str, grid.values())))
def test_a_grid_of_processes_trains_the_weights_of_one(grid) -> None:
    """Shares of 4 and 3 examples, tied weights at both ends of the pipeline, a gradient clipped by its whole norm."""
    recipe = deep(batch_size=lambda progress: 7)
    assert gap(whole(hybrid_3d, recipe, {**grid, "micro_batches": 2}), recipe) < TOLERANCE


def test_all_three_at_once() -> None:
    recipe = deep()
    assert (
        gap(whole(hybrid_3d, recipe, {"data": 2, "pipeline": 2, "tensor": 2, "micro_batches": 2}), recipe) < TOLERANCE
    )


def test_other_techniques_go_on_as_in_one_process() -> None:
    others = {"selective_backprop": selective_backprop, "ema": ema}
    alone, _ = compose(deep(), {name: {} for name in others}, others)
    expected = on_all_ranks(alone, lambda training: training.recipe.eval_model(training).state_dict())[0]
    found = whole(hybrid_3d, deep(), {}, others)
    assert max(float((found[name] - expected[name]).abs().max()) for name in expected) < TOLERANCE


def test_the_parts_in_the_grid_are_the_model_once_for_each_share_of_the_data() -> None:
    def told(training) -> tuple[int, float]:
        weights = list(training.model.parameters())
        return sum(p.numel() for p in weights), sum(p.numel() / training.forward.copies(p) for p in weights)

    everything = sum(p.numel() for p in run(deep()).model.parameters())
    for grid in GRIDS:
        parts = on_all_ranks(hybrid_3d.apply(deep(), grid), told, steps=1)
        assert sum(counted for _, counted in parts) == pytest.approx(everything)
        assert all(held < everything for held, _ in parts)


def test_the_data_axis_sends_its_gradients_once_and_the_pipeline_half_the_features() -> None:
    """Two stages, of which the last has the head, for two shares."""
    grid = {"data": 2, "pipeline": 2, "tensor": 1, "micro_batches": 2}
    steps, features, tied, lost, norm, form = 3, 4 * 16 * 8 * 4, 13 * 8 * 4, 4 * 4, 2 * 3 / 4 * 8, 10 * 8

    def held(training) -> int:
        return 4 * sum(p.numel() + 1 for p in training.model.parameters())  # and for each whether there is one

    weights = on_all_ranks(hybrid_3d.apply(deep(), grid), held, steps=1)
    expected = [steps * (features + tied + norm + gradient) for gradient in weights]  # 2 (n - 1) / n is 1 for n = 2
    expected = [each + (form if rank % 2 else steps * lost) for rank, each in enumerate(expected)]
    assert bytes_of_steps(hybrid_3d.apply(deep(), grid), steps) == pytest.approx(expected)


def test_the_model_is_where_the_workload_places_it() -> None:
    placed = deep(placement=lambda model: model.to(torch.float64))
    kinds = on_all_ranks(
        hybrid_3d.apply(placed, {}), lambda training: {weight.dtype for weight in training.model.parameters()}, steps=1
    )
    assert kinds == [{torch.float64}] * 4


def test_batch_norm_of_rank_0_is_evaluated() -> None:
    state = whole(hybrid_3d, images(), {"micro_batches": 2})
    assert {int(t) for name, t in state.items() if name.endswith("num_batches_tracked")} == {12}  # two in each step


def test_a_grid_of_one_is_the_baseline() -> None:
    options = {"data": 1, "pipeline": 1, "tensor": 1}
    assert same(run(hybrid_3d.apply(deep(), options)).model, run(deep()).model)


def test_it_refuses_what_cannot_be_dealt_out() -> None:
    with pytest.raises(NotApplicable, match="hybrid_3d cuts a model between its blocks"):
        hybrid_3d.apply(texts(), {})
    with pytest.raises(NotApplicable, match="hybrid_3d cuts the model's blocks into 2 stages, and it has 1"):
        hybrid_3d.apply(vectors(), {})
    with pytest.raises(NotApplicable, match="hybrid_3d cuts the attention and feed-forward layers"):
        hybrid_3d.apply(images(), {"tensor": 2, "pipeline": 1})
    with pytest.raises(NotApplicable, match="16 processes share batches of 8"):
        hybrid_3d.apply(deep(), {"data": 16})
    with pytest.raises(InvalidTechnique, match="hybrid_3d: tensor is 0"):
        hybrid_3d.apply(deep(), {"tensor": 0})


@pytest.mark.parametrize("other", [muon, tensor_parallel])
def test_it_refuses_what_excludes_it(other) -> None:
    with pytest.raises(Conflict, match=f"hybrid_3d.*{other.name}|{other.name}.*hybrid_3d"):
        compose(deep(), {"hybrid_3d": {"tensor": 2}, other.name: {}}, {"hybrid_3d": hybrid_3d, other.name: other})
