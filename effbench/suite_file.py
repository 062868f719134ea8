"""Read the TOML file of a suite, and say of every fault in which line it stands."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from effbench.budget import Budget
from effbench.errors import EffbenchError, InvalidSuite, UnknownName
from effbench.factorial import factorial_sets
from effbench.records import canonical
from effbench.sets import parse_set
from effbench.suite import Set, Suite, faults
from effbench.toml import Place, lines, literal, loads

if TYPE_CHECKING:
    from effbench.plugins import Plugins

#: key of a suite -> what it is, for the error and for editors.
KEYS: dict[str, str] = {
    "name": "name of the suite, and of its folder below results/; default: the name of the file",
    "summary": "what the suite is for, in one sentence",
    "budget": "what each trial may spend, such as '5s reference' or '2000 steps'; default: the workload's own",
    "budgets": "budgets of single workloads that differ from `budget`",
    "total": "wall time of the whole suite, such as '10m'; trials that cannot start in time are not started",
    "seeds": "seeds of the trials: the same seed has the same initial weights and example order in all techniques",
    "workloads": "names of the workloads to train on",
    "ladder": "shares of the budget to compare at, such as [0.5, 1, 2]; the baseline is trained anew for each",
    "per_step": "whether to compare also at as many steps as the budget buys the baseline, so that cost is left out",
    "factorial": "techniques to cross, on and off, for their main effects and pairwise interactions",
    "only": "workload -> sets that are compared on it alone, as on the command line: 'rope', 'mixup(alpha=0.1)+ema'",
    "techniques": "sets of techniques to compare, a table each; the baseline is always there",
}
#: key of `[factorial]` -> what it is.
FACTORIAL: dict[str, str] = {
    "techniques": "one technique each, with its options: 'mixup', 'ema(decay=0.9)'",
    "fraction": "run one point of the design in so many: 1 (all), 2, 4, ...",
}
REQUIRED = {"workloads": '["mnist1d_cnn"]', "seeds": "[0, 1, 2]"}


def read(path: Path, plugins: Plugins | None = None) -> Suite:
    """Read the file of a suite.

    plugins: what its names are looked up in; None: names are not checked.

    Raises:
        InvalidSuite: says all that is wrong, each thing with file, line, value and the near right name.
    """
    reader = _Reader(path)
    suite = reader.suite()
    if plugins is not None:
        reader.check(suite, plugins)
    if reader.faults:
        raise InvalidSuite("\n".join(f"{_place(path, line)}: {why}" for line, why in sorted(reader.faults)))
    return suite


def _place(path: Path, line: int) -> str:
    return f"{path}:{line}" if line else str(path)


class _Reader:
    """Takes a document apart, and gathers faults as (line, what is wrong); line 0 is the file as a whole."""

    __slots__ = ("_bad", "_document", "_lines", "_path", "faults")

    def __init__(self, path: Path) -> None:
        self._path = path
        text = _text(path)
        try:
            self._document = loads(text)
        except tomllib.TOMLDecodeError as wrong:
            raise InvalidSuite(f"{path}: this is no TOML: {wrong}") from None
        self._lines = lines(text)
        self._bad: set[str] = set()  # keys whose value is of a wrong kind; nothing else is said about it
        self.faults: list[tuple[int, str]] = []

    def suite(self) -> Suite:
        """Return the suite, without what is wrong in kind."""
        for key in self._document:
            if key not in KEYS:
                self._refuse((key,), str(UnknownName("key of a suite", key, KEYS)))
        for key, example in REQUIRED.items():
            if key not in self._document:
                self._refuse((key,), f"there is no {key}; write, say, {key} = {example}")
        factorial, crossed = self._factorial()
        sets = self._sets()
        listed = [canonical(chosen) for chosen in sets]
        return Suite(
            name=self._words("name", "quick") or self._path.stem,
            summary=self._words("summary", "What this suite is for."),
            budget=self._budget("budget"),
            budgets=self._budgets(),
            total=self._budget("total"),
            seeds=tuple(self._items("seeds", int, "whole numbers, such as [0, 1, 2]")),
            workloads=tuple(self._items("workloads", str, 'names in quotes, such as ["mnist1d_cnn"]')),
            sets=(*sets, *(point for point in crossed if canonical(point) not in listed)),
            ladder=tuple(self._items("ladder", (int, float), "shares of the budget, such as [0.5, 1, 2]")),
            per_step=self._switch("per_step"),
            factorial=factorial,
            only=self._only(),
            path=str(self._path),
        )

    def check(self, suite: Suite, plugins: Plugins) -> None:
        """Add what is wrong with the values of a suite."""
        written = [position for position, chosen in enumerate(self._document.get("techniques", [])) if chosen != {}]
        hidden = self._bad | ({"budgets"} if "workloads" in self._bad else set())
        for (key, *rest), why in faults(suite, plugins):
            if key in hidden:
                continue
            place: Place = (key, *rest)
            if key == "techniques":  # those that are not written are points of the design
                position = int(rest[0])
                place = (key, written[position], *rest[1:]) if position < len(written) else ("factorial",)
            self.faults.append((self._line(place), why))

    def _refuse(self, place: Place, why: str) -> None:
        self._bad.add(str(place[0]))
        self.faults.append((self._line(place), why))

    def _line(self, place: Place) -> int:
        while place and place not in self._lines:
            place = place[:-1]
        return self._lines.get(place, 0)

    def _words(self, key: str, example: str) -> str:
        value = self._document.get(key, "")
        if isinstance(value, str):
            return value
        self._refuse((key,), f"{key} = {_shown(value)}: write text in quotes, such as {key} = {literal(example)}")
        return ""

    def _budget(self, key: str, value: Any = None, place: Place = ()) -> str:
        """Return a budget as it is written; only that it is text is checked here."""
        value = self._document.get(key, "") if value is None else value
        if isinstance(value, str) and (value or key not in self._document):
            return value
        try:
            Budget.parse(value, key)
        except EffbenchError as wrong:
            self._refuse(place or (key,), str(wrong))
        return ""

    def _budgets(self) -> dict[str, str]:
        table = self._document.get("budgets", {})
        if not isinstance(table, dict):
            self._refuse(("budgets",), f"budgets = {_shown(table)}: write a table: [budgets] and kjv_gpt = '10s'")
            return {}
        return {name: self._budget(f"budgets.{name}", value, ("budgets", name)) for name, value in table.items()}

    def _switch(self, key: str) -> bool:
        value = self._document.get(key, False)
        if not isinstance(value, bool):
            self._refuse((key,), f"{key} = {_shown(value)}: write {key} = true, or leave it out")
        return value is True

    def _factorial(self) -> tuple[dict[str, Any], list[Set]]:
        """Return `[factorial]`, and the sets of its design."""
        table = self._document.get("factorial", {})
        how = "write a table: [factorial] and in it techniques = ['mixup', 'ema']"
        if not isinstance(table, dict):
            self._refuse(("factorial",), f"factorial = {_shown(table)}: {how}")
            return {}, []
        for key in table:
            if key not in FACTORIAL:
                self._refuse(("factorial", key), str(UnknownName("key of [factorial]", key, FACTORIAL)))
        techniques, fraction = table.get("techniques", []), table.get("fraction", 1)
        if not isinstance(techniques, list) or not all(isinstance(each, str) for each in techniques):
            self._refuse(("factorial", "techniques"), f"factorial.techniques = {_shown(techniques)}: {how}")
        elif not isinstance(fraction, int) or isinstance(fraction, bool):
            self._refuse(("factorial", "fraction"), f"factorial.fraction = {_shown(fraction)}: write 1, 2, 4, ...")
        elif "factorial" in self._document and "factorial" not in self._bad:
            try:
                return {"techniques": techniques, "fraction": fraction}, list(factorial_sets(techniques, fraction))
            except EffbenchError as wrong:
                self._refuse(("factorial",), str(wrong))
        return {}, []

    def _only(self) -> dict[str, list[Set]]:
        table = self._document.get("only", {})
        how = "write a table: [only] and in it kjv_gpt = ['rope', 'mixup(alpha=0.1)+ema']"
        if not isinstance(table, dict):
            self._refuse(("only",), f"only = {_shown(table)}: {how}")
            return {}
        found = dict[str, list[Set]]()
        for name, texts in table.items():
            if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
                self._refuse(("only", name), f"only.{name} = {_shown(texts)}: {how}")
                continue
            try:
                found[name] = [parse_set(text) for text in texts]
            except EffbenchError as wrong:
                self._refuse(("only", name), f"only.{name}: {wrong}")
        return {} if "only" in self._bad else found

    def _items(self, key: str, kind: type | tuple[type, ...], what: str) -> list[Any]:
        value = self._document.get(key, [])
        if not isinstance(value, list):
            self._refuse((key,), f"{key} = {_shown(value)}: write a list of {what}")
            return []
        for position, item in enumerate(value):
            if not isinstance(item, kind) or isinstance(item, bool):
                self._refuse((key, position), f"{key}: {_shown(item)} is none of {what}")
        return [] if key in self._bad else value

    def _sets(self) -> list[Set]:
        listed = self._document.get("techniques", [])
        if not isinstance(listed, list) or not all(isinstance(chosen, dict) for chosen in listed):
            how = "write a table [[techniques]], in two brackets, for each set, and in it such as mixup = {}"
            self._refuse(("techniques",), f"techniques = {_shown(listed)}: {how}")
            return []
        if sum(not chosen for chosen in listed) > 1:
            second = [position for position, chosen in enumerate(listed) if not chosen][1]
            why = "the empty set, which is the baseline, is listed twice; it is always there, so list it never"
            self._refuse(("techniques", second), why)
        for position, chosen in enumerate(listed):
            for name, options in chosen.items():
                self._check_options(("techniques", position, name), name, options)
        return [] if "techniques" in self._bad else listed

    def _check_options(self, place: Place, name: str, options: Any) -> None:
        if not isinstance(options, dict):
            how = f"write the options in a table, such as {name} = {{}} or {name} = {{ option = {_shown(options)} }}"
            if name in KEYS:
                how = f"{name} is a key of the suite, so write it above the first [[techniques]]"
            self._refuse(place, f"{name} = {_shown(options)}: {how}")
            return
        for option, value in options.items():
            if not _is_plain(value):
                why = f"{name}: option {option} is {value}; a date or time is no option"
                self._refuse((*place, option), why)


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as wrong:
        line = path.read_bytes()[: wrong.start].count(b"\n") + 1
        raise InvalidSuite(f"{path}:{line}: this is no UTF-8, which TOML is written in") from None
    except OSError as wrong:
        raise InvalidSuite(f"{path} cannot be read: {wrong.strerror}") from None


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    return all(map(_is_plain, value)) if isinstance(value, list) else isinstance(value, str | int | float)


def _shown(value: Any) -> str:
    """Write a value as the file does, be it a date."""
    try:
        return literal(value)
    except TypeError:
        return str(value)
