import pytest
import torch
from torch import nn

from effbench.distributed.axes import Axis, grid
from effbench.distributed.cut_layers import Cut, cut_model
from effbench.distributed.launch import run_ranks
from effbench.errors import Conflict, EffbenchError, InvalidTechnique, NotApplicable
from effbench.models import gpt, vit
from effbench.techniques import compose
from effbench_techniques.data_centric.sampling.random_ltd import random_ltd
from effbench_techniques.model_centric.architecture.glu_ffn import glu_ffn
from effbench_techniques.model_centric.architecture.qk_norm import qk_norm
from effbench_techniques.model_centric.architecture.rope import rope
from effbench_techniques.model_centric.compression.lora import lora
from effbench_techniques.model_centric.curriculum.progressive_stacking import progressive_stacking
from effbench_techniques.optimization_centric.averaged_weights.ema import ema
from effbench_techniques.optimization_centric.large_batch.gradient_accumulation import gradient_accumulation
from effbench_techniques.optimization_centric.learning_rate.muon import muon
from effbench_techniques.optimization_centric.objective.sam import sam
from effbench_techniques.system_centric.model.tensor_parallel import tensor_parallel
from pipelines import SGD, TOLERANCE, bytes_of_steps, deep, gap, whole
from ranks import on_all_ranks
from toy import CLASSES, VOCABULARY, images, random_numbers, run, same, tokens, vectors

KNOWN = {each.name: each for each in (tensor_parallel, ema, glu_ffn, rope, gradient_accumulation, muon, sam, lora)}


def wide(**changes: object):
    """A GPT with four heads."""

    def model() -> nn.Module:
        return gpt(VOCABULARY, length=16, width=16, depth=2, heads=4)

    return deep(**{"model": model, **changes})


@pytest.mark.parametrize("processes", [2, 3, 4])
def test_several_processes_train_the_weights_of_one(processes: int) -> None:
    """Three processes do not share four heads evenly."""
    assert gap(whole(tensor_parallel, wide(), {"processes": processes}), wide()) < TOLERANCE


def test_a_vision_transformer_as_well() -> None:
    recipe = images(optimizer=SGD, model=lambda: vit(resolution=8, patch=2, classes=CLASSES, width=16, depth=1))
    assert gap(whole(tensor_parallel, recipe, {}), recipe) < TOLERANCE


def test_outputs_and_gradients_are_those_of_one_process() -> None:
    inputs = random_numbers(3, 1, 8, 8)

    def model() -> nn.Module:
        torch.manual_seed(0)
        return vit(resolution=8, patch=2, classes=CLASSES, width=16, depth=2)

    def body(group) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        made = model()
        cut_model(made, grid({"tensor": group.size})["tensor"], "it")
        outputs = made(inputs)
        outputs.square().mean().backward()
        kept = {name: p.grad for name, p in made.named_parameters() if ".first." not in name and ".last." not in name}
        return outputs.detach(), {name: grad for name, grad in kept.items() if ".qkv." not in name}

    outputs, gradients = run_ranks(2, body)
    alone = model()
    expected = alone(inputs)
    expected.square().mean().backward()
    assert float((outputs - expected).detach().abs().max()) < 1e-6
    for name, parameter in alone.named_parameters():
        if name in gradients:
            assert float((gradients[name] - parameter.grad).abs().max()) < 1e-7
    assert "blocks.0.attention.norm.weight" in gradients


def test_each_process_has_its_heads_and_hidden_units() -> None:
    def told(training) -> tuple[int, int, list[int], list[int], int]:
        block = training.model.blocks[0]
        shapes = [list(layer.weight.shape) for layer in (block.attention.qkv, block.feed_forward.last)]
        cut = sum(p.numel() for p in training.forward.cut)
        return block.attention.heads, cut, *shapes, sum(p.numel() for p in training.model.parameters())

    one, other = on_all_ranks(tensor_parallel.apply(wide(), {}), told)
    assert one == other
    heads, cut, qkv, last, parameters = one
    assert (heads, qkv, last) == (2, [24, 16], [16, 32])
    everything = sum(p.numel() for p in run(wide()).model.parameters())
    assert parameters + cut == everything


def test_a_block_adds_up_its_features_twice_forward_and_twice_backward() -> None:
    features, steps, blocks = 8 * 16 * 16 * 4, 3, 2
    for processes in (2, 4):
        per_byte = 2 * (processes - 1) / processes  # of an all-reduce
        seed, norm = 8, 8
        expected = per_byte * (steps * (blocks * 4 * features + norm) + seed)
        sent = bytes_of_steps(tensor_parallel.apply(wide(), {"processes": processes}), steps)
        assert sent == pytest.approx([expected] * processes)


def test_what_treats_each_head_and_each_hidden_unit_by_itself_can_be_cut_too() -> None:
    for other in (glu_ffn, rope, ema, gradient_accumulation):
        others = {other.name: other}
        alone, _ = compose(wide(), {name: {} for name in others}, others)
        weights = on_all_ranks(alone, lambda training: training.recipe.eval_model(training).state_dict())[0]
        found = whole(tensor_parallel, wide(), {}, others)
        assert found.keys() == weights.keys()
        assert max(float((found[name] - weights[name]).abs().max()) for name in weights) < TOLERANCE


def test_dropout_masks_are_the_same_in_all_processes() -> None:
    def model() -> nn.Module:
        made = gpt(VOCABULARY, length=16, width=16, depth=2, heads=4)
        made.embed = nn.Sequential(made.embed, nn.Dropout(0.5))
        return made

    found = whole(tensor_parallel, wide(model=model), {})  # which says so if they differ
    assert all(tensor.isfinite().all() for tensor in found.values())


def test_processes_that_come_apart_are_noticed() -> None:
    recipe = tensor_parallel.apply(wide(), {})

    def uneven(batch, training):
        return batch.replace(weight=batch.weight * (1.0 + training.group.rank * (torch.arange(8) == 0)))

    apart = recipe.wrap(transform=uneven)
    with pytest.raises(EffbenchError, match="their weights have come to differ"):
        on_all_ranks(apart, apart.eval_model)


def test_one_process_is_the_baseline() -> None:
    assert same(run(tensor_parallel.apply(wide(), {"processes": 1})).model, run(wide()).model)


def test_it_says_what_cannot_be_cut() -> None:
    with pytest.raises(
        NotApplicable, match="cuts the attention and feed-forward layers of transformers, and finds none"
    ):
        tensor_parallel.apply(vectors(), {})
    with pytest.raises(NotApplicable, match=r"cannot cut blocks.0.attention: it has 2 heads, fewer than"):
        tensor_parallel.apply(tokens(), {"processes": 3})
    with pytest.raises(InvalidTechnique, match="tensor_parallel: processes is 0"):
        tensor_parallel.apply(tokens(), {"processes": 0})
    with pytest.raises(NotApplicable, match="has weights for what several processes have"):
        compose(wide(), {"qk_norm": {}, "tensor_parallel": {}}, {"qk_norm": qk_norm, **KNOWN})
    axis = Axis((0, 1), 0)

    def altered(change) -> None:
        model = gpt(VOCABULARY, length=16, width=16, depth=1, heads=4)
        change(model.blocks[0])
        cut_model(model, axis, "it")

    with pytest.raises(NotApplicable, match=r"feed_forward: its Softmax mixes what several processes have"):
        altered(lambda block: setattr(block.feed_forward, "activation", nn.Softmax(-1)))
    with pytest.raises(NotApplicable, match=r"attention: its Bilinear has weights"):
        altered(lambda block: setattr(block.attention, "attend", nn.Bilinear(2, 2, 2)))
    with pytest.raises(NotApplicable, match=r"attention: its Identity cannot be tried by itself"):
        altered(lambda block: setattr(block.attention, "attend", nn.Identity()))
    with pytest.raises(NotApplicable, match="does something with what its linear layers say"):
        altered(lambda block: block.feed_forward.last.register_forward_hook(lambda module, given, said: 2 * said))
    with pytest.raises(NotApplicable, match="another technique made it a Sequential"):
        altered(lambda block: setattr(block.attention, "last", nn.Sequential(block.attention.last)))


@pytest.mark.parametrize("other", [muon, sam, progressive_stacking, random_ltd])
def test_it_refuses_what_looks_at_whole_matrices_or_goes_another_way_in_each_process(other) -> None:
    known = {**KNOWN, other.name: other}
    with pytest.raises(Conflict, match=f"tensor_parallel.*{other.name}|{other.name}.*tensor_parallel"):
        compose(wide(), {"tensor_parallel": {}, other.name: {}}, known)


# --- the grid of processes ----------------------------------------------------------------------------------------


def test_processes_lie_in_a_grid_whose_lines_talk_among_themselves() -> None:
    def body(group) -> tuple[tuple[int, ...], tuple[int, ...], float, float]:
        axes = grid({"data": 2, "tensor": 2})
        sums = [float(axes[name].sum(torch.tensor(10.0**group.rank))) for name in axes]
        if group.rank == 0:
            assert (axes["data"].place, axes["tensor"].place) == (0, 0)
        return axes["data"].ranks, axes["tensor"].ranks, *sums

    assert run_ranks(4, body) == ((0, 2), (0, 1), 101.0, 11.0)


def test_a_cut_layer_is_the_layer() -> None:
    torch.manual_seed(0)
    layer, x = nn.Linear(4, 6), torch.randn(3, 4)

    def body(group) -> tuple[torch.Tensor, torch.Tensor]:
        axis = grid({"tensor": 2})["tensor"]
        rows = Cut(layer, 0, list(torch.arange(6).tensor_split(2)), axis)
        columns = Cut(layer, 1, list(torch.arange(4).tensor_split(2)), axis)
        return rows(x), columns(x[:, columns.parts[group.rank]])

    part, summed = run_ranks(2, body)
    torch.testing.assert_close(part, layer(x)[:, :3])
    torch.testing.assert_close(summed, layer(x))
