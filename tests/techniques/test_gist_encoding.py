import pytest
import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from effbench.errors import NotApplicable
from effbench.models import mlp
from effbench.recipe import Recipe
from effbench_techniques.system_centric.model.gist_encoding import (
    Gist,
    OneBitReLU,
    Sparse,
    decode,
    from_bits,
    gist_encoding,
    to_bits,
)
from toy import CLASSES, begun, first_batch, images, random_numbers, run, same, tokens, vectors


@pytest.mark.parametrize("make", [vectors, images])
def test_weights_buffers_and_losses_are_the_baselines_bit_by_bit(make) -> None:
    losses: dict[str, list[Tensor]] = {"plain": [], "ours": []}
    plain = run(make(), 12, look=lambda training: losses["plain"].append(training.losses))
    ours = run(gist_encoding.apply(make(), {}), 12, look=lambda training: losses["ours"].append(training.losses))
    assert all(torch.equal(one, other) for one, other in zip(*losses.values(), strict=True))
    assert same(ours.model, plain.model)


@pytest.mark.parametrize("shape", [(1,), (8,), (13,), (3, 5, 7), (0,)])
def test_bits_come_back(shape: tuple[int, ...]) -> None:
    mask = random_numbers(*shape) > 0
    bits = to_bits(mask)
    assert bits.nbytes == -(-mask.numel() // 8)
    assert torch.equal(from_bits(bits, mask.shape), mask)


def test_a_tensor_with_zeros_comes_back_in_its_own_order_and_takes_the_room_of_the_rest() -> None:
    dense = random_numbers(4, 8, 6, 6).relu()
    for tensor in (dense, dense.to(memory_format=torch.channels_last)):
        encoded = Gist().encode(tensor)
        assert isinstance(encoded, Sparse)
        assert encoded.nbytes == 4 * int(dense.count_nonzero()) + dense.numel() // 8
        again = decode(encoded)
        assert torch.equal(again, tensor)
        assert again.stride() == tensor.stride()


def test_what_has_no_zeros_or_gaps_stays_as_it_is() -> None:
    full = random_numbers(8, 8)
    for tensor in (full, full.relu()[:, ::2], full.relu().bool(), full.relu()[:2, :2], nn.Parameter(full.relu())):
        assert Gist().encode(tensor) is tensor


def test_a_tensor_that_two_keep_is_encoded_once_and_its_successor_in_the_same_memory_anew() -> None:
    gist = Gist()
    tensor = random_numbers(8, 8).relu()
    first = gist.encode(tensor)
    assert gist.encode(tensor.detach()) is first
    tensor.mul_(2.0)
    second = gist.encode(tensor)
    assert second is not first
    assert torch.equal(decode(second), 2.0 * decode(first))
    for _ in range(20):  # memory is given out again and again
        other = torch.rand(8, 8).sub_(0.5).relu_()
        assert torch.equal(decode(gist.encode(other)), other)
        del other


def kept(recipe: Recipe) -> int:
    """Bytes that a step keeps for its backward pass, weights left out, what several keep counted once."""
    training = begun(recipe)
    batch = first_batch(recipe, training, 32)
    weights = {weight.data_ptr() for weight in training.model.parameters()}
    gist, found = Gist(), {}
    coded = recipe.history != ()

    def pack(tensor: Tensor) -> Tensor | Sparse:
        result = gist.encode(tensor) if coded else tensor
        if isinstance(result, Sparse):
            found[id(result)] = (result.nbytes, result)
        elif result.data_ptr() not in weights:
            found[result.data_ptr()] = (result.nbytes, result)
        return result

    with saved_tensors_hooks(pack, decode):
        outputs = training.forward(batch.inputs)
    assert outputs.requires_grad
    return sum(size for size, _ in found.values())


def test_bytes_are_what_the_shares_of_zeros_foretell() -> None:
    wide = {"model": lambda: mlp(6, CLASSES, width=64, depth=3)}
    plain, ours = kept(vectors(**wide)), kept(gist_encoding.apply(vectors(**wide), {}))
    inputs, hidden = 32 * 6 * 4, 32 * 64
    assert plain == inputs + 3 * 4 * hidden  # each ReLU's output, which the next layer keeps too
    model = begun(vectors(**wide)).model
    x, zeros = vectors().dataset.inputs[:32], 0
    for layer in (model.embed, *model.blocks):
        x = layer(x)
        zeros += int((x == 0).sum())
    assert 0.3 < zeros / (3 * hidden) < 0.7
    assert ours == plain - 4 * zeros + 3 * 2 * hidden // 8  # two bits for each number: the mask's, and the place's
    assert kept(gist_encoding.apply(images(), {})) < 0.9 * kept(images())


def test_a_relu_alone_keeps_a_bit() -> None:
    bytes_, x = [], random_numbers(64, 64).requires_grad_()
    with saved_tensors_hooks(lambda tensor: bytes_.append(tensor.nbytes) or tensor, lambda tensor: tensor):
        y = OneBitReLU()(x)
    assert bytes_ == [64 * 64 // 8]
    (ours,) = torch.autograd.grad(y.square().sum(), x)
    (theirs,) = torch.autograd.grad(x.relu().square().sum(), x)
    assert torch.equal(ours, theirs)


def test_models_without_zeros_are_refused() -> None:
    with pytest.raises(NotApplicable, match="this model keeps none"):
        gist_encoding.apply(tokens(), {})
