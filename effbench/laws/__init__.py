"""The laws that every technique keeps, ours or a stranger's, as tests that anybody can run.

    from effbench import laws

    def test_mine():
        for finding in laws.check(mine):
            assert finding.ok, finding

- **described**: docstring, a line for each option, paper, claim and leaf; file, function and folder agree.
- **applies**: it does not refuse every toy, and raises nothing.
- **neutral**: with its neutral options, the weights after six steps are the baseline's bit by bit.
- **fresh**: two runs in one process train the same weights; no state outlives a run, nothing global is changed.
- **watched**: evaluating on the way changes nothing.
- **wraps**: a wrapped term really calls the old one, and one that is left alone is still used.
- **paired**: the baseline's example order and initial weights are untouched.
- **parallel**: several processes train the weights of one, within the technique's tolerance; or it says why they do
  not, and how far they are is remarked.
- **scoped**: stepping a weight, its optimizer and its update look no farther than the technique's scope says.
- **pairs**: any two techniques train to finite weights or are refused by name.
- **sets**: the order of naming makes no difference.

The first nine are about one technique, and `check` checks them on every toy of `effbench.toys` that the technique does
not refuse; the last two are about many, and `check_pairs` and `check_order` check them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from effbench.errors import Refusal
from effbench.laws.alone import LAWS, Case
from effbench.laws.described import described
from effbench.laws.finding import Finding, Remark, explain
from effbench.laws.together import check_order, check_pair, check_pairs, shared_toys
from effbench.recipe import Recipe
from effbench.techniques import Technique
from effbench.toys import TOYS

__all__ = ["LAWS", "Finding", "check", "check_order", "check_pair", "check_pairs", "shared_toys"]


def check(
    technique: Technique,
    known: Mapping[str, Technique] | None = None,
    *,
    options: Mapping[str, Any] | None = None,
    toys: Mapping[str, Callable[[], Recipe]] = TOYS,
) -> list[Finding]:
    """Check the laws that a technique keeps by itself.

    known: other techniques, to look up those that it names.
    options: options to check it with; its defaults where they are not given.
    toys: name -> a function that makes a baseline.
    """
    with torch.random.fork_rng(devices=[]):
        return list(_findings(technique, known or {}, options or {}, toys))


def _findings(
    technique: Technique,
    known: Mapping[str, Technique],
    options: Mapping[str, Any],
    toys: Mapping[str, Callable[[], Recipe]],
) -> Iterator[Finding]:
    name = technique.name
    detail = described(technique, known)
    yield Finding("described", name, "", ok=not detail, detail=detail)
    refused: dict[str, str] = {}
    for toy, make in toys.items():
        try:
            case = Case.of(technique, options, make())
        except Refusal as why:
            refused[toy] = str(why)
        except KeyboardInterrupt:
            raise
        except BaseException as fault:  # noqa: BLE001 - that is what is looked for, SystemExit too
            yield Finding("applies", name, toy, ok=False, detail=explain(fault))
        else:
            yield from _kept(case, toy)
    if len(refused) == len(toys):
        reasons = "; ".join(f"{toy}: {why}" for toy, why in refused.items())
        yield Finding("applies", name, "", ok=False, detail=f"it refuses every toy, so nothing was checked. {reasons}")


def _kept(case: Case, toy: str) -> Iterator[Finding]:
    yield Finding("applies", case.technique.name, toy, ok=True)
    for law, check_law in LAWS.items():
        try:
            detail = check_law(case)
        except KeyboardInterrupt:
            raise
        except BaseException as fault:  # noqa: BLE001 - as above
            detail = explain(fault)
        if detail is not None:
            is_kept = not detail or isinstance(detail, Remark)
            yield Finding(law, case.technique.name, toy, ok=is_kept, detail=detail)
