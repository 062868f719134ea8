"""The survey's tree, and what is known of each leaf: which verdicts, on how many comparisons; empty leaves too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from effbench.analysis.comparison import Comparison
from effbench.analysis.verdicts import Verdict
from effbench.report.sources import Source
from effbench.taxonomy import LEAVES, TAXONOMY

ELSEWHERE = "elsewhere"  # techniques whose leaf nobody says, or that the survey does not have


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf: what it is about, which techniques lie there, and what the comparisons of them alone say."""

    branch: str
    name: str
    about: str
    tried: tuple[str, ...]  # techniques with records here
    others: tuple[str, ...]  # techniques that are known and nobody ran
    counts: Mapping[str, int]  # verdict -> comparisons (set of that technique alone, on one workload)

    @property
    def total(self) -> int:
        """How many comparisons there are."""
        return sum(self.counts.values())


def taxonomy_map(comparisons: Sequence[Comparison], sources: Mapping[str, Source]) -> list[Leaf]:
    """Return all leaves in the survey's order, then one for techniques whose leaf is not known.

    A set of several techniques counts for none of their leaves: nobody knows which of them did it.
    """
    verdicts: dict[str, Counter[str]] = {}
    tried: dict[str, set[str]] = {}
    for comparison in comparisons:
        for each in comparison.results:
            for name in each.techniques:
                tried.setdefault(_leaf(name, sources), set()).add(name)
            if len(each.techniques) == 1 and each.verdict is not None:
                verdicts.setdefault(_leaf(next(iter(each.techniques)), sources), Counter())[each.verdict.value] += 1
    known: dict[str, set[str]] = {}
    for source in sources.values():
        known.setdefault(_leaf(source.name, sources), set()).add(source.name)
    leaves = [(branch, leaf, about) for branch, found in TAXONOMY.items() for leaf, about in found.items()]
    if ELSEWHERE in {**tried, **known}:
        leaves.append(("", ELSEWHERE, "techniques without a leaf of the survey"))
    return [
        Leaf(
            branch,
            name,
            about,
            tuple(sorted(tried.get(place, ()))),
            tuple(sorted(known.get(place, set()) - tried.get(place, set()))),
            {verdict.value: verdicts.get(place, Counter())[verdict.value] for verdict in Verdict},
        )
        for branch, name, about in leaves
        for place in [f"{branch}/{name}" if branch else name]
    ]


def _leaf(name: str, sources: Mapping[str, Source]) -> str:
    leaf = sources[name].leaf if name in sources else ""
    return leaf if leaf in LEAVES else ELSEWHERE
