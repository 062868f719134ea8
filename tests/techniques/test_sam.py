import pytest
import torch

from effbench.distributed.sharing import share
from effbench.errors import InvalidTechnique
from effbench.techniques import compose
from effbench_techniques.optimization_centric.large_batch.gradient_accumulation import gradient_accumulation
from effbench_techniques.optimization_centric.objective.sam import sam
from toy import begun, first_batch, flat, images, run, same, state, tokens, vectors


def gradients(model) -> torch.Tensor:
    return torch.cat([weight.grad.flatten().double() for weight in model.parameters()])


@pytest.mark.parametrize("make", [vectors, tokens])
def test_the_gradient_is_that_of_the_point_uphill_at_distance_rho(make) -> None:
    places = []

    def gradient(training, batch):
        places.append(flat(training.model))
        return make().gradient(training, batch)

    training = begun(sam.apply(make(gradient=gradient), {"rho": 0.3}))
    batch = share(first_batch(make(), training), training)
    twin = begun(make())
    losses = twin.recipe.gradient(twin, batch)
    slope = gradients(twin.model)

    found = training.recipe.gradient(training, batch)
    here, there = places
    assert float((there - here).norm()) == pytest.approx(0.3, rel=1e-5)
    torch.testing.assert_close(there - here, 0.3 * slope / slope.norm(), rtol=0, atol=1e-6)
    assert torch.equal(flat(training.model), here)
    assert torch.equal(found, losses)

    torch.nn.utils.vector_to_parameters(there.float(), twin.model.parameters())
    twin.optimizer.zero_grad()
    twin.recipe.gradient(twin, batch)
    torch.testing.assert_close(gradients(training.model), gradients(twin.model), rtol=0, atol=1e-6)


def test_batchnorm_counts_the_batch_once_and_at_the_weights_themselves() -> None:
    training, plain = begun(sam.apply(images(), {"rho": 1.0})), begun(images())
    batch = share(first_batch(images(), plain), plain)
    training.recipe.gradient(training, batch)
    plain.recipe.gradient(plain, batch)
    assert all(torch.equal(state(plain.model)[name], tensor) for name, tensor in state(training.model).items())
    assert int(training.model.head.norm.num_batches_tracked) == 1


def test_it_adds_to_the_gradient_that_is_there() -> None:
    training, again = begun(sam.apply(vectors(), {})), begun(sam.apply(vectors(), {}))
    batch = share(first_batch(vectors(), training), training)
    training.recipe.gradient(training, batch)
    for weight in again.model.parameters():
        weight.grad = torch.ones_like(weight)
    again.recipe.gradient(again, batch)
    assert torch.equal(gradients(again.model), (1.0 + gradients(training.model).float()).double())


def test_every_interval_has_two_passes_once() -> None:
    passes = []

    def gradient(training, batch):
        passes.append(training.step)
        return vectors().gradient(training, batch)

    training = run(sam.apply(vectors(gradient=gradient), {"interval": 3}), 7)
    assert passes == [0, 0, 1, 2, 3, 3, 4, 5, 6, 6]
    assert training.ledger.wall["extra"] > 0.0


def test_accumulation_goes_inside() -> None:
    known = {"sam": sam, "gradient_accumulation": gradient_accumulation}
    both, order = compose(vectors(), {"sam": {"rho": 0.3}, "gradient_accumulation": {}}, known)
    assert order == ["gradient_accumulation", "sam"]
    alone = run(sam.apply(vectors(), {"rho": 0.3}))
    torch.testing.assert_close(flat(run(both).model), flat(alone.model), rtol=0, atol=1e-5)


def test_a_gradient_of_zero_moves_nothing() -> None:
    recipe = sam.apply(vectors(loss=lambda outputs, batch: outputs.sum(1) * 0.0), {})
    training = run(recipe, 1)
    assert torch.isfinite(flat(training.model)).all()


@pytest.mark.parametrize("make", [vectors, images])
def test_without_rho_it_is_the_baseline_and_with_it_is_not(make) -> None:
    baseline = run(make(), 4)
    assert same(run(sam.apply(make(), {"rho": 0.0}), 4).model, baseline.model)
    assert not same(run(sam.apply(make(), {}), 4).model, baseline.model)


@pytest.mark.parametrize("options", [{"rho": -0.1}, {"rho": float("nan")}, {"interval": 0}])
def test_wrong_options_are_refused(options) -> None:
    with pytest.raises(InvalidTechnique, match=next(iter(options))):
        sam.apply(vectors(), options)
