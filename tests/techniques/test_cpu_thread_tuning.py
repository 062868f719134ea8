import pytest
import torch

from effbench.errors import InvalidTechnique
from effbench.optimizers import sgd
from effbench.recipe import Recipe
from effbench_techniques.system_centric.optimization.cpu_thread_tuning import cpu_thread_tuning
from toy import flat, images, run, same, tokens, vectors

TINY = 1e-40  # below the smallest normal float32


def seen_by_the_loss(recipe: Recipe, **options) -> list[tuple[int, bool]]:
    """The number of threads, and whether denormal numbers are zero, at each loss of a run."""
    seen = []

    def noting(outputs, batch):
        seen.append((torch.get_num_threads(), is_flushing()))
        return recipe.loss(outputs, batch)

    run(cpu_thread_tuning.apply(recipe.wrap(loss=noting), options), 3)
    return seen


def is_flushing() -> bool:
    return bool((torch.tensor([TINY]) * 1.0 == 0.0).all())


def test_the_step_has_its_threads_and_no_denormals_and_what_follows_is_as_before() -> None:
    before = torch.get_num_threads()
    assert seen_by_the_loss(vectors(), threads=3, flush_denormals=True) == [(3, True)] * 3
    assert (torch.get_num_threads(), is_flushing()) == (before, False)
    assert seen_by_the_loss(vectors(), threads=0, flush_denormals=True) == [(before, True)] * 3
    assert seen_by_the_loss(vectors(), threads=3, flush_denormals=False) == [(3, False)] * 3


def test_a_step_that_fails_leaves_everything_as_before() -> None:
    def broken(outputs, batch):
        raise ValueError("broken")

    before = torch.get_num_threads()
    with pytest.raises(ValueError, match="broken"):
        run(cpu_thread_tuning.apply(vectors(loss=broken), {"threads": 3}), 1)
    assert (torch.get_num_threads(), is_flushing()) == (before, False)


@pytest.mark.parametrize("make", [vectors, images, tokens])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_results_are_equal_across_numbers_of_threads_but_for_rounding(make, threads: int) -> None:
    plain = make(optimizer=sgd(0.05, 0.9, 0.0))  # which, unlike Adam, does not make rounding large
    ours = run(cpu_thread_tuning.apply(plain, {"threads": threads}), 6).model
    torch.testing.assert_close(flat(ours), flat(run(plain, 6).model), rtol=0, atol=1e-5)


def test_with_nothing_tuned_it_is_the_baseline() -> None:
    recipe = cpu_thread_tuning.apply(vectors(), {"threads": 0, "flush_denormals": False})
    assert same(run(recipe).model, run(vectors()).model)
    with pytest.raises(InvalidTechnique, match="threads is -1"):
        cpu_thread_tuning.apply(vectors(), {"threads": -1})
    with pytest.raises(InvalidTechnique, match=r"threads is 1000000000; it should be from 0 \(as it is\) to 1024"):
        cpu_thread_tuning.apply(vectors(), {"threads": 10**9})  # for which OpenMP would end the process
