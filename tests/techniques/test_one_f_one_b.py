import pytest

from effbench.errors import InvalidTechnique, NotApplicable
from effbench_techniques.system_centric.model.one_f_one_b import one_f_one_b
from pipelines import TOLERANCE, accumulated, bytes_of_steps, deep, gap, losses, whole
from ranks import on_all_ranks
from toy import images, run, same, vectors


@pytest.mark.parametrize(("processes", "micro_batches", "size"), [(2, 4, 8), (2, 3, 7), (4, 4, 8)])
def test_several_processes_train_the_weights_of_one(processes, micro_batches, size) -> None:
    recipe = deep(batch_size=lambda progress: size)
    options = {"processes": processes, "micro_batches": micro_batches}
    assert gap(whole(one_f_one_b, recipe, options), recipe) < TOLERANCE


def test_batch_norm_sees_what_it_sees_when_gradients_are_accumulated() -> None:
    found = whole(one_f_one_b, images(), {"processes": 2, "micro_batches": 2})
    assert gap(found, accumulated(images(), 2)) < TOLERANCE


def test_a_stage_keeps_as_many_micro_batches_as_there_are_stages_from_it_to_the_end() -> None:
    def recipe_that_counts(processes: int):
        recipe = one_f_one_b.apply(deep(batch_size=lambda progress: 16), {"processes": processes, "micro_batches": 8})

        def place(model):
            pipeline = recipe.placement(model)
            counted, go = [0], pipeline.go

            def counting(chunk, inputs):
                counted[0] = max(counted[0], len(pipeline.under_way) + 1)
                return go(chunk, inputs)

            pipeline.go, pipeline.counted = counting, counted
            return pipeline

        return recipe.wrap(placement=place)

    for processes in (2, 3):
        counted = on_all_ranks(recipe_that_counts(processes), lambda training: training.forward.counted[0], steps=1)
        assert counted == [1 + rank for rank in range(processes)]  # rank 0 has the last stage


def test_it_sends_what_gpipe_sends() -> None:
    features, tied, form, lost, norm = 8 * 16 * 8 * 4, 13 * 8 * 4, 10 * 8, 8 * 4, 8
    sent = bytes_of_steps(one_f_one_b.apply(deep(), {"micro_batches": 4}), steps=3)
    assert sent == [3 * (features + tied + lost + norm), 3 * (features + tied + norm) + form]


def test_all_processes_know_the_losses() -> None:
    one, other = losses(one_f_one_b.apply(deep(), {}))
    assert one == other == pytest.approx(run(deep()).losses.tolist(), abs=1e-5)


def test_one_process_is_the_baseline() -> None:
    assert same(run(one_f_one_b.apply(deep(), {"processes": 1})).model, run(deep()).model)


def test_it_refuses_models_with_too_few_blocks() -> None:
    with pytest.raises(NotApplicable, match="one_f_one_b cuts the model's blocks into 3 stages, and it has 1"):
        one_f_one_b.apply(vectors(), {"processes": 3})
    with pytest.raises(InvalidTechnique, match="one_f_one_b: micro_batches is 0"):
        one_f_one_b.apply(deep(), {"micro_batches": 0})
