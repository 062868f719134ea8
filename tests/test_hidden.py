"""Hidden matrices are those in the blocks that nobody else uses."""

import torch

from effbench.models.hidden import hidden_layers, hidden_weights, largest
from effbench.toys import TOYS


def test_they_are_the_layers_in_the_blocks() -> None:
    kinds = ("attention.qkv", "attention.last", "feed_forward.first", "feed_forward.last")
    assert set(hidden_layers(TOYS["text"]().model())) == {
        f"blocks.{block}.{kind}" for block in range(4) for kind in kinds
    }
    assert {name.split(".")[-1] for name in hidden_layers(TOYS["images"]().model())} == {"first", "last", "projection"}
    assert hidden_layers(torch.nn.Linear(2, 2)) == {}


def test_weights_that_others_use_are_left_out_and_modules_that_are_used_twice_counted_once() -> None:
    model = TOYS["text"]().model()
    model.blocks[1].attention.last.weight = model.blocks[0].attention.last.weight
    assert not {"blocks.0.attention.last", "blocks.1.attention.last"} & set(hidden_layers(model))
    before = len(hidden_weights(model))
    model.blocks.append(model.blocks[0])
    assert len(hidden_weights(model)) == before


def test_exactly_so_many_are_the_largest() -> None:
    scores = torch.tensor([[3.0, 1.0, 1.0], [1.0, 5.0, 0.0]])
    assert largest(scores, 2).tolist() == [[True, False, False], [False, True, False]]
    assert [int(largest(scores, count).sum()) for count in range(7)] == list(range(7))
