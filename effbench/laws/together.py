"""The laws of techniques in company: any two train or are refused by name, and the order of naming is nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations
from types import MappingProxyType
from typing import Any

import torch

from effbench.errors import Conflict, Refusal
from effbench.laws.finding import Finding, explain
from effbench.laws.observing import Witness
from effbench.recipe import Recipe
from effbench.techniques import Technique, compose, in_order
from effbench.toys import TOYS

Known = Mapping[str, Technique]
Options = Mapping[str, Mapping[str, Any]]  # technique -> options; its defaults where it is not there

STEPS = 4  # enough for every phase of a run, and there are many pairs


def check_pairs(known: Known, *, options: Options = MappingProxyType({}), processes: bool = False) -> Iterator[Finding]:
    """Check every two techniques on a toy that takes both.

    processes: also train the pairs that need more than one process, which is slow; else they are composed alone.
    """
    baselines = {name: make() for name, make in TOYS.items()}
    for (one, other), toy in shared_toys(known, options=options).items():
        pair = known[one], known[other]
        yield from check_pair(*pair, toy, baselines[toy], options=options, processes=processes)


def shared_toys(known: Known, *, options: Options = MappingProxyType({})) -> dict[tuple[str, str], str]:
    """Return a toy that takes both, for every two techniques in order of their names.

    Where several do, they take turns; pairs that none takes are left out.
    """
    baselines = {name: make() for name, make in TOYS.items()}
    takes = {
        name: [toy for toy, baseline in baselines.items() if _takes(baseline, technique, options.get(name, {}))]
        for name, technique in known.items()
    }
    shared = {}
    for number, (one, other) in enumerate(combinations(sorted(known), 2)):
        if both := [toy for toy in takes[one] if toy in takes[other]]:
            shared[one, other] = both[number % len(both)]
    return shared


def check_pair(
    one: Technique,
    other: Technique,
    toy: str,
    baseline: Recipe,
    *,
    options: Options = MappingProxyType({}),
    processes: bool = False,
) -> list[Finding]:
    """Check that two techniques train to finite weights or are refused by name, whichever is named first."""
    known = {technique.name: technique for technique in (one, other)}
    name = "+".join(known)

    def found(law: str, detail: str) -> Finding:
        return Finding(law, name, toy, ok=not detail, detail=detail)

    witness = Witness(baseline)
    outcomes: list[tuple[object, object]] = []
    for names in permutations(known):
        try:
            recipe, order = compose(witness.recipe, {each: options.get(each, {}) for each in names}, known)
            outcomes.append((order, recipe.history))
        except Refusal as why:
            outcomes.append((type(why).__name__, str(why)))
            if isinstance(why, Conflict) and not all(each in str(why) for each in known):
                return [found("pairs", f"the conflict does not name both: {why}")]
        except KeyboardInterrupt:
            raise
        except BaseException as fault:  # noqa: BLE001 - that is what is looked for, SystemExit too
            return [found("pairs", f"composing raised {explain(fault)}")]
    first, second = outcomes
    sets = found("sets", "" if first == second else f"the order of naming matters: {first} or {second}")
    if isinstance(first[0], str) or (recipe.processes > 1 and not processes):
        return [sets]
    return [sets, found("pairs", _trouble(witness, recipe))]


def check_order(known: Known) -> Finding:
    """Check that all techniques together have one order, whatever the order in which they are named."""
    names = sorted(known)
    try:
        orders = [in_order(names, known), in_order(names[::-1], dict(reversed([*known.items()])))]
    except Conflict as circle:
        return Finding("sets", "all techniques", "", ok=False, detail=str(circle))
    detail = "" if orders[0] == orders[1] else f"the order of naming matters: {_first_unequal(orders)}"
    return Finding("sets", "all techniques", "", ok=not detail, detail=detail)


def _takes(baseline: Recipe, technique: Technique, options: Mapping[str, Any]) -> bool:
    try:
        compose(baseline, {technique.name: options}, {technique.name: technique})
    except Refusal:
        return False
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - a law that a technique keeps alone will tell
        return False
    return True


def _trouble(witness: Witness, recipe: Recipe) -> str:
    try:
        weights = witness.observe(recipe, steps=STEPS).weights
    except Refusal:
        return ""
    except KeyboardInterrupt:
        raise
    except BaseException as fault:  # noqa: BLE001 - as above
        return f"training raised {explain(fault)}"
    broken = [name for name, tensor in weights.items() if not torch.isfinite(tensor).all()]
    return f"{len(broken)} of {len(weights)} tensors are not finite, {broken[0]} first" if broken else ""


def _first_unequal(orders: Sequence[Sequence[str]]) -> str:
    return next(f"{one} or {other}" for one, other in zip(*orders, strict=True) if one != other)
