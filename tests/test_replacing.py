"""Parts of a model are replaced by kind, after the baseline's weights were drawn."""

import pytest
import torch
from torch import nn

from effbench.errors import NotApplicable
from effbench.models.replacing import replace, replacing
from effbench.toys import TOYS
from effbench.train import start


def test_every_module_of_the_kind_is_replaced_and_no_other() -> None:
    recipe = replacing(TOYS["text"](), nn.GELU, lambda _: nn.Tanh(), "no GELU")
    made, plain = start(recipe, 0).model, start(TOYS["text"](), 0).model
    kinds = [type(module) for module in made.modules()]
    assert kinds == [nn.Tanh if type(module) is nn.GELU else type(module) for module in plain.modules()]
    assert kinds.count(nn.Tanh) == 4
    assert all(torch.equal(a, b) for a, b in zip(made.parameters(), plain.parameters(), strict=True))


def test_what_is_used_twice_stays_one() -> None:
    shared = nn.Linear(2, 2)
    model = nn.Sequential(shared, nn.Sequential(shared), nn.Linear(2, 2))
    replace(model, nn.Linear, lambda _: nn.Identity())
    assert model[0] is model[1][0]
    assert model[0] is not model[2]


def test_looking_draws_no_random_number_and_says_what_is_missing() -> None:
    before = torch.get_rng_state()
    with pytest.raises(NotApplicable, match="no GELU here"):
        replacing(TOYS["images"](), nn.GELU, lambda _: nn.Tanh(), "no GELU here")
    assert torch.equal(before, torch.get_rng_state())
