"""The standard workloads: what they say of themselves is true, and they judge every example once."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from effbench import data, workloads
from effbench.budget import Budget
from effbench.clock import StepClock
from effbench.errors import UnknownName
from effbench.recipe import Batch, Examples
from effbench.terms import IGNORED
from effbench.train import start, train
from effbench.workloads import effbench_workloads, evaluation
from effbench.workloads.baselines import examples_of, splits
from effbench.workloads.masking import evaluate_masked, mask, masked, masked_examples

torch.set_num_threads(1)

CPU = torch.device("cpu")
WORKLOADS = {workload.name: workload for workload in effbench_workloads()}
TRAITS = {"image", "any_resolution", "text", "causal", "masked", "padded", "clipped"}


@pytest.fixture(params=WORKLOADS)
def workload(request):
    return WORKLOADS[request.param]


def test_every_workload_has_a_file_of_its_name():
    files = {file.stem for file in Path(workloads.__file__).parent.glob("*.py")}
    helpers = {"__init__", "workload", "baselines", "evaluation", "masking"}
    assert set(WORKLOADS) == files - helpers
    assert len(WORKLOADS) == 11


def test_offering_workloads_reads_no_data(monkeypatch):
    def load(name: str) -> None:
        raise AssertionError(f"{name} was read")

    splits.cache_clear()
    monkeypatch.setattr(data, "load", load)
    assert len(effbench_workloads()) == 11


def test_what_a_workload_says_of_itself_is_true(workload):
    recipe = workload.recipe(CPU)
    model = recipe.model()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    said = re.search(r"([\d.]+) k parameters$", workload.model)
    digits = len(said[1].partition(".")[2])
    assert float(said[1]) == round(parameters / 1000, digits or None)

    groups = recipe.optimizer(model).param_groups
    assert float(re.search(r"peak rate ([\d.e-]+) \(swept\)", workload.baseline)[1]) == groups[0]["lr"]
    assert float(re.search(r"decay ([\d.e-]+)", workload.baseline)[1]) == groups[0]["weight_decay"]
    assert f"batch {recipe.batch_size(0.0)}" in workload.baseline
    warmup = int(re.search(r"(\d+) % warm-up", workload.baseline)[1]) / 100
    assert recipe.lr_schedule(warmup) == 1.0
    assert recipe.lr_schedule(warmup / 2) < 1.0
    assert recipe.lr_schedule(1.0) == 0.0
    is_clipped = recipe.update.__qualname__ == "clipped_step.<locals>.update"
    assert ("clipping" in workload.baseline) == ("clipped" in recipe.traits) == is_clipped


def test_facts_that_techniques_ask_for(workload):
    recipe = workload.recipe(CPU)
    assert recipe.traits <= TRAITS
    assert ("image" in recipe.traits) == (recipe.dataset.inputs.ndim == 4)
    assert ("text" in recipe.traits) == (recipe.dataset.inputs.dtype == torch.int64)
    assert (recipe.classes is None) == (recipe.dataset.targets.ndim == 2)
    if recipe.classes is not None:
        assert recipe.classes == int(recipe.dataset.targets.max()) + 1
    if "any_resolution" in recipe.traits:
        assert recipe.model()(recipe.dataset.inputs[:2, :, ::2, ::2]).shape == (2, recipe.classes)


def test_a_default_budget_buys_enough_steps_to_learn(workload):
    budget = Budget.parse(workload.budget)
    assert budget.unit == "reference"
    assert 200 <= budget.amount / workload.step_seconds <= 5000


def test_two_steps_and_an_evaluation(workload):
    training = start(workload.recipe(CPU), seed=0)
    for _ in train(training, Budget(2, "steps"), StepClock()):
        assert training.losses.shape == (training.recipe.batch_size(0.0),)
        assert training.losses.isfinite().all()
    metrics = workload.evaluate(training.model, "validation")
    assert all(math.isfinite(value) for value in metrics.values())
    better = metrics[workload.metric] > workload.target
    assert better is not workload.higher_is_better  # two steps do not get there
    assert workload.evaluate(training.model, "test") != metrics


def test_the_smoke_workload_reaches_its_target_in_its_budget():
    workload = WORKLOADS["digits_mlp"]
    training = start(workload.recipe(CPU), seed=0)
    steps = Budget.parse(workload.budget).amount / workload.step_seconds
    for _ in train(training, Budget(int(steps), "steps"), StepClock()):
        pass
    assert workload.evaluate(training.model, "validation")["accuracy"] > workload.target


class KnowsTheFirst(nn.Module):
    """Puts its trust in class 1 where the input is 0, and in class 0 elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.norm = nn.BatchNorm1d(1)
        self.frozen = nn.Sequential(nn.Dropout(0.5)).eval()
        self.seen: list[int] = []

    def forward(self, inputs: Tensor) -> Tensor:
        self.seen.append(len(inputs))
        assert not self.training
        assert not self.norm.training
        right = (inputs == 0).float()
        return self.scale * torch.stack([1 - right, right], 1)


@pytest.mark.parametrize("batch", [1, 3, 7, 500])
def test_every_example_counts_once_whatever_the_batch(monkeypatch, batch):
    monkeypatch.setattr(evaluation, "BATCH", batch)
    model = KnowsTheFirst()
    correct, loss, count = evaluation.score(model, Examples(torch.arange(7), torch.ones(7, dtype=torch.long)))
    assert (correct, count) == (1, 7)
    wrong = math.log(1 + math.exp(2.0))
    assert loss == pytest.approx(6 * wrong + wrong - 2.0, rel=1e-6)
    assert sum(model.seen) == 7
    assert max(model.seen) == min(batch, 7)


def test_evaluation_leaves_the_model_as_it_was():
    model = KnowsTheFirst()
    model.norm.eval()
    modes = [module.training for module in model.modules()]
    random = torch.get_rng_state()
    evaluation.score(model, Examples(torch.arange(7), torch.ones(7, dtype=torch.long)))
    assert [module.training for module in model.modules()] == modes == [True, False, False, False]
    assert torch.equal(torch.get_rng_state(), random)
    assert torch.is_grad_enabled()
    model.scale.square().backward()  # weights that were used without gradients can still have some
    assert model.scale.grad.item() == 4.0


def test_a_model_that_fails_is_left_as_it_was():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2).eval())
    with pytest.raises(RuntimeError):
        evaluation.score(model, Examples(torch.ones(3, 5), torch.zeros(3, dtype=torch.long)))
    assert [module.training for module in model.modules()] == [True, True, False]
    assert torch.is_grad_enabled()


class Indifferent(nn.Module):
    """Finds all tokens equally likely."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, ids: Tensor) -> Tensor:
        return self.logits.expand(*ids.shape, -1)


def test_bits_per_byte_of_an_indifferent_model():
    notes = splits("kjv").notes
    metrics = evaluation.evaluate_causal("kjv", Indifferent(notes["vocabulary"]), "test")
    assert metrics["loss"] == pytest.approx(math.log(notes["vocabulary"]), rel=1e-5)
    assert metrics["bits_per_byte"] == pytest.approx(
        math.log2(notes["vocabulary"]) / notes["bytes_per_token"], rel=1e-5
    )
    assert metrics["tokens"] == examples_of("kjv", "test").targets.numel()


def test_there_are_three_splits():
    with pytest.raises(UnknownName, match="there is no split 'tests'; did you mean 'test'"):
        examples_of("digits", "tests")


def texts(batch: int = 400, length: int = 64, vocabulary: int = 50) -> Tensor:
    return torch.randint(vocabulary, (batch, length), generator=torch.Generator().manual_seed(0))


def test_masks_hide_15_percent_of_which_80_are_masks_and_10_are_others():
    ids = texts()
    inputs, targets = mask(ids, 50, 0.15, torch.Generator().manual_seed(1))
    chosen = targets != IGNORED
    assert torch.equal(targets[chosen], ids[chosen])
    assert torch.equal(inputs[~chosen], ids[~chosen])
    assert chosen.float().mean().item() == pytest.approx(0.15, abs=0.01)
    hidden, same = inputs == 50, inputs == ids
    assert not (hidden & ~chosen).any()
    assert hidden[chosen].float().mean().item() == pytest.approx(0.80, abs=0.03)
    assert same[chosen].float().mean().item() == pytest.approx(0.10 + 0.10 / 50, abs=0.02)
    others = inputs[chosen & ~hidden & ~same]
    assert set(others.tolist()) == set(range(50))


def test_masks_are_part_of_the_baseline_and_drawn_anew():
    training = start(WORKLOADS["kjv_bert"].recipe(CPU), seed=0)
    again = start(WORKLOADS["kjv_bert"].recipe(CPU), seed=0)
    again.rng.manual_seed(5)  # what techniques draw changes nothing
    torch.manual_seed(5)
    batch = Batch(texts(8), texts(8), torch.arange(8))
    transform = masked(50)
    first, second = transform(batch, training), transform(batch, training)
    assert not torch.equal(first.targets, second.targets)
    for mine, theirs in ((first, transform(batch, again)), (second, transform(batch, again))):
        assert torch.equal(mine.inputs, theirs.inputs)
        assert torch.equal(mine.targets, theirs.targets)
    assert torch.equal(first.weight, (first.targets != IGNORED).sum(1).float())
    assert torch.equal(batch.inputs, texts(8))


def test_a_batch_counts_its_masked_tokens():
    training = start(WORKLOADS["kjv_bert"].recipe(CPU), seed=0)
    recipe = training.recipe
    batch = recipe.transform(recipe.loader(torch.arange(16), training), training)
    assert batch.weight.sum().item() == (batch.targets != IGNORED).sum().item()
    assert 80 < batch.weight.sum().item() < 230  # 15 % of 1,024, give or take
    assert int(batch.inputs.max()) == splits("kjv").notes["vocabulary"]


def test_masked_evaluation_is_always_the_same():
    vocabulary = splits("kjv").notes["vocabulary"]
    first = masked_examples("kjv", "validation")
    masked_examples.cache_clear()
    random = torch.get_rng_state()
    again = masked_examples("kjv", "validation")
    assert torch.equal(first.inputs, again.inputs)
    assert torch.equal(first.targets, again.targets)
    metrics = evaluate_masked("kjv", Indifferent(vocabulary + 1), "validation")
    assert metrics["loss"] == pytest.approx(math.log(vocabulary + 1), rel=1e-5)
    assert metrics["tokens"] == int((first.targets != IGNORED).sum())
    assert torch.equal(torch.get_rng_state(), random)
