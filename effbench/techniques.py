"""What a technique is, and how a set of techniques becomes one recipe."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from effbench.errors import Conflict, InvalidTechnique, UnknownName, nearest
from effbench.recipe import TERMS, Recipe, Scope
from effbench.taxonomy import branch_position, check_leaf

MOST_PROCESSES = 1024  # of one trial
_WORD = 64  # bits, of which one is the sign


@dataclass(frozen=True, slots=True)
class Technique:
    """A function from a recipe to a recipe, with its card: where it belongs, who says what of it."""

    function: Callable[..., Recipe]
    leaf: str  # "branch/leaf" of the taxonomy
    paper: str  # authors, title, arXiv number
    claim: str  # what its authors report
    neutral: Mapping[str, Any] | None = None  # options at which it does nothing
    after: tuple[str, ...] = ()  # techniques of the same set that go first
    conflicts: Mapping[str, str] = field(default_factory=dict)  # technique -> why they exclude each other
    title: str = ""  # "Mixup", where the name alone would mislead
    tolerance: float = 1e-4  # for several processes: see `technique`
    unequal: str = ""  # why several processes do not train the weights of one, where they do not
    races: bool = False  # whether two runs differ, because processes do not wait for each other
    last: bool = False  # whether it goes around all others: a condition of the machine, no method
    scope: Scope = "model"  # what its optimizer and its update look at when they step a weight: see `technique`

    @property
    def name(self) -> str:
        """The one spelling: of the file, the function, the key in a suite and the column in results."""
        return self.function.__name__

    @property
    def options(self) -> dict[str, Any]:
        """Option -> default."""
        parameters = list(inspect.signature(self.function).parameters.values())
        return {p.name: p.default for p in parameters[1:]}

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raise InvalidTechnique for an option that the technique does not have, or that is of the wrong kind."""
        for option, value in options.items():
            if option not in self.options:
                near = nearest(option, self.options)
                hint = f"; did you mean {near!r}?" if near else ""
                has = ", ".join(self.options) or "none"
                raise InvalidTechnique(f"{self.name} has no option {option!r}; it has: {has}{hint}")
            default = self.options[option]
            if not _same_kind(value, default):
                raise InvalidTechnique(
                    f"{self.name}: option {option} is {value!r}, which is {_kind(value)}; "
                    f"it should be {_kind(default)}, such as the default {default!r}"
                )
            if strange := _no_number_in(value):
                raise InvalidTechnique(f"{self.name}: option {option} is {strange}, with which nothing can be computed")
            if (
                option == "processes" and isinstance(value, int) and value > MOST_PROCESSES
            ):  # before anything is laid out for so many
                raise InvalidTechnique(f"{self.name}: processes is {value}; it should be at most {MOST_PROCESSES}")

    def apply(self, recipe: Recipe, options: Mapping[str, Any]) -> Recipe:
        """Return the recipe that the technique makes of `recipe`; the changes are signed with its name.

        Raises:
            InvalidTechnique: it returns no recipe, or changes one in another way than by `wrap` and `swap`.
            NotApplicable, Conflict: the technique's own refusals.
        """
        scopes = {**recipe.scopes, self.name: self.scope}
        changed = self.function(dataclasses.replace(recipe, author=self.name, scopes=scopes), **options)
        if not isinstance(changed, Recipe):
            raise InvalidTechnique(f"{self.name} returned {_kind(changed)}; a technique returns a Recipe")
        signed = {term for _, term, _ in changed.history[len(recipe.history) :]}
        for term in TERMS:
            if term not in signed and getattr(changed, term) is not getattr(recipe, term):
                raise InvalidTechnique(
                    f"{self.name} changed the {term} behind the recipe's back, so that no conflict over it would be "
                    f"seen; use recipe.wrap({term}=...) or recipe.swap({term}=...)"
                )
        return dataclasses.replace(changed, author=recipe.author)


def technique(
    leaf: str,
    *,
    paper: str,
    claim: str,
    neutral: Mapping[str, Any] | None = None,
    after: Iterable[str] = (),
    conflicts: Mapping[str, str] | None = None,
    title: str = "",
    tolerance: float = 1e-4,
    unequal: str = "",
    races: bool = False,
    last: bool = False,
    scope: Scope = "model",
) -> Callable[[Callable[..., Recipe]], Technique]:
    """Turn a function `(recipe, *, option=default, ...) -> recipe` into a technique.

    leaf: "branch/leaf" of the taxonomy.
    paper: who published it, with its arXiv number.
    claim: the headline number of the paper.
    neutral: options at which the technique does nothing; None where there are none.
    after: techniques that go first when they are in the same set.
    conflicts: techniques that it excludes, each with the reason, where no term shows it.
    tolerance: how far several processes may end from the weights of one, as a share of the way that training moved
        these.
    unequal: why they end farther away than that, where it is the nature of the method, as of asynchronous updates.
    races: whether two runs differ, because processes do not wait for each other.
    last: whether it goes around all others of its branch, as a condition of the machine does.
    scope: what its optimizer and its update look at when they step a weight: "element", that weight and its gradient;
        "tensor", all of its tensor; "model", anything. Techniques that leave each process a part of a model refuse what
        looks farther, so one that states nothing goes with none of them.

    Raises:
        UnknownName: the taxonomy has no such leaf.
        InvalidTechnique: the function's options are not keyword-only with defaults.
    """
    check_leaf(leaf)

    _check_card({"paper": paper, "claim": claim, "title": title}, after, neutral, conflicts)
    _check_kinds({"races": races, "last": last}, tolerance, unequal)
    after, conflicts = tuple(after), dict(conflicts or {})
    _check_others(after, conflicts)
    if scope not in get_args(Scope):
        raise InvalidTechnique(f"scope = {scope!r}: it should be one of {', '.join(map(repr, get_args(Scope)))}")

    def make(function: Callable[..., Recipe]) -> Technique:
        _check_name(function, {*after, *conflicts})
        parameters = list(inspect.signature(function).parameters.values())
        if not parameters or parameters[0].kind not in {
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            inspect.Parameter.POSITIONAL_ONLY,
        }:
            raise InvalidTechnique(f"{function.__name__} should take the recipe as its first parameter")
        for parameter in parameters[1:]:
            if parameter.kind is not inspect.Parameter.KEYWORD_ONLY or parameter.default is inspect.Parameter.empty:
                raise InvalidTechnique(
                    f"{function.__name__}: parameter {parameter.name!r} should be keyword-only with a default, "
                    f"as in `def {function.__name__}(recipe, *, {parameter.name}=1.0)`"
                )
        made = Technique(
            function,
            leaf,
            paper,
            claim,
            neutral,
            after,
            conflicts,
            title,
            tolerance,
            unequal,
            races,
            last,
            scope,
        )
        made.check_options(neutral or {})
        return made

    return make


def _check_card(texts: Mapping[str, Any], after: Any, neutral: Any, conflicts: Any) -> None:
    """Raise InvalidTechnique where a part of the card is of a kind that Python would take for something else."""
    for name, text in texts.items():
        if not isinstance(text, str):
            raise InvalidTechnique(f"{name} = {text!r}: write text")
    if isinstance(after, str):  # its letters would be taken for techniques
        raise InvalidTechnique(f"after = {after!r}: write a list of techniques, such as [{after!r}]")
    for name, mapping, example in (("neutral", neutral, "option: value"), ("conflicts", conflicts, "technique: why")):
        if not isinstance(mapping, Mapping | None):
            raise InvalidTechnique(f"{name} = {mapping!r}: write a dictionary, such as {{{example}}}")


def _check_name(function: Any, others: set[str]) -> None:
    """Raise InvalidTechnique where `function` is none that has a name, or the card's `others` are not others."""
    if not inspect.isfunction(function):
        raise InvalidTechnique(f"a technique is a function, written with def; found {function!r}")
    if not function.__name__.isidentifier():
        raise InvalidTechnique(f"{function.__name__!r} is no name of a technique; write the function with def")
    if function.__name__ in others:
        raise InvalidTechnique(f"{function.__name__} names itself in `after` or `conflicts`; name others there")


def _check_kinds(switches: Mapping[str, Any], tolerance: Any, unequal: Any) -> None:
    """Raise InvalidTechnique where a switch is none, the tolerance no share, or the reason why it is none no text."""
    for name, switch in switches.items():
        if not isinstance(switch, bool):
            raise InvalidTechnique(f"{name} = {switch!r}: write True or False")
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0.0 <= tolerance < math.inf:
        raise InvalidTechnique(f"tolerance = {tolerance!r}: write a number from 0, such as 1e-4")
    if not isinstance(unequal, str):
        raise InvalidTechnique(f"unequal = {unequal!r}: write why, as text")


def _check_others(after: tuple[Any, ...], conflicts: Mapping[Any, Any]) -> None:
    """Raise InvalidTechnique where another technique is not told by its name, or a reason is no text."""
    if strange := [other for other in (*after, *conflicts) if not isinstance(other, str)]:
        raise InvalidTechnique(f"after and conflicts tell techniques by their names, found {strange[0]!r}")
    for name, why in conflicts.items():
        if not isinstance(why, str):
            raise InvalidTechnique(f"conflicts: {name} = {why!r}: write why they exclude each other")


Set = Mapping[str, Mapping[str, Any]]  # a set of techniques: name -> options


def in_order(names: Iterable[str], known: Mapping[str, Technique]) -> list[str]:
    """Return the order in which a set composes: by branch, `last` ones at its end, then `after`, then name.

    Raises:
        UnknownName: a name is not known.
        Conflict: two techniques want to go after each other.
    """
    waiting = sorted(set(names))
    for name in waiting:
        if name not in known:
            raise UnknownName("technique", name, known)
    waiting.sort(key=lambda name: (branch_position(known[name].leaf), known[name].last, name))
    ordered: list[str] = []
    while waiting:
        ready = [name for name in waiting if not set(known[name].after) & set(waiting)]
        if not ready:
            raise Conflict(f"{_circle(waiting, known)}: each wants to go after the one that is named next")
        ordered.append(ready[0])
        waiting.remove(ready[0])
    return ordered


def _circle(waiting: list[str], known: Mapping[str, Technique]) -> str:
    """Name the techniques that wait for each other in a circle, among those of which each waits for another one."""
    path = [waiting[0]]
    while True:
        awaited = next(name for name in waiting if name in known[path[-1]].after)
        if awaited in path:
            return ", ".join([*path[path.index(awaited) :], awaited])
        path.append(awaited)


def compose(recipe: Recipe, techniques: Set, known: Mapping[str, Technique]) -> tuple[Recipe, list[str]]:
    """Apply a set of techniques to a recipe; return the finished recipe and the order used.

    Raises:
        Refusal: a technique does not apply here, or two exclude each other.
        UnknownName, InvalidTechnique: the set cannot be what was meant.
    """
    order = in_order(techniques, known)
    for name in order:
        for other, why in known[name].conflicts.items():
            if other in techniques:
                raise Conflict(f"{name} and {other} exclude each other: {why}")
    for name in order:
        known[name].check_options(techniques[name])
        recipe = known[name].apply(recipe, techniques[name])
    if type(recipe.processes) is not int or not 1 <= recipe.processes <= MOST_PROCESSES:
        wants = f"{'+'.join(order)} wants {recipe.processes!r} processes"
        raise InvalidTechnique(f"{wants}; it should be a whole number from 1 to {MOST_PROCESSES}")
    return recipe, order


def _same_kind(value: Any, default: Any) -> bool:
    if default is None:
        return True
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(value, bool) and isinstance(default, bool)
    if isinstance(default, float):
        return isinstance(value, int | float)
    if isinstance(default, list | tuple):
        return isinstance(value, list | tuple)
    return isinstance(value, type(default))


def _no_number_in(value: Any) -> str:
    """Say what in a value passes for a number and is none: NaN, or a whole number that no machine word holds."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return next(filter(None, map(_no_number_in, value)), "")
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    if isinstance(value, int) and value.bit_length() >= _WORD:
        return f"a whole number of more than {_WORD} bits"
    return ""


def _kind(value: Any) -> str:
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "text", type(None): "nothing"}
    return names.get(type(value), type(value).__name__)
