import pytest
import torch

from effbench.distributed.sharing import share
from effbench.errors import InvalidTechnique, NotApplicable
from effbench.models import Residual
from effbench.models.experts import Added, Experts, most_probable
from effbench.techniques import compose
from effbench_techniques.model_centric.architecture.moe_switch import moe_switch
from effbench_techniques.model_centric.architecture.relu_squared import relu_squared
from effbench_techniques.optimization_centric.large_batch.gradient_accumulation import gradient_accumulation
from toy import begun, first_batch, images, random_numbers, run, tokens


def dense():
    return begun(tokens()).model.blocks[0].feed_forward


def sparse(experts: int = 4, capacity: float = 1e9) -> Experts:
    torch.manual_seed(0)
    layer = Experts(dense(), experts, most_probable, capacity)
    torch.nn.init.normal_(layer.router.weight)  # decided tokens
    return layer


def test_one_expert_is_the_dense_layer() -> None:
    x = random_numbers(3, 5, 8)
    torch.testing.assert_close(sparse(1)(x), dense()(x))
    assert isinstance(sparse(1), Residual)


def test_each_token_is_transformed_by_its_most_probable_expert_times_its_probability() -> None:
    layer, x = sparse(), random_numbers(3, 5, 8)
    found, used = layer(x), set()
    for b in range(3):
        for t in range(5):
            token = layer.norm(x[b, t])
            chances = layer.router(token).softmax(0)
            best = int(chances.argmax())
            used.add(best)
            said = layer.last[best](layer.activation(layer.first[best](token)))
            torch.testing.assert_close(found[b, t], x[b, t] + chances[best] * said, rtol=1e-4, atol=1e-5)
    assert len(used) > 2


def test_without_a_limit_no_token_goes_around_and_with_one_the_last_do() -> None:
    x = random_numbers(4, 16, 8)
    free, tight = sparse(4), sparse(4, capacity=0.5)
    assert (free.residual(x).abs().sum(-1) > 0).all()
    chosen = tight.router(tight.norm(x).flatten(0, 1)).argmax(1)
    taken = tight.residual(x).flatten(0, 1).abs().sum(-1) > 0
    for expert in range(4):
        mine = taken[chosen == expert].tolist()
        assert mine == [True] * min(8, len(mine)) + [False] * max(0, len(mine) - 8)  # 0.5 * 64 / 4
    assert not taken.all()
    assert (tight.eval().residual(x).abs().sum(-1) > 0).all()


def test_the_loss_of_balance_is_one_where_all_experts_are_used_alike() -> None:
    def slope_of(weights: torch.Tensor) -> float:
        """What is added to the loss, found by what it adds to the slope of a factor of itself."""
        seen = []
        layer = sparse(4)
        layer.balance = 1.0
        original, Added_apply = (
            Added.apply,
            lambda x, loss, factor: seen.append(float(loss.detach())) or original(x, loss, factor),
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Added, "apply", Added_apply)
            with torch.no_grad():
                layer.router.weight.copy_(weights)
            layer(random_numbers(64, 16, 8))
        return seen[0]

    alike = 1e-3 * torch.randn(4, 8, generator=torch.Generator().manual_seed(0))
    assert slope_of(alike) == pytest.approx(1.0, abs=1e-2)
    assert slope_of(torch.zeros(4, 8)) == pytest.approx(1.0)  # ties go to the first, with a probability of a quarter
    assert slope_of(torch.eye(4, 8) * torch.tensor([[9.0], [0.0], [0.0], [0.0]])) > 1.3


def test_it_enters_the_gradient_with_its_factor_whatever_the_parts_of_the_batch() -> None:
    def router_slope(balance: float, parts: int) -> torch.Tensor:
        known = {each.name: each for each in (moe_switch, gradient_accumulation)}
        sets = {"moe_switch": {"balance": balance, "capacity": 1e6}, "gradient_accumulation": {"micro_batches": parts}}
        recipe, _ = compose(tokens(), sets, known)
        training = begun(recipe)
        recipe.gradient(training, share(first_batch(recipe, training), training))
        return training.model.blocks[0].feed_forward.router.weight.grad

    plain, small, large = (router_slope(balance, 1) for balance in (0.0, 1.0, 3.0))
    torch.testing.assert_close(large - plain, 3.0 * (small - plain), rtol=1e-3, atol=1e-6)
    assert (small - plain).norm() > 1e-4
    parted = router_slope(1.0, 4) - router_slope(0.0, 4)
    assert 0.5 < parted.norm() / (small - plain).norm() < 2.0  # of the tokens in each part, but not four times as much


def test_it_is_not_added_where_no_gradient_is_computed_and_is_gone_after_the_step() -> None:
    training = run(moe_switch.apply(tokens(), {}), 3)
    layers = [module for module in training.model.modules() if isinstance(module, Experts)]
    assert [layer.balance for layer in layers] == [0.0, 0.0]
    assert all(weight.isfinite().all() for weight in training.model.parameters())


def test_every_expert_has_a_gradient_even_without_a_token() -> None:
    recipe = moe_switch.apply(tokens(), {"experts": 8})
    training = begun(recipe)
    for layer in training.model.modules():
        if isinstance(layer, Experts):
            torch.nn.init.zeros_(layer.router.weight)  # all to the first
    recipe.gradient(training, share(first_batch(recipe, training), training))
    assert all(weight.grad is not None for weight in training.model.parameters())


def test_experts_begin_as_different_layers_of_the_kind_that_the_layer_has_become() -> None:
    known = {each.name: each for each in (moe_switch, relu_squared)}
    recipe, order = compose(tokens(), {"moe_switch": {}, "relu_squared": {}}, known)
    assert order == ["relu_squared", "moe_switch"]
    layer = begun(recipe).model.blocks[0].feed_forward
    assert type(layer.activation).__name__ == "ReLUSquared"
    first, second = layer.first[0].weight, layer.first[1].weight
    assert torch.equal(first, dense().first.weight)
    assert not torch.equal(first, second)
    assert float(second.detach().std()) == pytest.approx(float(first.detach().std()), rel=0.2)


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="this model has none"):
        moe_switch.apply(images(), {})
    for options in ({"experts": 0}, {"capacity": 0.0}, {"balance": -1.0}):
        with pytest.raises(InvalidTechnique, match=f"{next(iter(options))} is"):
            moe_switch.apply(tokens(), options)
