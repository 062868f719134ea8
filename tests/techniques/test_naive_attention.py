import pytest
import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from effbench.errors import NotApplicable
from effbench.models.transformer import DotProduct
from effbench.optimizers import sgd
from effbench_techniques.system_centric.optimization.naive_attention import WrittenOut, naive_attention
from toy import flat, images, masked_tokens, random_numbers, run, tokens


@pytest.mark.parametrize("causal", [True, False])
def test_outputs_and_gradients_are_those_of_the_fused_kernel(causal: bool) -> None:
    def attended(attend) -> tuple[Tensor, ...]:
        leaves = [random_numbers(3, 2, 2, 24, 8)[i].requires_grad_() for i in range(3)]
        mixed = attend(*leaves)
        return mixed.detach(), *torch.autograd.grad(mixed.square().sum(), leaves)

    for ours, theirs in zip(attended(WrittenOut(causal=causal)), attended(DotProduct(causal=causal)), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)


@pytest.mark.parametrize("make", [tokens, masked_tokens])
def test_a_run_ends_where_the_baseline_ends(make) -> None:
    plain = make(optimizer=sgd(0.1, 0.9, 0.0))  # which, unlike Adam, does not make rounding large
    ours = run(naive_attention.apply(plain, {}), 10).model
    assert not any(isinstance(module, DotProduct) for module in ours.modules())
    torch.testing.assert_close(flat(ours), flat(run(plain, 10).model), rtol=0, atol=1e-5)


def kept(attend, length: int) -> int:
    """Numbers that attention keeps for its backward pass, inputs and outputs left out."""
    q, k, v = (random_numbers(1, 1, length, 8).requires_grad_() for _ in range(3))
    counted = []
    with saved_tensors_hooks(lambda tensor: counted.append(tensor.numel()) or tensor, lambda tensor: tensor):
        attend(q, k, v)
    return sum(count for count in counted if count != q.numel())


def test_what_it_keeps_grows_with_the_square_of_the_length_and_the_kernels_with_the_length() -> None:
    assert kept(WrittenOut(causal=False), 128) >= 128 * 128
    assert kept(WrittenOut(causal=False), 256) > 3.9 * kept(WrittenOut(causal=False), 128)
    assert kept(DotProduct(causal=False), 256) <= 2 * 256 + 8
    assert kept(DotProduct(causal=False), 256) < 2.1 * kept(DotProduct(causal=False), 128)


def test_models_without_attention_are_refused() -> None:
    with pytest.raises(NotApplicable, match="this model has none"):
        naive_attention.apply(images(), {})
