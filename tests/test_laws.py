"""The laws hold for every installed technique, and each law catches a planted fault of its kind."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterable
from typing import NoReturn

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

from effbench import laws, plugins
from effbench.distributed.data_parallel import share_batches
from effbench.errors import Conflict, NotApplicable, Refusal
from effbench.laws.alone import Case
from effbench.laws.described import described
from effbench.laws.finding import Remark
from effbench.laws.observing import Observation
from effbench.recipe import Batch, Recipe, Training
from effbench.techniques import Technique, compose, technique
from effbench.toys import TOYS

torch.set_num_threads(1)

LEAF = "optimization_centric/objective"
CARD = {"paper": "Nobody, Nothing, arXiv:0000.00000", "claim": "none"}
INSTALLED = plugins.load(strict=True).techniques


def broken(technique: Technique, *toys: str, **arguments: object) -> dict[str, str]:
    """Law -> what is wrong, for the laws that `technique` breaks on some toys."""
    chosen = {toy: TOYS[toy] for toy in toys or ("vectors",)}
    return {found.law: str(found) for found in laws.check(technique, toys=chosen, **arguments) if not found.ok}


# --- every installed technique ------------------------------------------------------------------------------------


def processes_of(technique: Technique) -> int:
    """The most processes that it asks for on a toy."""
    most = 1
    for make in TOYS.values():
        with contextlib.suppress(Refusal):
            most = max(most, compose(make(), {technique.name: {}}, {technique.name: technique})[0].processes)
    return most


#: What takes long for each run, and how it takes less: compiling a toy takes half a minute, tracing it a second.
SLOW = {"torch_compile": {"backend": "aot_eager"}}
SEVERAL = [name for name in sorted(INSTALLED) if processes_of(INSTALLED[name]) > 1]
SWIFT = [name for name in sorted(INSTALLED) if name not in {*SLOW, *SEVERAL}]
COMPANY = ("mixup", "progressive_stacking", "stochastic_depth", "label_smoothing", "ema", "gradient_accumulation")
TWO = {toy: TOYS[toy] for toy in ("vectors", "text")}


def lawful(findings: Iterable[laws.Finding]) -> None:
    faults = [str(found) for found in findings if not found.ok]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("name", SWIFT)
def test_a_technique_keeps_the_laws(name):
    lawful(laws.check(INSTALLED[name], INSTALLED))


@pytest.mark.parametrize("name", [*SLOW, *SEVERAL])
def test_a_slow_technique_keeps_the_laws_on_two_toys(name):
    lawful(laws.check(INSTALLED[name], INSTALLED, options=SLOW.get(name), toys=TWO))


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SLOW, *SEVERAL])
def test_a_slow_technique_keeps_the_laws_on_every_toy(name):
    lawful(laws.check(INSTALLED[name], INSTALLED, options=SLOW.get(name)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # torch's own compiler raises some
@pytest.mark.parametrize("name", SLOW)
def test_a_slow_technique_keeps_the_laws_with_its_defaults(name):
    lawful(laws.check(INSTALLED[name], INSTALLED, toys={"vectors": TOYS["vectors"]}))


def test_any_two_techniques_train_or_are_refused_by_name():
    lawful(laws.check_pairs({name: INSTALLED[name] for name in INSTALLED if name not in SLOW}))


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_a_slow_technique_trains_with_any_other_or_is_refused_by_name(name):
    for other in SWIFT:
        lawful(laws.check_pairs({each: INSTALLED[each] for each in (name, other)}, options=SLOW))


@pytest.mark.slow
@pytest.mark.parametrize("name", SEVERAL)
def test_several_processes_train_with_techniques_of_every_branch(name):
    for other in COMPANY:
        for toy, make in TWO.items():
            lawful(laws.check_pair(INSTALLED[name], INSTALLED[other], toy, make(), processes=True))


def test_all_techniques_together_have_one_order():
    found = laws.check_order(INSTALLED)
    assert found.ok, found


# --- the toys -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("toy", TOYS)
def test_a_toy_sees_its_examples_more_than_once(toy):
    from effbench.laws.observing import STEPS, Witness

    witness = Witness(TOYS[toy]())
    seen = witness.observe(witness.recipe).seen
    drawn = STEPS * witness.recipe.batch_size(0.0)
    assert drawn > 2 * len(witness.recipe.dataset)  # so that an order that goes wrong in a later epoch shows
    assert len(seen.chunks) == -(-drawn // len(witness.recipe.dataset))


# --- a technique that does nothing wrong --------------------------------------------------------------------------


@technique(LEAF, **CARD, neutral={"by": 1.0})
def scaled(recipe: Recipe, *, by: float = 0.5) -> Recipe:
    """Scale the loss.

    by: the factor.
    """

    def loss(outputs: Tensor, batch: Batch) -> Tensor:
        return by * recipe.loss(outputs, batch)

    return recipe.wrap(loss=loss)


def test_a_lawful_technique_is_found_lawful_on_every_toy():
    findings = laws.check(scaled)
    assert all(found.ok for found in findings)
    checked = {found.toy for found in findings if found.law == "applies"}
    assert checked == set(TOYS)
    assert {found.law for found in findings} == {
        "described",
        "applies",
        "neutral",
        "fresh",
        "watched",
        "wraps",
        "paired",
    }


# --- one planted fault for each law -------------------------------------------------------------------------------


@technique(LEAF, **CARD)
def choosy(recipe: Recipe) -> Recipe:
    """Take no toy."""
    raise NotApplicable("it wants video")


def test_refusing_every_toy_is_not_green():
    assert "refuses every toy" in broken(choosy)["applies"]
    assert "vectors: it wants video" in broken(choosy)["applies"]


@technique(LEAF, **CARD)
def clumsy(recipe: Recipe) -> Recipe:
    """Break in training."""

    def loss(outputs: Tensor, batch: Batch) -> Tensor:
        raise KeyError("lost")

    return recipe.swap(loss=loss)


@technique(LEAF, **CARD)
def leaving(recipe: Recipe, *, late: bool = False) -> Recipe:
    """Leave the program, at once or in the first step."""

    def leave(*_: object) -> NoReturn:
        raise SystemExit("enough")

    return recipe.wrap(gradient=leave) if late else leave()


@pytest.mark.parametrize("late", [False, True])
def test_leaving_the_program_is_found(late):
    found = laws.check(leaving, options={"late": late}, toys={"vectors": TOYS["vectors"]})
    assert [str(finding.detail) for finding in found if finding.law == "applies"] == [
        f"SystemExit: enough (raised in test_laws.py, line {leaving.function.__code__.co_firstlineno + 5})"
    ]


def test_leaving_is_found_in_pairs_too():
    for options, where in (({}, "composing"), ({"leaving": {"late": True}}, "training")):
        found = laws.check_pair(leaving, scaled, "vectors", TOYS["vectors"](), options=options)
        assert f"{where} raised SystemExit: enough" in found[-1].detail


def test_an_error_that_is_no_refusal_is_found_with_its_place():
    assert "KeyError: 'lost' (raised in test_laws.py, line" in broken(clumsy)["applies"]


@technique(LEAF, **CARD, neutral={"by": 0.0})
def nearly_neutral(recipe: Recipe, *, by: float = 0.1) -> Recipe:
    """Add to the loss, and touch the gradient even where nothing is added.

    by: how much.
    """

    def loss(outputs: Tensor, batch: Batch) -> Tensor:
        return recipe.loss(outputs, batch) * (1.0 + 1e-3) + by

    return recipe.wrap(loss=loss)


def test_neutral_options_that_change_the_weights_are_found():
    fault = broken(nearly_neutral)
    assert set(fault) == {"neutral"}
    assert "{'by': 0.0}" in fault["neutral"]
    assert "tensors differ" in fault["neutral"]


@technique(LEAF, **CARD, neutral={"on": False})
def thirsty(recipe: Recipe, *, on: bool = True) -> Recipe:
    """Draw from torch's global random numbers, which are dropout's.

    on: whether anything is done with what is drawn.
    """

    def transform(batch: Batch, training: Training) -> Batch:
        noise = torch.rand(())
        batch = recipe.transform(batch, training)
        return batch.replace(inputs=batch.inputs + noise) if on else batch

    return recipe.wrap(transform=transform)


def test_a_neutral_technique_must_not_shift_dropout():
    assert set(broken(thirsty)) == {"neutral"}


CALLS: list[int] = []


@technique(LEAF, **CARD)
def remembering(recipe: Recipe) -> Recipe:
    """Count in a global list how often it was called, and weigh by it."""

    def loss(outputs: Tensor, batch: Batch) -> Tensor:
        CALLS.append(1)
        return recipe.loss(outputs, batch) * len(CALLS)

    return recipe.wrap(loss=loss)


@technique(LEAF, **CARD)
def enclosing(recipe: Recipe) -> Recipe:
    """Keep the number of its calls in a closure, which outlives a run."""
    calls = []

    def loss(outputs: Tensor, batch: Batch) -> Tensor:
        calls.append(1)
        return recipe.loss(outputs, batch) * len(calls)

    return recipe.wrap(loss=loss)


@technique(LEAF, **CARD)
def keeping(recipe: Recipe) -> Recipe:
    """Keep the number of its calls in the training, as it should be."""

    def gradient(training: Training, batch: Batch) -> Tensor:
        training.kept["keeping"] = calls = training.kept.get("keeping", 0) + 1
        return recipe.gradient(training, batch.replace(weight=batch.weight * calls))

    return recipe.wrap(gradient=gradient)


@technique(LEAF, **CARD)
def staining(recipe: Recipe) -> Recipe:
    """Write into the data set."""

    def transform(batch: Batch, training: Training) -> Batch:
        training.recipe.dataset.inputs[batch.index] *= 0.9
        return recipe.transform(batch, training)

    return recipe.wrap(transform=transform)


def test_state_that_outlives_a_run_is_found_wherever_it_is():
    assert "a second run trains other weights" in broken(remembering)["fresh"]
    assert "a second run trains other weights" in broken(enclosing)["fresh"]
    assert "trains other weights" in broken(staining)["fresh"]
    assert not broken(keeping)


@technique(LEAF, **CARD)
def rogue(recipe: Recipe) -> Recipe:
    """Leave a mark on torch itself."""
    nn.Dropout.forward = lambda self, inputs: inputs
    return recipe.wrap(loss=lambda outputs, batch: recipe.loss(outputs, batch))


def test_a_technique_that_changes_something_global_is_found(monkeypatch):
    monkeypatch.setattr(nn.Dropout, "forward", nn.Dropout.forward)
    assert "after it the baseline itself trains other weights" in broken(rogue)["fresh"]


@technique(LEAF, **CARD)
def snatching(recipe: Recipe) -> Recipe:
    """Evaluate half the weights, and forget to give the others back."""

    def halved(training: Training) -> nn.Module:
        model = recipe.eval_model(training)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter *= 0.5
        return model

    return recipe.wrap(eval_model=halved)


def test_an_evaluation_that_disturbs_training_is_found():
    assert set(broken(snatching)) == {"watched"}


@technique(LEAF, **CARD)
def pretending(recipe: Recipe) -> Recipe:
    """Say wrap, and discard the old loss."""

    def loss(outputs: Tensor, batch: Batch) -> Tensor:
        return nn.functional.cross_entropy(outputs, batch.targets, reduction="none")

    return recipe.wrap(loss=loss)


@technique(LEAF, **CARD)
def bypassing(recipe: Recipe) -> Recipe:
    """Take a gradient of a loss of its own, so that what other techniques do to the loss is lost."""

    def gradient(training: Training, batch: Batch) -> Tensor:
        losses = nn.functional.cross_entropy(training.forward(batch.inputs), batch.targets, reduction="none")
        (losses * batch.weight).sum().backward()
        return losses.detach()

    return recipe.swap(gradient=gradient)


@technique(LEAF, **CARD)
def tidying(recipe: Recipe) -> Recipe:
    """Forget the milestones of others."""
    return recipe.wrap(milestones=())


@technique(LEAF, **CARD)
def swapping(recipe: Recipe) -> Recipe:
    """Discard the old loss, and say so."""

    def loss(outputs: Tensor, batch: Batch) -> Tensor:
        return nn.functional.cross_entropy(outputs, batch.targets, reduction="none")

    return recipe.swap(loss=loss)


def test_a_wrapped_term_that_is_not_called_is_found():
    assert "wraps the loss, but in 6 steps never calls the old one" in broken(pretending)["wraps"]
    assert "leaves the loss alone, but in 6 steps nothing calls it" in broken(bypassing)["wraps"]
    assert "wraps the milestones" in broken(tidying)["wraps"]
    assert not broken(swapping)


@technique(LEAF, **CARD)
def shifting(recipe: Recipe) -> Recipe:
    """Draw from the global random numbers before the baseline's weights are drawn."""

    def model() -> nn.Module:
        torch.rand(1)
        return recipe.model()

    return recipe.wrap(model=model)


@technique(LEAF, **CARD)
def reordering(recipe: Recipe) -> Recipe:
    """Seed the baseline's generator for a purpose of its own."""

    def transform(batch: Batch, training: Training) -> Batch:
        training.order.manual_seed(training.step)
        return recipe.transform(batch, training)

    return recipe.wrap(transform=transform)


@technique(LEAF, **CARD)
def drawing(recipe: Recipe) -> Recipe:
    """Draw from the generator that is there for techniques, and make weights of its own after the baseline's."""

    def model() -> nn.Module:
        made = recipe.model()
        with torch.no_grad():
            next(made.parameters()).add_(torch.rand(1))
        return made

    def transform(batch: Batch, training: Training) -> Batch:
        chosen = torch.rand(len(batch), generator=training.rng) < 0.9
        return recipe.transform(batch, training)[chosen]

    return recipe.wrap(model=model, transform=transform)


def test_other_initial_weights_and_another_order_are_found():
    assert "does not start from the baseline's initial weights" in broken(shifting)["paired"]
    assert "yields another order: " in broken(reordering)["paired"]
    assert "of chunk 1 differ" in broken(reordering)["paired"]
    assert not broken(drawing)


@technique(LEAF, paper="Nobody, Nothing", claim=" ", after=["label_smoothin"])
def undescribed(recipe: Recipe, *, by: float = 0.5, and_by: float = 0.5) -> Recipe:
    """Scale

    and_by: another factor.
    """
    return recipe


def test_every_gap_in_a_description_is_found():
    detail = described(undescribed, {"label_smoothing"})
    assert "begin with one line that is a sentence, found 'Scale'" in detail
    assert "explains the option, as in 'by: ...'" in detail
    assert "and_by: ..." not in detail
    assert "arXiv:1710.09412" in detail
    assert "claim is empty" in detail
    assert "after names 'label_smoothin', which does not exist; did you mean 'label_smoothing'?" in detail
    assert described(scaled) == ""


def test_file_function_and_folder_of_a_built_in_technique_agree():
    mixup = INSTALLED["mixup"]
    assert described(mixup) == ""
    elsewhere = dataclasses.replace(mixup, leaf="data_centric/sampling")
    assert "should lie in effbench_techniques.data_centric.sampling.mixup" in described(elsewhere)

    def mix_up(recipe):
        """Mix."""

    mix_up.__module__ = mixup.function.__module__
    assert "should lie in effbench_techniques.data_centric.regularization.mix_up" in described(
        dataclasses.replace(mixup, function=mix_up)
    )


@technique("system_centric/model", **CARD)
def sharing(recipe: Recipe, *, forget: bool = False) -> Recipe:
    """Share each batch between two processes, and add up their gradients.

    forget: add up nothing, a fault.
    """

    def half(batch: Batch, training: Training) -> Batch:
        return recipe.transform(batch, training)[training.group.rank :: 2]

    def gradient(training: Training, batch: Batch) -> Tensor:
        losses = recipe.gradient(training, batch)
        for parameter in training.model.parameters():
            if not forget:
                parameter.grad = training.group.sum(parameter.grad)
        return losses

    return recipe.swap(processes=2).wrap(transform=half, gradient=gradient)


def test_processes_that_do_not_train_the_weights_of_one_are_found_unless_they_are_not_meant_to():
    case = Case.of(sharing, {"forget": True}, TOYS["text"]())
    fault = laws.LAWS["parallel"](case)
    assert "the weights of 2 processes differ from those of one by" in fault
    assert "the tolerance is 0.0001" in fault
    lenient = dataclasses.replace(case, technique=dataclasses.replace(sharing, tolerance=10.0))
    assert laws.LAWS["parallel"](lenient) == ""
    unequal = dataclasses.replace(case, technique=dataclasses.replace(sharing, unequal="nothing is added up"))
    remark = laws.LAWS["parallel"](unequal)
    assert isinstance(remark, Remark)
    assert remark.endswith("of the way that training moved these: nothing is added up")


def test_weights_that_are_said_to_be_unequal_must_be_but_not_lost():
    case = Case.of(sharing, {}, TOYS["text"]())
    liar = dataclasses.replace(case, technique=dataclasses.replace(sharing, unequal="it pretends"))
    assert "it says that they are unequal (it pretends), and yet after 6 steps" in laws.LAWS["parallel"](liar)
    untrained = Observation({name: 2 * w for name, w in case.plain.seen.initial.items()}, case.run.seen)
    lost = dataclasses.replace(liar, run=untrained)
    assert "as if nothing had been learnt" in laws.LAWS["parallel"](lost)
    assert not isinstance(laws.LAWS["parallel"](lost), Remark)
    other = dataclasses.replace(case, run=Observation({"its own": torch.ones(1)}, case.run.seen))
    assert "the models do not have the same weights" in laws.LAWS["parallel"](other)
    assert not isinstance(laws.LAWS["parallel"](other), Remark)
    said = dataclasses.replace(other, technique=liar.technique)
    assert isinstance(laws.LAWS["parallel"](said), Remark)
    assert laws.LAWS["parallel"](said).endswith(": it pretends")


@technique("system_centric/model", **CARD, unequal="chance decides", races=True)
def racing(recipe: Recipe) -> Recipe:
    """Share each batch between two processes, and let chance say how much of the gradient counts."""

    def gradient(training: Training, batch: Batch) -> Tensor:
        luck = training.group.agree(0.5 + int.from_bytes(os.urandom(4), "big") / 2**32)
        return recipe.gradient(training, batch.replace(weight=batch.weight * luck))

    return share_batches(recipe, 2).wrap(gradient=gradient)


def test_what_races_is_not_compared_with_itself_and_that_is_said():
    findings = laws.check(racing, toys={"patches": TOYS["patches"]})
    assert all(found.ok for found in findings)
    remarks = {found.law: found.detail for found in findings if found.detail}
    assert set(remarks) == {"fresh", "watched", "parallel"}
    assert "processes race" in remarks["fresh"]
    assert remarks["parallel"].endswith(": chance decides")
    steady = dataclasses.replace(racing, races=False)
    assert "a second run trains other weights" in broken(steady, "patches")["fresh"]


def test_a_term_that_only_another_rank_calls_is_called():
    @technique("system_centric/model", **CARD)
    def divided(recipe: Recipe) -> Recipe:
        """Let rank 1 alone look at the loss."""

        def loss(outputs: Tensor, batch: Batch) -> Tensor:
            return recipe.loss(outputs, batch) if dist.get_rank() == 1 else outputs.flatten(1).sum(1)

        return recipe.swap(processes=2).wrap(loss=loss)

    assert laws.LAWS["wraps"](Case.of(divided, {}, TOYS["patches"]())) == ""


def test_batch_statistics_and_dropout_are_no_matter_of_parallelism():
    findings = laws.check(sharing, toys={toy: TOYS[toy] for toy in ("vectors", "masked_text")})
    assert all(found.ok for found in findings)
    compared = {found.toy: found.detail for found in findings if found.law == "parallel"}
    assert compared["masked_text"] == ""
    assert "batch statistics or dropout of its own" in compared["vectors"]


# --- techniques in company ----------------------------------------------------------------------------------------


def faults_of(one: Technique, other: Technique) -> dict[str, str]:
    findings = laws.check_pair(one, other, "vectors", TOYS["vectors"]())
    return {found.law: str(found) for found in findings if not found.ok}


@technique(LEAF, **CARD)
def jealous(recipe: Recipe) -> Recipe:
    """Break where another technique was there before."""
    if recipe.history:
        raise ValueError("I was to be alone")
    return recipe


@technique(LEAF, **CARD)
def vague(recipe: Recipe) -> Recipe:
    """Refuse company without a name."""
    if recipe.history:
        raise Conflict("this does not go together")
    return recipe


@technique(LEAF, **CARD)
def exploding(recipe: Recipe) -> Recipe:
    """Make weights infinite where another technique has wrapped the loss."""

    def update(training: Training) -> None:
        recipe.update(training)
        if any(term == "loss" for _, term, _ in recipe.history):
            with torch.no_grad():
                next(training.model.parameters()).fill_(float("inf"))

    return recipe.wrap(update=update)


@technique(LEAF, **CARD)
def zealous(recipe: Recipe) -> Recipe:
    """Break in training where another technique has wrapped the loss."""

    def update(training: Training) -> None:
        if any(term == "loss" for _, term, _ in recipe.history):
            raise IndexError("out of luck")
        recipe.update(training)

    return recipe.wrap(update=update)


def test_pairs_that_break_are_found():
    a_scaled = dataclasses.replace(scaled, leaf="data_centric/sampling")  # goes first
    assert "composing raised ValueError: I was to be alone" in faults_of(a_scaled, jealous)["pairs"]
    assert "the conflict does not name both: this does not go together" in faults_of(a_scaled, vague)["pairs"]
    assert "are not finite" in faults_of(a_scaled, exploding)["pairs"]
    assert "training raised IndexError: out of luck" in faults_of(a_scaled, zealous)["pairs"]
    assert not faults_of(a_scaled, keeping)


def test_pairs_that_are_refused_by_name_are_fine():
    assert not faults_of(
        swapping, dataclasses.replace(scaled, leaf="data_centric/sampling")
    )  # a conflict over the loss
    assert not faults_of(choosy, scaled)


APPLIED: list[int] = []


@technique(LEAF, **CARD)
def fickle(recipe: Recipe) -> Recipe:
    """Change another term every time."""
    APPLIED.append(1)
    if len(APPLIED) % 2:
        return recipe.wrap(update=lambda training: recipe.update(training))
    return recipe.wrap(loss=lambda outputs, batch: recipe.loss(outputs, batch))


def test_an_order_of_naming_that_matters_is_found():
    assert "the order of naming matters" in faults_of(fickle, scaled)["sets"]


def test_techniques_that_wait_for_each_other_are_found():
    first = dataclasses.replace(scaled, after=("keeping",))
    second = dataclasses.replace(keeping, after=("scaled",))
    found = laws.check_order({"scaled": first, "keeping": second, "jealous": jealous})
    assert not found.ok
    assert "keeping, scaled, keeping: each wants to go after the one that is named next" in found.detail
    assert laws.check_order({"scaled": first, "keeping": keeping}).ok


def test_pairs_take_turns_on_the_toys():
    known = {each.name: each for each in (scaled, keeping, swapping)}
    findings = list(laws.check_pairs(known))
    assert len({found.toy for found in findings}) == 3
    assert sorted({found.technique for found in findings}) == ["keeping+scaled", "keeping+swapping", "scaled+swapping"]
