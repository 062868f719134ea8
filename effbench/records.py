"""A record: all that is known about one trial, as plain values that survive strict JSON."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from effbench.rows import Rows

#: What became of a trial. Only `ok` is scored.
STATUSES: tuple[str, ...] = (
    "ok",
    "diverged",  # the loss was no longer finite
    "skipped",  # refused: not applicable here, or two techniques that exclude each other
    "failed",  # raised; the traceback is in the trial's log
    "timeout",  # did not come to an end by its deadline
    "killed",  # ended by a signal that was not ours, such as the system's out-of-memory killer
    "interrupted",  # Ctrl-C
    "no_steps",  # the budget bought no optimizer step: no score
    "not_started",  # the total budget was spent
)

#: Why training stopped.
STOP_REASONS: tuple[str, ...] = (
    "budget",
    "diverged",
    "refused",
    "failed",
    "deadline",
    "interrupted",
    "total",
    "decided",  # enough seeds had been run to tell
)


@dataclass(slots=True)
class Record:
    """One trial: what was asked, what happened, and what the record cannot vouch for.

    Amounts have their unit in their name: `_seconds`, `_mib` (2**20 bytes); `spent` is in the budget's unit.
    """

    suite: str
    workload: str
    techniques: dict[str, dict[str, Any]]  # the set: name -> options; the baseline is the empty set
    seed: int
    budget: str  # as it is written: "5s reference"
    status: str
    reason: str = ""
    stop_reason: str = ""
    order: list[str] = field(default_factory=list)  # in which the set was composed
    clock: str = ""
    spent: float = 0.0
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)  # split -> metric -> value
    metric: str = ""  # the workload's headline metric
    higher_is_better: bool = True
    target: float | None = None  # value of the headline metric on validation that counts as "got there"
    curve: Sequence[Mapping[str, float]] = field(default_factory=list)  # progress, spent, steps, validation <metric>
    ledger: dict[str, float] = field(default_factory=dict)  # seconds by line; they add up to wall_seconds
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    setup_seconds: float = 0.0  # before the first step, and what the first step took beyond a usual one
    steps: int = 0
    examples: int = 0
    tokens: int = 0
    flop: float | None = None
    examples_per_second: float | None = None  # steady state: without the first step
    parameters: int | None = None
    peak_memory_mib: float | None = None
    traffic: list[dict[str, dict[str, float]]] = field(default_factory=list)  # rank by rank, see `metering.traffic_of`
    measured: dict[str, float] = field(default_factory=dict)  # by meters of plugins: name with its unit -> value
    overrun_seconds: float = 0.0
    price: dict[str, Any] | None = None  # the price list's entry that turned reference-seconds into steps
    processes: int = 1
    threads: int = 1
    jobs: int = 1
    environment: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    plugins: dict[str, str] = field(default_factory=dict)  # technique -> the plugin that offered it
    warnings: list[str] = field(default_factory=list)
    log: str = ""  # file name below the results folder
    started: str = ""  # ISO 8601, UTC
    finished: str = ""
    identity: dict[str, str] = field(default_factory=dict)  # what the result depends on, part by part
    key: str = ""  # content key, made of the identity: equal keys mean the same work

    @property
    def label(self) -> str:
        """The set as a person writes it: `mixup(alpha=0.1)+ema`, or `baseline`."""
        return label(self.techniques)

    def to_json(self) -> str:
        """Return one line of strict JSON; non-finite numbers become "NaN", "Infinity" and "-Infinity".

        Raises:
            TypeError: the record holds something that is no plain value.
        """
        values = plain({name: getattr(self, name) for name in FIELDS})
        return json.dumps(values, allow_nan=False, ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str) -> Record:
        """Read a line written by `to_json`; unknown keys of a newer version are left out.

        Raises:
            ValueError: the line is not a record.
        """
        try:
            found = json.loads(line)
        except RecursionError:
            raise ValueError("brackets are nested too deep") from None
        return cls.from_values(found, words=has_words(line))

    @classmethod
    def from_values(cls, found: Any, *, words: bool = True) -> Record:
        """Make a record of what its line holds.

        words: whether some number may be written as a word, such as "NaN"; without, reading is faster.

        Raises:
            ValueError: this is not what a record's line holds.
        """
        if not isinstance(found, dict):
            raise ValueError(f"a record is a JSON object, found {type(found).__name__}")  # noqa: TRY004 - one error for all faults of a line
        values = {}
        for name, value in found.items():
            types = FIELDS.get(name)
            if types is None:
                continue
            restored = _number(value) if words and float in types else value
            if type(restored) not in types and not isinstance(restored, types):  # the first alone would refuse a bool
                raise ValueError(f"{name} of a record cannot be {value!r}")
            values[name] = restored
        try:
            record = cls(**values)
        except TypeError as missing:
            raise ValueError(str(missing)) from missing
        for mapping in (*record.techniques.values(), *record.metrics.values(), *record.curve):
            if not isinstance(mapping, dict):
                raise ValueError(f"options, metrics and rows of a curve are objects, found {mapping!r}")  # noqa: TRY004 - as above
        if words:
            record.metrics = {split: numbers(metrics) for split, metrics in record.metrics.items()}
            record.curve = [numbers(row) for row in record.curve]
            record.ledger = numbers(record.ledger)
            record.measured = numbers(record.measured)
        _check_inside(record)
        check_price(record.price)
        return record


def label(techniques: Mapping[str, Mapping[str, Any]]) -> str:
    """Write a set of techniques as a person does: `mixup(alpha=0.1)+ema`; the empty set is `baseline`."""

    def one(name: str, options: Mapping[str, Any]) -> str:
        inside = ", ".join(f"{key}={value}" for key, value in sorted(options.items()))
        return f"{name}({inside})" if inside else name

    return "+".join(one(name, techniques[name]) for name in sorted(techniques)) or "baseline"


def canonical(techniques: Mapping[str, Mapping[str, Any]]) -> str:
    """Return text that is equal for equal sets only; labels may coincide, as of the options 1 and "1"."""
    return json.dumps(plain(techniques), allow_nan=False, ensure_ascii=False, sort_keys=True)


def naming() -> Callable[[Mapping[str, Mapping[str, Any]]], str]:
    """Return `canonical` for very many sets of which most are alike: each is written once."""
    names: dict[str, str] = {}  # a set as Python shows it, which is quick -> its canonical text

    def name(techniques: Mapping[str, Mapping[str, Any]]) -> str:
        shown = repr(techniques)
        return names.get(shown) or names.setdefault(shown, canonical(techniques))

    return name


def has_words(text: str) -> bool:
    """Return whether a number in JSON text may be written as a word."""
    return '"NaN"' in text or 'Infinity"' in text


_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def plain(value: Any) -> Any:
    """Turn `value` into what strict JSON can hold; non-finite floats become words.

    Raises:
        TypeError: the value is no plain value, nor a mapping, list, tuple or set of such.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | Rows):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((plain(item) for item in value), key=str)
    raise TypeError(f"a record holds plain values only, found {type(value).__name__}: {value!r}")


def numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """Undo `plain` for a mapping whose values are numbers."""
    return {key: _number(value) for key, value in values.items()}


def _number(value: Any) -> Any:
    return _WORDS.get(value, value) if isinstance(value, str) else value


def _json_types(annotation: str) -> tuple[type, ...]:
    """Return the types that a field annotated so, such as `dict[str, float] | None`, has when it is read."""
    types: dict[str, tuple[type, ...]] = {
        "str": (str,),
        "bool": (bool,),
        "int": (int,),
        "float": (float, int),
        "dict": (dict,),
        "list": (list,),
        "Sequence": (list,),
    }
    found = types[annotation.partition("[")[0].partition(" ")[0]]
    return (*found, type(None)) if annotation.endswith("| None") else found


def _inside(annotation: str) -> tuple[int, set[type]] | None:
    """Return how deep the innermost values of a field annotated so lie, and their types; None where they may be any."""
    kinds: dict[str, set[type]] = {"str": {str}, "float": {float, int}}
    depth, innermost = annotation.count("["), annotation.rstrip("]").rpartition("[")[2].rpartition(" ")[2]
    return (depth, kinds[innermost]) if depth and innermost in kinds else None


def _check_inside(record: Record) -> None:
    for name, (depth, kinds) in INSIDE.items():
        if not leaves(getattr(record, name), depth) <= kinds:
            raise ValueError(f"{name} of a record cannot be {getattr(record, name)!r}")


_COSTS = ("cost", "ratio", "low", "high")  # of a phase of a price


def check_price(price: Mapping[str, Any] | None) -> None:
    """Let through what costs can be told from: a unit, phases of numbers whose costs are above zero, pairs of numbers.

    Raises:
        ValueError: it is none of that.
    """
    if price is None:
        return
    unit, phases, lumps = price.get("unit"), price.get("phases"), price.get("lumps", [])
    is_known = isinstance(unit, str) and isinstance(phases, list) and bool(phases) and isinstance(lumps, list)
    if not (is_known and all(map(_is_phase, phases or ())) and all(map(_is_lump, lumps))):
        raise ValueError(f"price of a record cannot be {price!r}")


def _is_phase(phase: Any) -> bool:
    if not isinstance(phase, dict) or not {"start", "rounds", *_COSTS} <= phase.keys():
        return False
    return all(map(_is_finite, phase.values())) and all(phase[part] > 0.0 for part in _COSTS)


def _is_lump(lump: Any) -> bool:
    return isinstance(lump, list | tuple) and len(lump) == 2 and all(map(_is_finite, lump))


def _is_finite(value: Any) -> bool:
    return type(value) in {int, float} and math.isfinite(value)


def leaves(value: Any, depth: int) -> set[type]:
    """Return the types of the values that lie so deep in mappings and lists."""
    for _ in range(depth - 1):
        inner = value.values() if isinstance(value, dict) else value
        value = [item for each in inner for item in (each.values() if isinstance(each, dict) else [each])]
    return set(map(type, value.values() if isinstance(value, dict) else value))


#: field -> how deep its innermost values lie, and their types; without those where they may be any.
INSIDE = {each.name: found for each in dataclasses.fields(Record) if (found := _inside(str(each.type)))}
#: field -> the types that it has when it is read, its usual one first.
FIELDS = {each.name: _json_types(str(each.type)) for each in dataclasses.fields(Record)}
