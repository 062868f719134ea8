"""A suite: which techniques to compare, on which workloads, under which budget."""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from effbench.budget import Budget
from effbench.errors import EffbenchError, InvalidSuite, UnknownName
from effbench.records import canonical, label
from effbench.toml import Place, literal

if TYPE_CHECKING:
    from effbench.plugins import Plugins
    from effbench.workloads.workload import Workload

Set = Mapping[str, Mapping[str, Any]]  # technique -> options; the baseline is the empty set

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_SEEDS = 2**63


@dataclass(frozen=True, slots=True)
class Suite:
    """What to compare, as plain values. The baseline, which is the empty set, is always there and comes first."""

    name: str  # of the suite, and of its folder below results/
    workloads: tuple[str, ...]
    seeds: tuple[int, ...]
    sets: tuple[Set, ...] = ()
    only: Mapping[str, Sequence[Set]] = field(default_factory=dict)  # workload -> sets compared on it alone, on top
    budget: str = ""  # of each trial; "" is the workload's own
    budgets: Mapping[str, str] = field(default_factory=dict)  # workload -> budget, where it is not the suite's
    total: str = ""  # wall time of the whole suite; "" is without end
    summary: str = ""
    ladder: tuple[float, ...] = ()  # shares of the budget to compare at; () is the budget itself alone
    per_step: bool = False  # compare also at as many steps as the budget buys the baseline
    factorial: Mapping[str, Any] = field(default_factory=dict)  # what `sets` crosses: techniques, and the fraction run
    path: str = ""  # of the file that it was read from

    def __post_init__(self) -> None:
        """Put the baseline first."""
        object.__setattr__(self, "sets", ({}, *(chosen for chosen in self.sets if chosen)))

    def budget_of(self, workload: Workload) -> str:
        """Return the budget of a trial of `workload`, as it is written."""
        return self.budgets.get(workload.name) or self.budget or workload.budget

    def rungs_of(self, workload: Workload, more_units: Iterable[str] = ()) -> list[Budget]:
        """Return the budgets at which `workload` is compared, as the ladder lists them."""
        whole = Budget.parse(self.budget_of(workload), more_units=more_units)
        return [Budget(share * whole.amount, whole.unit) for share in self.ladder] or [whole]

    def sets_of(self, workload: str) -> list[Set]:
        """Return the sets that are compared on a workload, the baseline first."""
        return [*self.sets, *self.only.get(workload, ())]

    @property
    def trials(self) -> int:
        """How many trials there are."""
        rungs = max(1, len(self.ladder)) * (2 if self.per_step else 1)
        return sum(len(self.sets_of(workload)) for workload in self.workloads) * len(self.seeds) * rungs

    @property
    def total_seconds(self) -> float | None:
        """The wall seconds that the whole suite may take, None where it has no end."""
        return wall_seconds(self.total, "total") if self.total else None

    def override(
        self,
        *,
        budget: str = "",
        total: str = "",
        seeds: Sequence[int] = (),
        techniques: Iterable[Set] = (),
        workloads: Sequence[str] = (),
    ) -> Suite:
        """Return a suite in which something is different. Check it again: nothing is checked here.

        budget: of each trial, of whichever workload.
        techniques: sets that come on top of those of the suite; those that it has are left out.
        workloads: train on these alone, be they in the suite or not.
        """
        listed = {canonical(chosen) for chosen in self.sets}
        more = [chosen for chosen in techniques if canonical(chosen) not in listed]
        chosen = tuple(workloads) or self.workloads
        kept = {} if budget else {name: own for name, own in self.budgets.items() if name in chosen}
        return dataclasses.replace(
            self,
            budget=budget or self.budget,
            budgets=kept,
            total=total or self.total,
            seeds=tuple(seeds) or self.seeds,
            sets=(*self.sets, *{canonical(new): new for new in more}.values()),
            only={name: own for name, own in self.only.items() if name in chosen},
            workloads=chosen,
        )

    def check(self, plugins: Plugins) -> None:
        """Do nothing where all is well.

        Raises:
            InvalidSuite: says all that is wrong, each thing with its place, value and the near right name.
        """
        if found := list(faults(self, plugins)):
            raise InvalidSuite("\n".join(f"suite {self.name!r}: {why}" for _, why in found))


def faults(suite: Suite, plugins: Plugins) -> Iterator[tuple[Place, str]]:
    """Yield all that is wrong with a suite: the place, as in its TOML file, and what is wrong there."""
    if not _NAME.fullmatch(suite.name):
        yield ("name",), f"name = {literal(suite.name)}: it names a folder, so write letters, digits, _, - and . only"
    yield from _listed("workloads", suite.workloads)
    for position, name in enumerate(suite.workloads):
        if name not in plugins.workloads:
            yield ("workloads", position), str(UnknownName("workload", name, plugins.workloads))
    yield from _listed("seeds", suite.seeds)
    for position, seed in enumerate(suite.seeds):
        if type(seed) is not int or not 0 <= seed < _SEEDS:
            yield ("seeds", position), f"seeds: {seed!r} should be a whole number from 0 to 2**63 - 1"
    yield from _listed("ladder", suite.ladder, may_be_empty=True)
    for position, share in enumerate(suite.ladder):
        if not 0.0 < share < math.inf:
            yield ("ladder", position), f"ladder: {literal(share)} is no positive share of the budget, such as 0.5 or 2"
    yield from _wrong_budgets(suite, plugins)
    if strange := list(_no_sets(suite.sets[1:])):
        yield from strange
        return
    yield from _wrong_sets(suite.sets[1:], plugins)
    yield from _wrong_only(suite, plugins)


def _listed(key: str, values: Sequence[Any], *, may_be_empty: bool = False) -> Iterator[tuple[Place, str]]:
    if not values and not may_be_empty:
        yield (key,), f"{key} = []: list at least one"
    for position, value in enumerate(values):
        if value in values[:position]:
            yield (key, position), f"{key} = {literal(values)}: {literal(value)} is listed twice"


def _wrong_budgets(suite: Suite, plugins: Plugins) -> Iterator[tuple[Place, str]]:
    for name in suite.budgets:
        if name not in suite.workloads:
            yield ("budgets", name), str(UnknownName("workload", name, suite.workloads, "budgets: in this suite "))
    total = math.inf
    try:
        total = suite.total_seconds or math.inf
    except EffbenchError as wrong:
        yield ("total",), str(wrong)
    for place, key, text in _budgets(suite, plugins):
        try:
            budget = Budget.parse(text, key, more_units=plugins.offers["effbench_clocks"])
        except EffbenchError as wrong:
            yield place, str(wrong)
            continue
        if suite.per_step and budget.unit != "reference":
            why = f"per_step: the steps that {key} = {literal(text)} buys are known only for reference-seconds"
            yield ("per_step",), why
        if budget.is_wall and budget.amount * max(suite.ladder, default=1.0) > total:
            why = f"total = {literal(suite.total)} is less than {key} = {literal(text)}, which is for one trial"
            yield ("total",), why


def _wrong_only(suite: Suite, plugins: Plugins) -> Iterator[tuple[Place, str]]:
    everywhere = {_with_defaults(chosen, plugins) for chosen in suite.sets}
    for name, sets in suite.only.items():
        if name not in suite.workloads:
            yield ("only", name), str(UnknownName("workload", name, suite.workloads, "only: in this suite "))
        listed = set(everywhere)
        for position, chosen in enumerate(sets):
            for _, why in set_faults(chosen, plugins):
                yield ("only", name, position), f"only.{name}: {why}"
            if (same := _with_defaults(chosen, plugins)) in listed:
                yield ("only", name, position), f"only.{name}: the set {label(chosen)} is listed twice for {name}"
            listed.add(same)


def _budgets(suite: Suite, plugins: Plugins) -> Iterator[tuple[Place, str, str]]:
    """Yield every budget that is in use: where it is written, what it is called, what it is."""
    if suite.budget:
        yield ("budget",), "budget", suite.budget
    for name, text in suite.budgets.items():
        yield ("budgets", name), f"budgets.{name}", text
    for position, name in enumerate(suite.workloads):
        if name in plugins.workloads and not suite.budget and name not in suite.budgets:
            yield ("workloads", position), f"the budget of {name}", plugins.workloads[name].budget


def wall_seconds(text: str, key: str) -> float:
    """Return the seconds of a wall time as it is written, such as "10m".

    Raises:
        InvalidBudget: it is no positive amount.
        InvalidSuite: it is no wall time.
    """
    total = Budget.parse(text, key)
    if not total.is_wall:
        raise InvalidSuite(f"{key} = {literal(text)}: it bounds the whole suite in wall time, as 10m or 1h30m")
    return total.amount


def _no_sets(sets: Sequence[Any]) -> Iterator[tuple[Place, str]]:
    example = '{"mixup": {"alpha": 0.1}}'
    for position, chosen in enumerate(sets):
        if not isinstance(chosen, Mapping) or not all(isinstance(options, Mapping) for options in chosen.values()):
            yield ("techniques", position), f"{chosen!r} is no set of techniques; write one as {example}"


def _wrong_sets(sets: Sequence[Set], plugins: Plugins) -> Iterator[tuple[Place, str]]:
    counted = Counter[str]()
    for position, chosen in enumerate(sets):
        for place, why in set_faults(chosen, plugins):
            yield ("techniques", position, *place), why
        counted[same := _with_defaults(chosen, plugins)] += 1
        if counted[same] == 2:
            yield ("techniques", position), f"the set {label(chosen)} is listed twice"


def set_faults(chosen: Set, plugins: Plugins) -> Iterator[tuple[Place, str]]:
    """Yield what is wrong with the names and options of one set."""
    for name, options in chosen.items():
        known = plugins.techniques.get(name)
        if known is None:
            unknown = UnknownName("technique", name, plugins.techniques)
            yield (name,), f"{unknown} (one of your own is found by --plugin FILE)"
            continue
        for option, value in options.items():
            try:
                known.check_options({option: value})
            except EffbenchError as wrong:
                yield (name, option), str(wrong)


def _with_defaults(chosen: Set, plugins: Plugins) -> str:
    """Return text that is equal for sets that mean the same."""
    known = plugins.techniques
    filled = {name: {**(known[name].options if name in known else {}), **own} for name, own in chosen.items()}
    return repr(sorted((name, sorted(options.items())) for name, options in filled.items()))


def packaged() -> dict[str, Path]:
    """Return the suites that come with effbench: name -> file."""
    package = Path(__file__).parent
    installed, checkout = package / "suites", package.parent / "suites"
    folder = installed if installed.is_dir() else checkout
    return {file.stem: file for file in sorted(folder.glob("*.toml"))}


def find(name_or_path: str | Path) -> Path:
    """Return the file of a suite, by the name of one that comes with effbench or by path.

    Raises:
        UnknownName: there is neither.
        InvalidSuite: the path leads to no file.
    """
    path, known = Path(name_or_path), packaged()
    if path.name == str(name_or_path) and path.suffix != ".toml":
        if path.name in known:
            return known[path.name]
        if not path.is_file():
            raise UnknownName("suite", path.name, known)
    if path.is_dir():
        raise InvalidSuite(f"{path} is a folder; give the TOML file of a suite")
    if not path.is_file():
        raise InvalidSuite(f"there is no file {path}; effbench comes with these suites: {', '.join(known)}")
    return path


def load(name_or_path: str | Path, plugins: Plugins) -> Suite:
    """Return a suite by name or path, checked.

    Raises:
        UnknownName, InvalidSuite: says all that is wrong, each thing with file, line, value and the near right name.
    """
    from effbench.suite_file import read

    return read(find(name_or_path), plugins)
