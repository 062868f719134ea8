import pytest
import torch
from torch import Tensor

from effbench.distributed.group import Group
from effbench.distributed.launch import run_ranks
from effbench.errors import Conflict, InvalidTechnique
from effbench.models import gpt
from effbench.optimizers import sgd
from effbench.techniques import compose
from effbench_techniques.optimization_centric.objective.sam import sam
from effbench_techniques.system_centric.optimization.powersgd import approximate, powersgd, shrinks
from ranks import distance, evaluated, gradients, on_all_ranks
from toy import VOCABULARY, run, same, tokens, vectors

SGD = sgd(0.1, momentum=0.9, weight_decay=0.01)


def random(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def wide(**changes):
    """A GPT whose matrices are large enough to be worth approximating."""
    return tokens(model=lambda: gpt(VOCABULARY, length=16, width=16, depth=2, heads=2), **changes)


def test_it_is_the_power_method_of_the_paper_line_by_line() -> None:
    """Algorithm 1, with Gram-Schmidt as in the paper; the product does not depend on which orthonormal basis it is."""

    def body(group: Group) -> tuple[Tensor, Tensor]:
        query = random(9, 5, 2)
        (product,) = approximate([random(group.rank, 7, 5)], [query])
        return product, query

    product, query = run_ranks(2, body)
    first, second = random(0, 7, 5), random(1, 7, 5)
    p = (first @ random(9, 5, 2) + second @ random(9, 5, 2)) / 2  # all-reduce mean
    for column in range(2):  # orthogonalise
        for before in range(column):
            p[:, column] -= (p[:, before] @ p[:, column]) * p[:, before]
        p[:, column] /= p[:, column].norm()
    q = (first.T @ p + second.T @ p) / 2
    torch.testing.assert_close(product, p @ q.T, rtol=1e-5, atol=1e-5)
    assert query.shape == (5, 2)
    torch.testing.assert_close(query @ query.T, q @ q.T, rtol=1e-5, atol=1e-5)  # the next step goes on from it


@pytest.mark.parametrize("shape", [(7, 5), (5, 7)])
def test_full_rank_is_exact(shape: tuple[int, int]) -> None:
    def body(group: Group) -> Tensor:
        (product,) = approximate([random(group.rank, *shape)], [random(9, shape[1], 5)])
        return product

    mean = (random(0, *shape) + random(1, *shape)) / 2
    torch.testing.assert_close(run_ranks(2, body), mean, rtol=1e-5, atol=1e-5)


def test_where_nothing_gets_smaller_the_weights_are_those_of_one_process() -> None:
    recipe = wide(optimizer=SGD)
    assert distance(powersgd.apply(recipe, {"rank": 16}), recipe) < 1e-6


def test_what_is_sent_and_what_is_remembered_add_up_to_the_gradient() -> None:
    def remembered(training) -> Tensor:
        errors = training.kept.get("powersgd", {"errors": {}})["errors"]
        return torch.cat([errors.get(p, torch.zeros_like(p)).flatten() for p in training.model.parameters()])

    ours, whole = (gradients(recipe, remembered) for recipe in (powersgd.apply(wide(), {"rank": 2}), wide()))
    torch.testing.assert_close(ours, whole, rtol=1e-5, atol=1e-6)


def test_it_sends_thin_matrices_and_the_rest_as_it_is() -> None:
    recipe = powersgd.apply(wide(), {"rank": 2, "processes": 3})
    sizes = [p.shape for p in wide().model().parameters()]
    thin = [shape for shape in sizes if shrinks(torch.empty(shape), 2)]
    assert len(thin) == 10  # token table, positions, and four matrices in each of two blocks
    numbers = sum(shape.numel() for shape in sizes if shape not in thin)
    numbers += sum(2 * (shape[0] + shape[1]) for shape in thin)

    def sent(training) -> float:
        return training.group.wire.traffic.so_far()["all_reduce"].bytes

    once, twice = (on_all_ranks(recipe, sent, steps) for steps in (1, 2))
    per_step = [more - less for more, less in zip(twice, once, strict=True)]
    assert per_step == pytest.approx([2 * (2 / 3) * 4 * numbers] * 3)


def test_only_matrices_that_get_smaller_are_approximated() -> None:
    assert shrinks(torch.empty(16, 16), 7)
    assert not shrinks(torch.empty(16, 16), 8)
    assert not shrinks(torch.empty(1000), 1)
    assert shrinks(torch.empty(8, 4, 3, 3), 2)  # a convolution is 8 x 36
    assert not shrinks(torch.empty(8, 4, 3, 3), 7)


def test_ranks_agree_and_each_remembers_its_own_error() -> None:
    def told(training) -> tuple[list[float], float]:
        errors = training.kept["powersgd"]["errors"].values()
        return evaluated(training).tolist(), float(sum(error.abs().sum() for error in errors))

    (one, first), (other, second) = on_all_ranks(powersgd.apply(wide(), {"rank": 1}), told)
    assert one == other
    assert first != second
    assert min(first, second) > 0


def test_one_process_is_the_baseline() -> None:
    assert same(run(powersgd.apply(tokens(), {"processes": 1})).model, run(tokens()).model)


def test_it_refuses_what_it_cannot_do() -> None:
    with pytest.raises(InvalidTechnique, match="powersgd: rank is 0"):
        powersgd.apply(vectors(), {"rank": 0})
    with pytest.raises(Conflict, match="powersgd and sam exclude each other: it takes two gradients"):
        compose(vectors(), {"powersgd": {}, "sam": {}}, {"powersgd": powersgd, "sam": sam})
