import pytest
import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from effbench.distributed.sharing import share
from effbench.errors import InvalidTechnique, NotApplicable
from effbench.models import Network, gpt
from effbench.recipe import Recipe
from effbench.techniques import compose
from effbench_techniques.model_centric.curriculum.progressive_stacking import progressive_stacking
from effbench_techniques.model_centric.curriculum.stochastic_depth import stochastic_depth
from effbench_techniques.system_centric.model.activation_checkpointing import Recomputed, activation_checkpointing
from toy import CLASSES, VOCABULARY, begun, first_batch, images, run, same, tokens, vectors


def with_dropout() -> Recipe:
    def layer(width_in: int) -> nn.Module:
        return nn.Sequential(nn.Linear(width_in, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5))

    return vectors(model=lambda: Network(layer(6), [layer(16) for _ in range(3)], nn.Linear(16, CLASSES)))


def plain_names(model: nn.Module) -> dict[str, Tensor]:
    return {name.replace(".block.", "."): tensor for name, tensor in model.state_dict().items()}


@pytest.mark.parametrize("make", [with_dropout, images, tokens])
@pytest.mark.parametrize("every", [1, 2])
def test_weights_buffers_and_losses_are_the_baselines_bit_by_bit(make, every: int) -> None:
    losses: dict[str, list[Tensor]] = {"plain": [], "recomputed": []}
    plain = run(make(), 20, look=lambda training: losses["plain"].append(training.losses))
    recipe = activation_checkpointing.apply(make(), {"every": every})
    recomputed = run(recipe, 20, look=lambda training: losses["recomputed"].append(training.losses))
    assert all(torch.equal(one, other) for one, other in zip(*losses.values(), strict=True))
    ours, theirs = plain_names(recomputed.model), plain.model.state_dict()
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if not torch.equal(ours[name], theirs[name])] == []
    assert recomputed.model.training


def saved_bytes(recipe: Recipe) -> int:
    """Bytes that one step keeps for its backward pass, weights left out, tensors that share memory counted once."""
    training = begun(recipe)
    weights = {weight.untyped_storage().data_ptr() for weight in training.model.parameters()}
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    batch = share(first_batch(recipe, training), training)
    with saved_tensors_hooks(pack, lambda tensor: tensor):
        outputs = training.forward(batch.inputs)  # kept alive, so that no memory is used twice
    assert outputs.requires_grad
    return sum(kept.values())


def test_saved_bytes_fall_the_more_the_more_blocks_are_recomputed() -> None:
    def deep() -> Recipe:
        return tokens(model=lambda: gpt(VOCABULARY, length=16, width=32, depth=8, heads=2))

    plain, half, whole = (saved_bytes(activation_checkpointing.apply(deep(), {"every": every})) for every in (0, 2, 1))
    assert whole < 0.2 * plain
    assert whole < half < 0.65 * plain


def test_blocks_that_are_recomputed_can_be_stacked_and_dropped() -> None:
    known = {t.name: t for t in (activation_checkpointing, progressive_stacking, stochastic_depth)}

    def trained(names: tuple[str, ...]) -> nn.Module:
        return run(compose(tokens(), {name: {} for name in names}, known)[0], 10).model

    for other in ("progressive_stacking", "stochastic_depth"):
        recomputed, plain = trained((other, "activation_checkpointing")), trained((other,))
        assert sum(isinstance(module, Recomputed) for module in recomputed.modules()) == 2
        ours, theirs = plain_names(recomputed), plain.state_dict()
        assert [name for name in theirs if not torch.equal(ours[name], theirs[name])] == []


def test_without_blocks_to_recompute_it_is_the_baseline() -> None:
    assert same(run(activation_checkpointing.apply(images(), {"every": 0})).model, run(images()).model)
    with pytest.raises(NotApplicable, match="this model has none"):
        activation_checkpointing.apply(vectors(model=lambda: nn.Linear(6, CLASSES)), {})
    with pytest.raises(InvalidTechnique, match="every is -1"):
        activation_checkpointing.apply(images(), {"every": -1})
