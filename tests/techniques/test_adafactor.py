import math

import pytest
import torch

from effbench.errors import InvalidTechnique
from effbench_techniques.optimization_centric.learning_rate.adafactor import adafactor
from own_optimizer import keeps_the_groups, steps, trains_and_excludes_others
from toy import begun, run, tokens, vectors


def made(parameters: list, **options: float) -> torch.optim.Optimizer:
    """The optimizer that the technique builds, with these parameters and without decay."""
    optimizer = begun(adafactor.apply(vectors(), options)).optimizer
    optimizer.param_groups = [{**optimizer.param_groups[-1], "params": parameters, "weight_decay": 0.0}]
    return optimizer


def rms(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.square().mean().sqrt()


def test_it_equals_the_paper_line_by_line() -> None:
    w, rows, columns = None, torch.zeros(5, 1).double(), torch.zeros(1, 3).double()
    for step, (before, g, rate, weight, _) in enumerate(steps(lambda p: made(p, lr=0.1, clip=1.2), 5, 3), 1):
        w = before.double() if w is None else w
        g = g.double()
        stays = 1.0 - step**-0.8
        rows = stays * rows + (1 - stays) * g.square().mean(1, keepdim=True)
        columns = stays * columns + (1 - stays) * g.square().mean(0, keepdim=True)
        update = g / (rows * columns / rows.mean()).sqrt()
        update /= max(1.0, rms(update) / 1.2)
        w = w - max(1e-3, rms(w)) * min(rate, 1 / math.sqrt(step)) * update
        torch.testing.assert_close(weight.detach().double(), w, rtol=0, atol=1e-5)


def test_squares_of_rank_one_are_remembered_exactly() -> None:
    weight = torch.nn.Parameter(torch.ones(4, 6))
    optimizer = made([weight], lr=0.1)
    sides = torch.rand(4, 1) + 0.1, torch.rand(1, 6) + 0.1
    signs = torch.randint(2, (4, 6)) * 2.0 - 1.0
    weight.grad = sides[0] * sides[1] * signs
    optimizer.step()  # every weight moves by the relative rate, as with Adam
    torch.testing.assert_close(weight.detach(), 1.0 - 0.1 * signs, rtol=0, atol=1e-5)


def test_it_remembers_rows_and_columns_alone() -> None:
    training = run(adafactor.apply(tokens(), {}), 2)
    weight = training.model.blocks[0].feed_forward.first.weight  # 32 x 8
    kept = sum(tensor.numel() for name, tensor in training.optimizer.state[weight].items() if name != "step")
    assert kept == 32 + 8


def test_groups_and_strength_of_decay_are_the_baselines() -> None:
    keeps_the_groups(adafactor)


def test_it_trains_from_the_same_start_and_excludes_other_optimizers() -> None:
    trains_and_excludes_others(adafactor)


@pytest.mark.parametrize("options", [{"lr": 0.0}, {"lr": float("inf")}, {"clip": 0.5}, {"forget": 0.0}])
def test_wrong_options_are_refused(options) -> None:
    with pytest.raises(InvalidTechnique, match=next(iter(options))):
        adafactor.apply(vectors(), options)
