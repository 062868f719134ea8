import pytest
import torch
from torch import nn

from effbench.errors import InvalidTechnique, NotApplicable
from effbench.models import vit
from effbench.techniques import compose
from effbench_techniques.model_centric.architecture.qk_norm import qk_norm
from effbench_techniques.model_centric.architecture.rope import Rotary, rope
from effbench_techniques.model_centric.architecture.sliding_window_attention import sliding_window_attention
from toy import CLASSES, begun, images, masked_tokens, random_numbers, run, tokens


class Scores(nn.Module):
    def forward(self, q, k, v):
        self.found = q @ k.transpose(-1, -2)
        return v


def scores(q, k, base: float = 100.0) -> torch.Tensor:
    """Of one query and one key that stand at every position, (T, T)."""
    rotary = Rotary(Scores(), 40, q.shape[-1], base)
    q, k = (x.expand(1, 1, 40, -1) for x in (q, k))
    rotary(q, k, k)
    return rotary.attend.found[0, 0]


def test_scores_depend_on_the_distance_alone() -> None:
    found = scores(random_numbers(8), random_numbers(16)[8:])
    for distance in range(-39, 40):
        diagonal = found.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), rtol=0, atol=1e-5)
    assert found[0].std() > 0.1


def test_the_product_is_that_of_complex_numbers() -> None:
    q, k = random_numbers(8), random_numbers(16)[8:]
    found = scores(q, k, base=50.0)
    as_complex = [torch.complex(x[:4].double(), x[4:].double()) for x in (q, k)]
    rates = 50.0 ** (-torch.arange(4) / 4).double()
    for m, n in ((0, 0), (3, 1), (10, 30)):
        turned = [x * torch.exp(1j * position * rates) for x, position in zip(as_complex, (m, n), strict=True)]
        assert float(found[m, n]) == pytest.approx(float((turned[0] * turned[1].conj()).sum().real), abs=1e-4)


def test_a_text_that_is_moved_gives_the_same_logits() -> None:
    model = begun(rope.apply(masked_tokens(), {})).model.eval()
    ids = torch.full((1, 16), 3)
    with torch.no_grad():
        logits = model(ids)
    torch.testing.assert_close(logits, logits[:, :1].expand_as(logits))
    ids[0, 5] = 1
    with torch.no_grad():
        changed = (model(ids) - logits).abs().sum(-1)[0]
    assert len({round(float(x), 6) for x in changed[[4, 6, 2, 8]]}) > 2  # the distance is felt


def test_learned_positions_go_and_nothing_else() -> None:
    plain, ours = begun(tokens()).model.state_dict(), begun(rope.apply(tokens(), {})).model.state_dict()
    assert set(plain) - set(ours) == {"embed.positions.weight"}
    assert all(torch.equal(plain[name], tensor) for name, tensor in ours.items())


def test_shorter_texts_and_other_attention_are_welcome() -> None:
    known = {each.name: each for each in (rope, qk_norm, sliding_window_attention)}
    recipe, _ = compose(tokens(), {"rope": {}, "qk_norm": {}, "sliding_window_attention": {"window": 4}}, known)
    model = run(recipe, 3).model
    assert model(torch.zeros(2, 7, dtype=torch.long)).shape == (2, 7, 13)
    with pytest.raises(ValueError, match="16 positions"):
        model(torch.zeros(2, 17, dtype=torch.long))


def test_it_says_why_it_does_not_apply() -> None:
    patches = images(model=lambda: vit(resolution=8, patch=2, classes=CLASSES, width=8, depth=1, heads=2))
    for recipe in (images(), patches):
        with pytest.raises(NotApplicable, match="embeds no tokens"):
            rope.apply(recipe, {})
    with pytest.raises(InvalidTechnique, match="base is 1"):
        rope.apply(tokens(), {"base": 1.0})
