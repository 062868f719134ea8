from collections import Counter

import pytest
import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode

from effbench.errors import NotApplicable
from effbench.meters import peak_memory_of_a_step
from effbench.models import Network, gpt
from effbench.recipe import Recipe
from effbench_techniques.system_centric.model.activation_checkpointing import activation_checkpointing
from effbench_techniques.system_centric.model.selective_checkpointing import selective_checkpointing
from toy import CLASSES, VOCABULARY, begun, first_batch, images, run, tokens, vectors


def with_dropout() -> Recipe:
    def layer(width_in: int) -> nn.Module:
        return nn.Sequential(nn.Linear(width_in, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5))

    return vectors(model=lambda: Network(layer(6), [layer(16) for _ in range(3)], nn.Linear(16, CLASSES)))


def deep() -> Recipe:
    return tokens(model=lambda: gpt(VOCABULARY, length=16, width=32, depth=4, heads=2))


@pytest.mark.parametrize("make", [with_dropout, images, tokens])
def test_weights_buffers_and_losses_are_the_baselines_bit_by_bit(make) -> None:
    losses: dict[str, list[Tensor]] = {"plain": [], "ours": []}
    plain = run(make(), 12, look=lambda training: losses["plain"].append(training.losses))
    ours = run(
        selective_checkpointing.apply(make(), {}), 12, look=lambda training: losses["ours"].append(training.losses)
    )
    assert all(torch.equal(one, other) for one, other in zip(*losses.values(), strict=True))
    weights = {name.replace(".block.", "."): tensor for name, tensor in ours.model.state_dict().items()}
    expected = plain.model.state_dict()
    assert weights.keys() == expected.keys()
    assert [name for name in expected if not torch.equal(weights[name], expected[name])] == []


def three() -> tuple[Recipe, Recipe, Recipe]:
    """Nothing, everything, and only what is cheap computed again."""
    return deep(), activation_checkpointing.apply(deep(), {}), selective_checkpointing.apply(deep(), {})


class Counting(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()

    def __torch_dispatch__(self, operation, types, arguments=(), keywords=None):
        self.calls[operation.overloadpacket.__name__] += 1
        return operation(*arguments, **(keywords or {}))


def calls(recipe: Recipe) -> Counter[str]:
    """How often each operation runs in a forward and a backward pass."""
    training = begun(recipe)
    batch = first_batch(recipe, training)
    with Counting() as counting:
        recipe.gradient(training, batch)
    return counting.calls


def test_products_run_as_often_as_without_it_and_norms_twice() -> None:
    plain, whole, ours = map(calls, three())
    for dear in ("addmm", "mm", "_scaled_dot_product_flash_attention_for_cpu"):
        assert ours[dear] == plain[dear] > 0
    assert whole["addmm"] > plain["addmm"]
    assert plain["native_layer_norm"] == 9
    assert ours["native_layer_norm"] == whole["native_layer_norm"] == 17  # all but the head's
    assert ours["gelu"] == 2 * plain["gelu"]


def test_memory_lies_between_none_and_all() -> None:
    def peak(recipe: Recipe) -> float:
        training = run(recipe, 2)
        return peak_memory_of_a_step(training)

    plain, whole, ours = map(peak, three())
    assert whole < ours < 0.85 * plain


def test_what_autograd_keeps_by_itself_is_the_input_of_each_block() -> None:
    training = begun(selective_checkpointing.apply(deep(), {}))
    block, x = training.model.blocks[0], torch.randn(2, 16, 32, requires_grad=True)
    kept = []
    with saved_tensors_hooks(lambda tensor: kept.append(tensor.shape) or tensor, lambda tensor: tensor):
        block(x).sum()
    assert kept in ([], [x.shape])


def test_models_without_blocks_are_refused() -> None:
    with pytest.raises(NotApplicable, match="this model has none"):
        selective_checkpointing.apply(vectors(model=lambda: nn.Linear(6, CLASSES)), {})
