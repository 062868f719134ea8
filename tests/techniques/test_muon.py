import copy

import pytest
import torch
from torch import nn

from effbench.errors import InvalidTechnique, NotApplicable
from effbench.surgery import operate
from effbench.techniques import compose
from effbench_techniques.optimization_centric.learning_rate.lion import lion, lion_step
from effbench_techniques.optimization_centric.learning_rate.muon import Muon, as_matrix, hidden_matrices, muon
from toy import begun, flat, images, run, same, tokens, vectors


class Matrices(nn.Module):
    """Hidden matrices of several shapes, whose gradients are set by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(32, 32), nn.Linear(16, 64), nn.Linear(64, 16)])
        self.head = nn.Linear(4, 3)


def conditioned(rows: int, columns: int) -> torch.Tensor:
    """A matrix with singular values between 0.2 and 1."""
    left, _, right = torch.linalg.svd(torch.randn(rows, columns), full_matrices=False)
    return left @ torch.diag(torch.linspace(0.2, 1.0, min(rows, columns))) @ right


@pytest.mark.parametrize("momentum", [0.0, 0.95])
def test_updates_are_nearly_orthogonal_and_point_along_the_gradient(momentum: float) -> None:
    training = begun(muon.apply(vectors(model=Matrices), {"lr": 0.1, "momentum": momentum}))
    for group in training.optimizer.param_groups:
        group["weight_decay"] = 0.0
    torch.manual_seed(0)
    before = {}
    for block in training.model.blocks:
        block.weight.grad = conditioned(*block.weight.shape)
        before[block] = (block.weight.detach().clone(), block.weight.grad.clone())
    training.optimizer.step()
    for block, (weight, gradient) in before.items():
        rows, columns = weight.shape
        update = (weight - block.weight.detach()) / (0.1 * max(1.0, rows / columns) ** 0.5)
        values = torch.linalg.svdvals(update)
        assert values.min() > 0.67
        assert values.max() < 1.14
        left, _, right = torch.linalg.svd(gradient, full_matrices=False)
        turned = left.T @ update @ right.T  # spectral descent would give the identity
        assert (turned - torch.diag(turned.diagonal())).abs().max() < 0.05
        torch.testing.assert_close(turned.diagonal(), torch.ones(len(turned)), rtol=0, atol=0.35)


def test_hidden_matrices_go_to_muon_and_the_rest_stays_with_the_baseline() -> None:
    training, plain = begun(muon.apply(tokens(), {"lr": 0.05})), begun(tokens())
    ours, rest = training.optimizer.members
    assert isinstance(ours, torch.optim.Muon)
    assert isinstance(rest, torch.optim.AdamW)
    names = {weight: name for name, weight in training.model.named_parameters()}
    hidden = {names[weight] for group in ours.param_groups for weight in group["params"]}
    assert hidden == {
        f"blocks.{i}.{name}.weight"
        for i in (0, 1)
        for name in ("attention.qkv", "attention.last", "feed_forward.first", "feed_forward.last")
    }
    everything = [weight for group in training.optimizer.param_groups for weight in group["params"]]
    assert len(everything) == len(set(everything)) == len(list(plain.model.parameters()))
    (group,) = ours.param_groups
    assert group["lr"] * group["weight_decay"] == pytest.approx(3e-3 * 0.1)
    assert [g["lr"] for g in rest.param_groups] == [3e-3, 3e-3]
    (group,) = begun(muon.apply(images(), {"lr": 0.1})).optimizer.members[0].param_groups
    assert group["lr"] * group["weight_decay"] == pytest.approx(0.05 * 5e-4 / (1.0 - 0.9))  # as momentum repeats it


def test_rates_follow_the_schedule_and_training_works() -> None:
    rates = []

    def look(training) -> None:
        rates.append([group["lr"] / group["initial_lr"] for group in training.optimizer.param_groups])

    training = run(muon.apply(tokens(), {}), 40, look=look)
    assert all(len(set(step)) == 1 for step in [[round(rate, 9) for rate in step] for step in rates])
    assert rates[-1][0] == 0.0
    assert float(training.losses.mean()) < float(run(tokens(), 1).losses.mean()) - 0.1
    assert same(begun(muon.apply(tokens(), {})).model, begun(tokens()).model)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_kernels_of_a_convolution_step_as_the_rows_of_a_matrix(layout: torch.memory_format) -> None:
    torch.manual_seed(0)
    kernels = nn.Parameter(torch.randn(8, 4, 3, 3).to(memory_format=layout))
    matrix = nn.Parameter(as_matrix(kernels.detach(), kernels).clone())
    ours = Muon([{"params": [kernels], "weight_decay": 0.1}], lr=0.05, momentum=0.9)
    theirs = torch.optim.Muon([{"params": [matrix], "weight_decay": 0.1}], lr=0.05, momentum=0.9)
    for _ in range(3):
        kernels.grad = torch.randn(8, 4, 3, 3).to(memory_format=layout)
        matrix.grad = as_matrix(kernels.grad, kernels).clone()
        ours.step()
        theirs.step()
        assert torch.equal(as_matrix(kernels.detach(), kernels), matrix.detach())
    assert ours.param_groups[0]["params"] == [kernels]
    assert kernels.shape == (8, 4, 3, 3)


def test_asking_for_matrices_draws_no_random_number() -> None:
    torch.manual_seed(5)
    muon.apply(tokens(), {})
    drawn = torch.rand(3)
    torch.manual_seed(5)
    assert torch.equal(torch.rand(3), drawn)


def test_momentum_follows_when_the_model_grows() -> None:
    def grow(training) -> None:
        before = training.optimizer.state[training.model.blocks[0].attention.qkv.weight]["momentum_buffer"].clone()
        operate(training, lambda model: model.blocks.append(copy.deepcopy(model.blocks[0])) and None)
        after = training.optimizer.state[training.model.blocks[0].attention.qkv.weight]["momentum_buffer"]
        assert torch.equal(before, after)

    training = run(muon.apply(tokens().at(0.5, grow), {}), 6)
    assert training.generation == 1
    assert len(hidden_matrices(training.model)) == 12
    assert torch.isfinite(flat(training.model)).all()


def test_lion_may_be_the_optimizer_of_the_rest() -> None:
    both, order = compose(tokens(), {"muon": {}, "lion": {}}, {"muon": muon, "lion": lion})
    assert order == ["lion", "muon"]
    first, rest = begun(both).optimizer.members
    assert isinstance(first, Muon)
    assert rest.rule is lion_step


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="has none there"):
        muon.apply(vectors(model=lambda: nn.Linear(6, 4)), {})
    for options in ({"lr": -1.0}, {"momentum": 1.0}):
        with pytest.raises(InvalidTechnique, match=next(iter(options))):
            muon.apply(tokens(), options)
