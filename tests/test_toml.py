"""Where things stand in a TOML text: every place that tomllib finds has the line in which it is written."""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effbench import toml

SUITE = '''\
# a comment = 1, [with] {brackets}
name = "mine"   # = "x"
seeds = [
  0,   # [first]
  1,
]
summary = """
two = 2
lines ""quoted"" \\""" # not the end
"""
workloads = ["a # b", 'c"d']
"quoted key" = { x = 1, "y z" = [1, 2,
  3] }
a.b.'c d' = true

[[techniques]]
mixup = { alpha = 0.1 }
[[techniques]]
[techniques.ema]
decay = 0.9
[ budgets ]
kjv_gpt = '5s'
'''


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (("name",), 2),
        (("seeds",), 3),
        (("seeds", 0), 4),
        (("seeds", 1), 5),
        (("summary",), 7),
        (("workloads", 1), 11),
        (("quoted key", "x"), 12),
        (("quoted key", "y z", 2), 13),
        (("a", "b", "c d"), 14),
        (("techniques",), 16),
        (("techniques", 0, "mixup", "alpha"), 17),
        (("techniques", 1), 18),
        (("techniques", 1, "ema"), 19),
        (("techniques", 1, "ema", "decay"), 20),
        (("budgets", "kjv_gpt"), 22),
    ],
)
def test_line_of_each_thing(place: toml.Place, line: int) -> None:
    assert toml.lines(SUITE)[place] == line


def test_windows_line_ends_count_once() -> None:
    assert toml.lines(SUITE.replace("\n", "\r\n")) == toml.lines(SUITE)


def test_every_place_is_found_and_no_other() -> None:
    assert set(toml.lines(SUITE)) == set(places(tomllib.loads(SUITE)))


keys = st.sampled_from(["a", "b-1", "alpha", "mit Abstand", "é.ü", "1", '"', "'", ""])
plain_values = st.one_of(
    st.booleans(), st.integers(-(2**60), 2**60), st.floats(allow_nan=False), st.text(max_size=8), st.just("#]}\n[[")
)
values = st.recursive(
    plain_values, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=12
)


@settings(derandomize=True)
@given(document=st.dictionaries(keys, values, max_size=5), seed=st.integers(0, 999))
def test_any_document_in_any_spelling(document: dict[str, Any], seed: int) -> None:
    text = written(document, random.Random(seed))
    assert tomllib.loads(text) == document
    found = toml.lines(text)
    assert set(found) == set(places(document))
    rows = text.split("\n")
    for place, line in found.items():
        if isinstance(place[-1], str):
            assert toml.key(place[-1]) in rows[line - 1]


@settings(derandomize=True)
@given(value=values)
def test_a_literal_is_read_back(value: Any) -> None:
    assert tomllib.loads(f"x = {toml.literal(value)}")["x"] == value


@pytest.mark.parametrize(("value", "text"), [(float("inf"), "inf"), (float("-inf"), "-inf"), (float("nan"), "nan")])
def test_no_finite_number_is_written_as_toml_does(value: float, text: str) -> None:
    assert toml.literal(value) == text


def test_what_toml_cannot_hold_is_refused() -> None:
    with pytest.raises(TypeError, match="TOML cannot hold NoneType"):
        toml.literal({"x": None})


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("9" * 5000, "a whole number has 64 bits at most"),
        ("0x" + "f" * 5000, "a whole number has 64 bits at most, found one of 20001"),
        ("[{ a = 9223372036854775808 }]", "a whole number has 64 bits at most, found one of 65"),
        ("[" * 5000 + "]" * 5000, "brackets are nested more than 64 deep"),
        ("[" * 65 + "]" * 65, "brackets are nested more than 64 deep"),
    ],
)
def test_what_is_beyond_all_measure_is_no_toml(written: str, why: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError, match=re.escape(why)):
        toml.loads(f"x = {written}")


def test_what_is_within_measure_is_read() -> None:
    text = "x = [-9223372036854775808, 9223372036854775807, [[[]]]]"
    assert toml.loads(text) == tomllib.loads(text)


def places(value: Any, place: toml.Place = ()) -> Iterator[toml.Place]:
    """Yield the place of every key and item, as tomllib understands the document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield (*place, name)
        yield from places(item, (*place, name))


def written(document: dict[str, Any], chance: random.Random) -> str:
    """Write a document, choosing at random among the spellings that TOML has for one thing."""
    head, tail = [], []
    for name, value in document.items():
        spelled = toml.key(name)
        tables = value if isinstance(value, list) and value and all(isinstance(item, dict) for item in value) else None
        if isinstance(value, dict) and chance.random() < 0.5:
            tail += [f"[ {spelled} ] # {{", *(f"{toml.key(k)}={broken(v, chance)}" for k, v in value.items())]
        elif isinstance(value, dict) and value and chance.random() < 0.5:
            head += [f"{spelled} . {toml.key(k)} = {broken(v, chance)}" for k, v in value.items()]
        elif tables and chance.random() < 0.5:
            for item in tables:
                tail += [f"[[{spelled}]]", *(f"{toml.key(k)} = {broken(v, chance)}" for k, v in item.items())]
        else:
            head.append(f"  {spelled} = {broken(value, chance)} # ]")
        head += [""] * chance.randrange(2)
    return "\n".join(head + tail)


def broken(value: Any, chance: random.Random) -> str:
    """Write a value, a list perhaps over several lines, a text perhaps in single quotes."""
    if isinstance(value, list) and chance.random() < 0.5:
        return "[ # [\n" + "".join(f"  {broken(item, chance)}, # ,\n" for item in value) + "]"
    if isinstance(value, str) and chance.random() < 0.5 and value.isprintable() and "'" not in value:
        return chance.choice([f"'{value}'", f"'''\n{value}'''"])
    return toml.literal(value)
