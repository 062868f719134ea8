import pytest

from effbench.errors import InvalidTechnique, NotApplicable
from effbench.models import resnet
from effbench_techniques.system_centric.model.interleaved_1f1b import interleaved_1f1b
from effbench_techniques.system_centric.model.one_f_one_b import one_f_one_b
from pipelines import TOLERANCE, accumulated, bytes_of_steps, deep, gap, losses, whole
from ranks import on_all_ranks
from toy import CLASSES, images, run, same


@pytest.mark.parametrize(
    ("processes", "micro_batches", "chunks", "depth", "size"), [(2, 4, 2, 4, 8), (2, 2, 3, 6, 7), (4, 4, 2, 8, 9)]
)
def test_several_processes_train_the_weights_of_one(processes, micro_batches, chunks, depth, size) -> None:
    recipe = deep(depth, batch_size=lambda progress: size)
    options = {"processes": processes, "micro_batches": micro_batches, "chunks": chunks}
    assert gap(whole(interleaved_1f1b, recipe, options), recipe) < TOLERANCE


def test_batch_norm_sees_what_it_sees_when_gradients_are_accumulated() -> None:
    recipe = images(model=lambda: resnet(classes=CLASSES, width=4, depth=2))
    found = whole(interleaved_1f1b, recipe, {"processes": 2, "micro_batches": 2})
    assert gap(found, accumulated(recipe, 2)) < TOLERANCE


def test_chunks_lie_apart_in_the_model() -> None:
    def blocks(training) -> list[str]:
        return sorted({name[:8] for name in training.model.state_dict() if name.startswith("blocks")})

    assert on_all_ranks(interleaved_1f1b.apply(deep(), {}), blocks) == [
        ["blocks.1", "blocks.3"],
        ["blocks.0", "blocks.2"],
    ]


def test_it_sends_as_often_as_there_are_chunks() -> None:
    features, tied, form, lost, norm = 8 * 16 * 8 * 4, 13 * 8 * 4, 10 * 8, 8 * 4, 8
    has_head, has_embedding = bytes_of_steps(interleaved_1f1b.apply(deep(), {}), steps=3)
    assert has_head == 3 * (3 * features + tied + lost + norm) + form  # forward to stage 2, back to stages 2 and 0
    assert has_embedding == 3 * (3 * features + tied + norm) + 2 * form
    plain = bytes_of_steps(one_f_one_b.apply(deep(), {}), steps=3)
    assert has_head - plain[0] == 3 * 2 * features + form


def test_all_processes_know_the_losses() -> None:
    one, other = losses(interleaved_1f1b.apply(deep(), {}))
    assert one == other == pytest.approx(run(deep()).losses.tolist(), abs=1e-5)


def test_one_process_is_the_baseline() -> None:
    assert same(run(interleaved_1f1b.apply(deep(), {"processes": 1})).model, run(deep()).model)


def test_it_refuses_too_few_blocks_and_groups_that_are_not_full() -> None:
    with pytest.raises(NotApplicable, match="interleaved_1f1b cuts the model's blocks into 6 stages, and it has 4"):
        interleaved_1f1b.apply(deep(), {"chunks": 3})
    with pytest.raises(InvalidTechnique, match="micro_batches is 3; it should be a multiple of the 2 processes"):
        interleaved_1f1b.apply(deep(), {"micro_batches": 3})
    with pytest.raises(InvalidTechnique, match="chunks is 0"):
        interleaved_1f1b.apply(deep(), {"chunks": 0})
    small = interleaved_1f1b.apply(deep(batch_size=lambda progress: 3), {})
    with pytest.raises(NotApplicable, match="2 micro-batches need two examples each, and the batch has 3 in all"):
        on_all_ranks(small, lambda training: None)
