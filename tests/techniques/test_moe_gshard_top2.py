import math

import pytest
import torch

from effbench.errors import Conflict, InvalidTechnique, NotApplicable
from effbench.models import Residual
from effbench.models.experts import Experts, imbalance
from effbench.techniques import compose
from effbench_techniques.model_centric.architecture.moe_gshard_top2 import moe_gshard_top2, two_most_probable
from effbench_techniques.model_centric.architecture.moe_switch import moe_switch
from toy import begun, images, random_numbers, run, tokens


def chances(tokens: int = 40, experts: int = 4) -> torch.Tensor:
    return (2.0 * random_numbers(tokens, experts)).softmax(1)


@pytest.mark.parametrize("capacity", [0.4, 1.0, 9.0])
def test_it_equals_the_papers_algorithm_line_by_line(capacity) -> None:
    g = chances()
    S, E = g.shape
    C = math.ceil(capacity * 2 * S / E)
    torch.manual_seed(3)
    found = two_most_probable(g, capacity)
    torch.manual_seed(3)
    rnd = torch.rand(S)

    c, G = [0] * E, torch.zeros(S, E)
    m = g.mean(0)
    for s in range(S):
        (g1, g2), (e1, e2) = g[s].topk(2)
        if c[e1] < C:
            G[s, e1] = g1 / (g1 + g2)
        c[e1] += 1
    l_aux = sum(c[e] / S * m[e] for e in range(E)) / E
    left_out = 0
    for s in range(S):
        (g1, g2), (e1, e2) = g[s].topk(2)
        if c[e2] < C and 2 * g2 / (g1 + g2) > rnd[s]:
            G[s, e2] = g2 / (g1 + g2)
        else:
            left_out += 1
        c[e2] += 1
    torch.testing.assert_close(found.gates, G)
    assert torch.equal(found.sent, G > 0)
    assert left_out > 3
    torch.testing.assert_close(imbalance(g, found.favourite), l_aux * E**2)  # so that 1 is balance


def test_the_weights_of_a_token_sum_to_one_where_nothing_is_left_out() -> None:
    found = two_most_probable(chances(), None)
    torch.testing.assert_close(found.gates.sum(1), torch.ones(40))
    assert (found.sent.sum(1) == 2).all()


def test_a_second_expert_is_asked_with_twice_its_weight_as_probability() -> None:
    one = torch.tensor([[0.6, 0.2, 0.1, 0.1]])
    torch.manual_seed(0)
    found = two_most_probable(one.expand(20_000, 4), 100.0)
    assert found.sent[:, 0].all()
    assert float(found.sent[:, 1].float().mean()) == pytest.approx(2 * 0.25, abs=0.012)
    assert not found.sent[:, 2:].any()


def test_the_layer_adds_what_both_experts_say() -> None:
    torch.manual_seed(0)
    layer = Experts(begun(tokens()).model.blocks[0].feed_forward, 4, two_most_probable, 1.0).eval()
    torch.nn.init.normal_(layer.router.weight)
    x = random_numbers(3, 5, 8)
    found = layer(x)
    for b in range(3):
        for t in range(5):
            token = layer.norm(x[b, t])
            weights, chosen = layer.router(token).softmax(0).topk(2)
            said = [layer.last[e](layer.activation(layer.first[e](token))) for e in chosen.tolist()]
            expected = x[b, t] + (weights[0] * said[0] + weights[1] * said[1]) / weights.sum()
            torch.testing.assert_close(found[b, t], expected, rtol=1e-4, atol=1e-5)
    assert isinstance(layer, Residual)


def test_equal_experts_are_the_dense_layer_where_nothing_is_left_out() -> None:
    dense = begun(tokens()).model.blocks[0].feed_forward
    x = random_numbers(3, 5, 8)
    expected = dense(x)
    layer = Experts(dense, 3, two_most_probable, 1.0).eval()
    for experts in (layer.first, layer.last):
        for each in experts[1:]:
            each.load_state_dict(experts[0].state_dict())
    torch.testing.assert_close(layer(x), expected)


def test_an_evaluation_draws_no_random_number_and_repeats_itself() -> None:
    training = run(moe_gshard_top2.apply(tokens(), {}), 3)
    model = training.model.eval()
    before = torch.get_rng_state()
    inputs = training.recipe.dataset.inputs
    assert torch.equal(model(inputs), model(inputs))
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.equal(model.train()(inputs), model(inputs))


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="this model has none"):
        moe_gshard_top2.apply(images(), {})
    known = {each.name: each for each in (moe_switch, moe_gshard_top2)}
    with pytest.raises(Conflict, match="each replaces the feed-forward layers"):
        compose(tokens(), {name: {} for name in known}, known)
    for options in ({"experts": 1}, {"capacity": 0.0}, {"balance": -1.0}):
        with pytest.raises(InvalidTechnique, match=f"{next(iter(options))} is"):
            moe_gshard_top2.apply(tokens(), options)
