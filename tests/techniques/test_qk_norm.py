import math

import pytest
import torch
from torch import nn

from effbench.errors import InvalidTechnique, NotApplicable
from effbench.models.transformer import DotProduct
from effbench_techniques.model_centric.architecture.qk_norm import ByAngle, qk_norm
from toy import begun, images, random_numbers, run, tokens


class Logits(nn.Module):
    """Instead of mixing, keep the logits of scaled dot-product attention."""

    def forward(self, q, k, v):
        self.found = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        return v


@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e3])
def test_no_logit_is_larger_than_the_scale_however_long_queries_and_keys_are(factor: float) -> None:
    q, k, v = (factor * random_numbers(3, 2, 5, 8).roll(shift, 0) for shift in range(3))
    attend = ByAngle(Logits(), 7.0)
    attend(q, k, v)
    expected = 7.0 * nn.functional.cosine_similarity(q[..., :, None, :], k[..., None, :, :], dim=-1)
    torch.testing.assert_close(attend.attend.found, expected, rtol=1e-4, atol=1e-4)
    attend(q, q, v)
    torch.testing.assert_close(attend.attend.found.amax(-1), torch.full((3, 2, 5), 7.0))


def test_attention_is_the_softmax_of_these_logits() -> None:
    q, k, v = (random_numbers(3, 2, 5, 8).roll(shift, 0) for shift in range(3))
    logits = ByAngle(Logits(), 4.0)
    logits(q, k, v)
    torch.testing.assert_close(ByAngle(DotProduct(causal=False), 4.0)(q, k, v), logits.attend.found.softmax(-1) @ v)


def test_every_attention_has_a_scale_of_its_own_that_learns_and_does_not_decay() -> None:
    training = run(qk_norm.apply(tokens(), {"scale": 6.0}), 4)
    scales = [block.attention.attend.scale for block in training.model.blocks]
    assert len({float(scale.detach()) for scale in scales} - {6.0}) == 2
    (group,) = [group for group in training.optimizer.param_groups if any(scales[0] is w for w in group["params"])]
    assert group["weight_decay"] == 0.0
    plain = begun(tokens()).model.state_dict()
    ours = begun(qk_norm.apply(tokens(), {})).model.state_dict()
    assert set(ours) - set(plain) == {f"blocks.{block}.attention.attend.scale" for block in range(2)}
    assert all(torch.equal(ours[name], tensor) for name, tensor in plain.items())


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="no attention"):
        qk_norm.apply(images(), {})
    for scale in (0.0, math.inf):
        with pytest.raises(InvalidTechnique, match=f"scale is {scale}"):
            qk_norm.apply(tokens(), {"scale": scale})
