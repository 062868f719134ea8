"""The laws that a technique keeps by itself.

Each returns what is wrong, "" where nothing is, a remark where that is worth knowing, None where it has nothing to say.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from effbench.laws.finding import Remark
from effbench.laws.observing import CALLED, STEPS, Observation, Weights, Witness, difference
from effbench.laws.scoped import scoped_by
from effbench.recipe import Recipe
from effbench.techniques import Technique, compose
from effbench.terms import step

_RACES = Remark("not compared: processes race, so that no two runs are alike")


@dataclass(frozen=True, slots=True)
class Case:
    """A technique on a toy: the baseline's run and the technique's."""

    technique: Technique
    options: Mapping[str, Any]
    witness: Witness
    plain: Observation  # of the baseline
    recipe: Recipe
    run: Observation  # of the technique
    watched: Observation  # a second run, in which the model was evaluated after every step

    @classmethod
    def of(cls, technique: Technique, options: Mapping[str, Any], baseline: Recipe) -> Case:
        """Run both.

        Raises:
            Refusal: the technique does not apply to this baseline.
        """
        witness = Witness(baseline)
        plain = witness.observe(witness.recipe)  # before the technique can have touched anything
        recipe = applied(technique, options, witness.recipe)
        run, watched = witness.observe(recipe), witness.observe(recipe, watched=True)
        return cls(technique, options, witness, plain, recipe, run, watched)

    @property
    def repeats(self) -> bool:
        """Whether two runs should end alike: not where several processes race on purpose."""
        return self.recipe.processes == 1 or not self.technique.races

    def unlike(self, recipe: Recipe) -> str:
        """Say how the weights that `recipe` trains differ from those of the technique's run."""
        return difference(self.witness.observe(recipe).weights, self.run.weights)


def applied(technique: Technique, options: Mapping[str, Any], recipe: Recipe) -> Recipe:
    """Return what the technique alone makes of a recipe."""
    return compose(recipe, {technique.name: options}, {technique.name: technique})[0]


def neutral(case: Case) -> str | None:
    """With its neutral options, a technique trains the baseline's weights bit by bit."""
    if case.technique.neutral is None:
        return None
    options = {**case.options, **case.technique.neutral}
    run = case.witness.observe(applied(case.technique, options, case.witness.recipe))
    found = difference(run.weights, case.plain.weights)
    return found and f"with {options} the weights after {STEPS} steps are not the baseline's: {found}"


def fresh(case: Case) -> str | None:
    """No state outlives a run: two runs in one process train the same weights, and the baseline stays what it was."""
    if case.repeats:
        second = difference(case.watched.weights, case.run.weights) and case.unlike(case.recipe)
        if second:
            return f"a second run trains other weights, so something outlives the run: {second}"
        if anew := case.unlike(applied(case.technique, case.options, case.witness.recipe)):
            return f"the recipe made anew trains other weights, so something outlives the recipe: {anew}"
    found = difference(case.witness.observe(case.witness.recipe).weights, case.plain.weights)
    if found:
        return f"after it the baseline itself trains other weights, so something global was changed: {found}"
    return "" if case.repeats else _RACES


def watched(case: Case) -> str | None:
    """Evaluating on the way changes nothing: preparing the evaluated model leaves the trained one alone."""
    if not case.repeats:
        return _RACES
    found = difference(case.watched.weights, case.run.weights)
    if found and not case.unlike(case.recipe):  # else it is no matter of looking
        return f"a run that is looked at after every step trains other weights: {found}"
    return ""


def wraps(case: Case) -> str | None:
    """A wrapped term really calls the old one, and one that is left alone is still used."""
    changed = {term for _, term, _ in case.recipe.history}
    swapped = {term for verb, term, _ in case.recipe.history if verb == "swap"}
    unused = [term for term in (*CALLED, "milestones") if term not in swapped and not case.run.seen.calls[term]]
    wrapped = [term for term in unused if term in changed]
    if wrapped:
        terms = " and ".join(wrapped)
        return f"wraps the {terms}, but in {STEPS} steps never calls the old one; to discard it, use recipe.swap"
    if unused:
        terms = " and ".join(unused)
        return f"leaves the {terms} alone, but in {STEPS} steps nothing calls it: what others change there is lost"
    return ""


def paired(case: Case) -> str | None:
    """The baseline's example order and initial weights are untouched.

    They are compared where the technique uses them: the weights that the baseline's factory made, and the positions
    that its sampler drew from a data set of the same size. Dropout's masks are not promised: a technique that adds a
    forward pass shifts them.
    """
    swapped = {term for verb, term, _ in case.recipe.history if verb == "swap"}
    ours, plain = case.run.seen, case.plain.seen
    if "model" not in swapped and (found := difference(ours.initial, plain.initial)):
        return f"the model does not start from the baseline's initial weights: {found}"
    if "sampler" not in swapped and len(case.recipe.dataset) == len(case.witness.recipe.dataset):
        for number, (one, other) in enumerate(zip(ours.chunks, plain.chunks, strict=False)):
            if not torch.equal(one, other):
                moved = int((one != other).sum()) if len(one) == len(other) else len(other)
                return f"the baseline's sampler yields another order: {moved} positions of chunk {number} differ"
    return ""


def parallel(case: Case) -> str | None:
    """Several processes train the weights of one, within the technique's tolerance, or it says why they do not.

    What it says must be true: they do differ, and yet they are nearer to the weights of one than what training began
    with. Toys with batch statistics or dropout are left out: there the processes see less than one would, or other
    masks.
    """
    technique, run, plain = case.technique, case.run, case.plain
    if case.recipe.processes == 1:
        return None
    if _depends_on_the_batch(case.witness.recipe.model()):
        return Remark("not compared: each process has batch statistics or dropout of its own")
    if run.weights.keys() != plain.weights.keys():
        told = difference(run.weights, plain.weights)
        return Remark(f"not compared, {told}: {technique.unequal}") if technique.unequal else told
    off = _distance(run.weights, plain.weights) / _distance(plain.weights, plain.seen.initial)
    differ = (
        f"after {STEPS} steps the weights of {case.recipe.processes} processes differ from those of one by {off:.2g} "
        "of the way that training moved these"
    )
    if technique.unequal:
        if off <= technique.tolerance:
            return f"it says that they are unequal ({technique.unequal}), and yet {differ}"
        return Remark(f"{differ}: {technique.unequal}") if off < 1.0 else f"{differ}, as if nothing had been learnt"
    return "" if off <= technique.tolerance else f"{differ}; the tolerance is {technique.tolerance:g}"


def scoped(case: Case) -> str | None:
    """Stepping a weight, its optimizer and its update look no farther than the technique's scope says."""
    if case.technique.scope == "model" or case.recipe.processes > 1:
        return None
    if not {"optimizer", "update"} & {term for _, term, _ in case.recipe.history}:
        return None
    plain = dataclasses.replace(case.witness.recipe, update=step)  # clipping by the norm asks for all weights
    return scoped_by(case.technique.scope, applied(case.technique, case.options, plain))


#: name -> law, in the order in which they are checked.
LAWS: Mapping[str, Callable[[Case], str | None]] = {
    law.__name__: law for law in (neutral, fresh, watched, wraps, paired, parallel, scoped)
}


def _depends_on_the_batch(model: nn.Module) -> bool:
    kinds = (nn.modules.batchnorm._BatchNorm, nn.modules.dropout._DropoutNd)  # noqa: SLF001 - the bases of the families
    return any(isinstance(module, kinds) for module in model.modules())


def _distance(one: Weights, other: Weights) -> float:
    """Return the Euclidean distance of two sets of weights."""
    return float(torch.stack([(one[name].double() - other[name].double()).norm() for name in one]).norm())
