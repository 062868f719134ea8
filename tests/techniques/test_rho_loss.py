import pytest
import torch

from effbench.errors import InvalidTechnique
from effbench_techniques.data_centric.sampling.rho_loss import irreducible, remembered, rho_loss
from toy import begun, first_batch, images, masked_tokens, run, same, tokens, vectors


def losses_of(recipe, model, batch) -> torch.Tensor:
    model.eval()
    with torch.no_grad():
        found = recipe.loss(model(batch.inputs), batch)
    model.train()
    return found


@pytest.mark.parametrize("make", [vectors, images, tokens])
def test_those_stay_whose_loss_is_highest_above_the_hold_out_models(make) -> None:
    recipe = rho_loss.apply(make(), {"ratio": 0.5})
    training = begun(recipe)
    recipe.milestones[0].action(training)
    clean = first_batch(make(), training)
    held_out_model = training.kept["rho_loss"]["model"]
    rho = losses_of(make(), training.model, clean) - losses_of(make(), held_out_model, clean)
    for _ in range(2):  # computed, then remembered
        assert first_batch(recipe, training).index.tolist() == sorted(rho.topk(4).indices.tolist())


def test_without_an_irreducible_loss_the_highest_loss_counts() -> None:
    recipe = rho_loss.apply(vectors(), {"ratio": 0.25, "holdout_steps": 0})
    training = begun(recipe)
    assert recipe.milestones == ()
    losses = losses_of(vectors(), training.model, first_batch(vectors(), training))
    assert first_batch(recipe, training).index.tolist() == sorted(losses.topk(2).indices.tolist())


def test_what_is_held_out_is_never_trained_on_and_all_else_is() -> None:
    seen = []

    def loader(positions, training):
        seen.append(positions)
        return vectors().loader(positions, training)

    held: list[torch.Tensor] = []
    recipe = rho_loss.apply(vectors(loader=loader), {"holdout": 0.25, "holdout_steps": 5})
    recipe = recipe.at(0.0, lambda training: held.append(training.kept["rho_loss"]["held_out"]) or seen.clear())
    run(recipe, 8)
    assert int(held[0].sum()) == 16
    assert set(torch.cat(seen).tolist()) == set((~held[0]).nonzero()[:, 0].tolist())


@pytest.mark.parametrize(("holdout", "count"), [(1e-6, 1), (0.999, 63)])
def test_some_are_held_out_and_some_are_left(holdout: float, count: int) -> None:
    training = begun(vectors())
    assert int(remembered(training, holdout, 5)["held_out"].sum()) == count


def test_the_hold_out_model_sees_only_what_is_held_out_and_is_charged_as_the_techniques_work() -> None:
    seen = []

    def loader(positions, training):
        seen.append(positions)
        return vectors().loader(positions, training)

    recipe = rho_loss.apply(vectors(loader=loader), {"holdout_steps": 9})
    training = begun(recipe)
    recipe.milestones[0].action(training)
    assert recipe.milestones[0].progress == 0.0
    held_out = training.kept["rho_loss"]["held_out"]
    assert len(seen) == 9
    assert held_out[torch.cat(seen)].all()
    assert run(rho_loss.apply(vectors(), {}), 2).ledger.wall["extra"] > 0.0


def test_batches_have_the_size_of_the_baselines() -> None:
    sizes = []

    def gradient(training, batch):
        sizes.append(len(batch))
        return vectors().gradient(training, batch)

    training = run(rho_loss.apply(vectors(gradient=gradient), {"ratio": 0.1, "holdout_steps": 0}), 3)
    assert sizes == [8] * 3
    assert training.examples == 240


def test_losses_of_texts_that_are_masked_anew_are_not_remembered() -> None:
    for make, remembers in ((tokens, True), (masked_tokens, False)):
        recipe = rho_loss.apply(make(), {})
        training = begun(recipe)
        recipe.milestones[0].action(training)
        memory = training.kept["rho_loss"]
        batch = first_batch(make(), training)
        first = irreducible(make(), batch, memory, reuse=remembers)
        memory["losses"] -= 1.0
        again = irreducible(make(), batch, memory, reuse=remembers)
        torch.testing.assert_close(again, first - 1.0 if remembers else first)


def test_ratio_one_is_the_baseline_and_a_quarter_is_not() -> None:
    baseline = run(images(), 4)
    assert same(run(rho_loss.apply(images(), {"ratio": 1.0}), 4).model, baseline.model)
    assert not same(run(rho_loss.apply(images(), {}), 4).model, baseline.model)


@pytest.mark.parametrize("options", [{"ratio": 0.0}, {"ratio": 1.1}, {"holdout": 0.0}, {"holdout_steps": -1}])
def test_wrong_options_are_refused(options) -> None:
    with pytest.raises(InvalidTechnique, match=next(iter(options))):
        rho_loss.apply(vectors(), options)
