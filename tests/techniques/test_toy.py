"""The laws that every technique keeps are tested elsewhere; here only that the toys are fit to show a difference."""

import pytest
import torch

from toy import flat, images, masked_tokens, run, same, texts, tokens, vectors


@pytest.mark.parametrize("make", [vectors, images, tokens, masked_tokens, texts])
def test_toys_train_and_repeat(make) -> None:
    first, second = run(make()), run(make())
    assert same(first.model, second.model)
    assert torch.isfinite(flat(first.model)).all()
    assert not same(first.model, run(make(), seed=1).model)
