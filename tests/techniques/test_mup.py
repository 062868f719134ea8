import pytest
import torch
from torch import nn

from effbench.distributed.sharing import share
from effbench.errors import Conflict, InvalidTechnique, NotApplicable
from effbench.models import gpt, vit
from effbench.optimizers import adamw, sgd
from effbench.techniques import compose
from effbench_techniques.model_centric.initialization.mup import embeddings, mup, output_layer, wide_matrices
from effbench_techniques.optimization_centric.learning_rate.lion import lion
from toy import CLASSES, VOCABULARY, begun, first_batch, images, masked_tokens, state, tokens, vectors

WIDTHS, BASE = (16, 64, 128), 16


def text_of(width: int):
    return tokens(model=lambda: gpt(VOCABULARY, length=16, width=width, depth=2, heads=2), **STEADY)


def images_of(width: int):
    return images(
        model=lambda: vit(resolution=8, patch=4, classes=CLASSES, width=width, depth=2, heads=2),
        traits=frozenset({"image"}),
        **STEADY,
    )


STEADY = {"optimizer": adamw(0.01, weight_decay=0.0), "lr_schedule": lambda progress: 1.0}


def changes(recipe, steps: int = 4) -> dict[str, float]:
    """By how much some steps change what each part of the model gives, on average over its elements."""
    training, seen = begun(recipe), []
    model = training.model
    parts = {"attention": model.blocks[0].attention, "first": model.blocks[0], "second": model.blocks[1], "all": model}

    def look() -> dict[str, torch.Tensor]:
        found: dict[str, torch.Tensor] = {}
        hooks = [
            part.register_forward_hook(lambda module, given, output, name=name: found.update({name: output.detach()}))
            for name, part in parts.items()
        ]
        model(recipe.dataset.inputs[:16])
        for hook in hooks:
            hook.remove()
        return found

    seen.append(look())
    for _ in range(steps):
        recipe.gradient(training, share(first_batch(recipe, training, 16), training))
        recipe.update(training)
    seen.append(look())
    return {name: float((seen[1][name] - seen[0][name]).abs().mean()) for name in parts}


@pytest.mark.parametrize("make", [text_of, images_of])
def test_coordinates_change_by_as_much_whatever_the_width(make) -> None:
    plain = [changes(make(width)) for width in WIDTHS]
    ours = [changes(mup.apply(make(width), {"ratio": width / BASE})) for width in WIDTHS]
    assert ours[0] == plain[0]
    for part in ours[0]:
        sizes = [change[part] for change in ours]
        assert max(sizes) / min(sizes) < 1.25, part
        assert plain[-1][part] > 2.0 * plain[0][part], part


def test_sizes_at_the_beginning_are_those_of_the_narrow_model_and_hidden_ones_the_baselines() -> None:
    narrow, plain = begun(text_of(16)).model, begun(text_of(64)).model
    wide = begun(mup.apply(text_of(64), {"ratio": 4.0})).model
    for name in ("tokens", "positions"):
        ours, theirs = wide.embed.get_submodule(name).weight, narrow.embed.get_submodule(name).weight
        assert float(ours.detach().std()) == pytest.approx(float(theirs.detach().std()), rel=0.15)
        torch.testing.assert_close(ours, 2.0 * plain.embed.get_submodule(name).weight)
    assert wide.head.output.weight is wide.embed.tokens.weight
    changed = {name for name, tensor in state(plain).items() if not torch.equal(tensor, state(wide)[name])}
    assert changed == {"embed.tokens.weight", "embed.positions.weight", "head.output.weight"}


def test_the_output_layer_is_given_features_over_the_ratio_and_attention_cools() -> None:
    plain, wide = begun(text_of(64)).model, begun(mup.apply(text_of(64), {"ratio": 4.0})).model
    x = torch.randn(2, 5, 64)
    torch.testing.assert_close(wide.head(x), plain.head(x) * 2.0 / 4.0)
    q, k, v = (torch.randn(2, 2, 5, 32) for _ in range(3))
    attended = wide.blocks[0].attention.attend(q, k, v)
    torch.testing.assert_close(attended, plain.blocks[0].attention.attend(q / 2.0, k, v))


def test_matrices_learn_at_the_rate_over_the_ratio_and_decay_stays() -> None:
    recipe = masked_tokens(optimizer=adamw(0.01, weight_decay=0.3))
    training = begun(mup.apply(recipe, {"ratio": 5.0}))
    model = training.model
    rates = {weight: group for group in training.optimizer.param_groups for weight in group["params"]}
    assert rates.keys() == set(model.parameters())
    slow = {weight for weight, group in rates.items() if group["lr"] < 0.01}
    block = model.blocks[0]
    linear = [block.attention.qkv, block.attention.last, block.feed_forward.first, block.feed_forward.last]
    assert slow == wide_matrices(model) == {layer.weight for layer in [*linear, model.head.dense]}
    assert output_layer(model) is model.head.output
    assert embeddings(model) == {model.embed.tokens.weight, model.embed.positions.weight}
    for weight, group in rates.items():
        assert group["lr"] == group["initial_lr"] == pytest.approx(0.002 if weight in slow else 0.01)
        assert group["lr"] * group["weight_decay"] == pytest.approx(0.003 if weight.ndim > 1 else 0.0)


def test_a_part_of_a_model_without_its_head_has_no_output_layer() -> None:
    model = begun(text_of(16)).model
    whole, model.head = wide_matrices(model), nn.Identity()
    assert output_layer(model) is None
    assert wide_matrices(model) == whole
    assert len(whole) == 8


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="this model is none"):
        mup.apply(vectors(), {})
    with pytest.raises(NotApplicable, match="rules for Adam"):
        mup.apply(tokens(optimizer=sgd(0.1, momentum=0.9, weight_decay=0.0)), {})
    with pytest.raises(NotApplicable, match="this model is none"):
        mup.apply(vectors(model=lambda: nn.Linear(6, CLASSES)), {})
    with pytest.raises(InvalidTechnique, match="ratio is 0"):
        mup.apply(tokens(), {"ratio": 0.0})
    known = {each.name: each for each in (mup, lion)}
    with pytest.raises(Conflict, match="mup"):
        compose(tokens(), {name: {} for name in known}, known)
