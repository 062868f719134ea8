import pytest
import torch
from torch import nn

from effbench.distributed.group import Group
from effbench.distributed.launch import run_ranks
from effbench.errors import InvalidTechnique, UnknownName
from effbench.optimizers import sgd
from effbench.train import start
from effbench_techniques.system_centric.model.ddp import ddp
from effbench_techniques.system_centric.optimization.grad_compress_16bit import grad_compress_16bit
from ranks import distance, evaluated, on_all_ranks
from toy import recipe, run, same, tokens, vectors

SGD = sgd(0.1, momentum=0.9, weight_decay=0.01)


def test_each_rank_rounds_its_part_of_the_mean_and_so_is_the_sum() -> None:
    inputs = torch.randn(2, 8, generator=torch.Generator().manual_seed(3))

    def model() -> nn.Module:
        return nn.Linear(8, 4, bias=False)

    def body(group: Group) -> torch.Tensor:
        plain = recipe(inputs, torch.zeros(2), model=model, loss=lambda outputs, batch: outputs.sum(1))
        training = start(grad_compress_16bit.apply(plain, {"dtype": "bfloat16"}), 0, group=group)
        training.recipe.gradient(training, training.recipe.share(plain.loader(torch.arange(2), training), training))
        return training.model.weight.grad

    slopes = [x.expand(4, 8).div(2).bfloat16() for x in inputs]
    assert torch.equal(run_ranks(2, body), (slopes[0] + slopes[1]).float())


@pytest.mark.parametrize(("dtype", "off"), [("float16", 4e-4), ("bfloat16", 4e-3)])
@pytest.mark.parametrize("toy", [vectors, tokens])
def test_weights_are_those_of_one_process_but_for_the_rounding(toy, dtype: str, off: float) -> None:
    plain = toy(optimizer=SGD)
    found = distance(grad_compress_16bit.apply(plain, {"dtype": dtype}), plain)
    assert 1e-6 < found < off  # it does round


def test_all_ranks_have_the_same_weights() -> None:
    one, other = on_all_ranks(grad_compress_16bit.apply(tokens(), {}), lambda training: evaluated(training).tolist())
    assert one == other


def test_half_the_bytes_are_sent() -> None:
    def sent(training) -> float:
        return training.group.wire.traffic.so_far()["all_reduce"].bytes

    half = on_all_ranks(grad_compress_16bit.apply(vectors(), {}), sent, steps=3)
    whole = on_all_ranks(ddp.apply(vectors(), {}), sent, steps=3)
    size = 4 * sum(p.numel() for p in vectors().model().parameters())
    assert whole == [3 * size] * 2  # 2 (N - 1) / N of the gradient, three times
    assert half == [3 * size / 2] * 2


def test_one_process_is_the_baseline() -> None:
    assert same(run(grad_compress_16bit.apply(tokens(), {"processes": 1})).model, run(tokens()).model)


def test_it_refuses_other_types() -> None:
    with pytest.raises(UnknownName, match="did you mean 'float16'"):
        grad_compress_16bit.apply(vectors(), {"dtype": "flaot16"})
    with pytest.raises(InvalidTechnique, match="grad_compress_16bit: processes is 0"):
        grad_compress_16bit.apply(vectors(), {"processes": 0})
