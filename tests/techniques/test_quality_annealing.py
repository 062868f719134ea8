import pytest
import torch
from scipy.stats import chisquare

from effbench import terms
from effbench.errors import InvalidTechnique, NotApplicable
from effbench_techniques.data_centric.curriculum.quality_annealing import annealed, quality_annealing
from toy import begun, images, masked_tokens, run, same, tokens, vectors


def drawn(make, options: dict, steps: int = 400) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The positions trained on before and after the cooldown begins, and the best ones."""
    seen: list[torch.Tensor] = []

    def loader(positions, training):
        seen.append(positions)
        return terms.by_position(positions, training)

    begins: list[int] = []
    recipe = quality_annealing.apply(make(loader=loader), options)

    def note(training) -> None:
        begins.append(training.step)

    training = run(recipe.at(recipe.milestones[0].progress, note), steps)
    scoring = len(seen) - steps  # the pass over the data set
    chunks = seen[: begins[0]] + seen[begins[0] + scoring :]
    late = begins[0] + 32 // 8  # examples that had been looked up already
    return torch.cat(chunks[: begins[0]]), torch.cat(chunks[late:]), training.kept["quality_annealing"]


@pytest.mark.parametrize("make", [vectors, tokens])
def test_the_mixture_follows_the_schedule(make) -> None:
    ratio, best = 0.4, 0.25
    before, after, chosen = drawn(make, {"ratio": ratio, "best": best, "start": 0.5})
    count = len(begun(make()).recipe.dataset)
    assert len(chosen) == round(best * count)
    usual = torch.bincount(before, minlength=count)
    assert int(usual.max() - usual.min()) <= 1  # the baseline's epochs
    found = torch.bincount(after, minlength=count)
    expected = torch.full((count,), (1 - ratio) / count, dtype=torch.float64)
    expected[chosen] += ratio / len(chosen)
    assert chisquare(found, expected * len(after)).pvalue > 0.01
    assert chisquare(found, torch.full((count,), len(after) / count, dtype=torch.float64)).pvalue < 1e-6


def test_the_best_have_the_lowest_loss() -> None:
    recipe = quality_annealing.apply(images(), {"best": 0.25})
    training = begun(recipe)
    recipe.milestones[0].action(training)
    training.model.eval()
    batch = recipe.loader(torch.arange(32), training)
    with torch.no_grad():
        losses = recipe.loss(training.model(batch.inputs), batch)
    assert set(training.kept["quality_annealing"].tolist()) == set(losses.argsort()[:8].tolist())


def test_a_ratio_of_one_leaves_nothing_but_the_best_and_the_control_looks_at_nothing() -> None:
    _, after, chosen = drawn(vectors, {"ratio": 1.0, "start": 0.5}, steps=40)
    assert set(after.tolist()) <= set(chosen.tolist())
    positions = torch.arange(100)
    assert torch.equal(annealed(positions, torch.tensor([7]), 0.0, torch.Generator()), positions)

    def refuse(outputs, batch):
        raise AssertionError("the control was to look at nothing")

    control = quality_annealing.apply(vectors(loss=refuse), {"quality": "random", "best": 0.5})
    training = begun(control)
    control.milestones[0].action(training)
    assert len(set(training.kept["quality_annealing"].tolist())) == 32


def test_until_it_begins_training_is_the_baselines() -> None:
    recipe, models = quality_annealing.apply(vectors(), {"start": 0.9}), []
    run(recipe, 20, look=lambda training: models.append([w.detach().clone() for w in training.model.parameters()]))
    plain = []
    run(vectors(), 20, look=lambda training: plain.append([w.detach().clone() for w in training.model.parameters()]))
    equal = [all(map(torch.equal, one, other)) for one, other in zip(models, plain, strict=True)]
    assert equal[:18] == [True] * 18
    assert same(run(quality_annealing.apply(vectors(), {"ratio": 0.0}), 20).model, run(vectors(), 20).model)


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="scores examples once"):
        quality_annealing.apply(masked_tokens(), {})
    assert run(quality_annealing.apply(masked_tokens(), {"quality": "random"}), 6).losses.isfinite().all()
    for options in ({"ratio": 1.5}, {"start": 1.0}, {"best": 0.0}, {"quality": "taste"}):
        with pytest.raises(InvalidTechnique, match=f"{next(iter(options))} is"):
            quality_annealing.apply(vectors(), options)
