"""Sets of techniques on one line: what is read, and what each mistake is told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effbench.errors import InvalidSuite
from effbench.records import label
from effbench.sets import parse_set


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mixup", {"mixup": {}}),
        ("mixup()", {"mixup": {}}),
        ("mixup(alpha=0.1)+ema", {"mixup": {"alpha": 0.1}, "ema": {}}),
        (" mixup ( alpha = 1e+3 , ) + ema ", {"mixup": {"alpha": 1000.0}, "ema": {}}),
        ("a(x=[1, 2], y={ z = '+)' })", {"a": {"x": [1, 2], "y": {"z": "+)"}}}),
        ('a(x="say \\"+\\", twice")', {"a": {"x": 'say "+", twice'}}),
        ("a(x=-1, y=1_000, z=inf)", {"a": {"x": -1, "y": 1000, "z": float("inf")}}),
        ("a(x=true, y=True, z=False)", {"a": {"x": True, "y": True, "z": False}}),
        ("a(kind=cosine, mode=max-autotune)", {"a": {"kind": "cosine", "mode": "max-autotune"}}),
        ("baseline", {}),
    ],
)
def test_what_is_read(text: str, expected: dict[str, Any]) -> None:
    assert parse_set(text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "'' is no name of a technique; write a set as"),
        ("mixup+", "'' is no name of a technique"),
        ("2mixup", "'2mixup' is no name"),
        ("mixup ema", "'mixup ema' is no name"),
        ("mixup+mixup(alpha=1)", "names mixup twice"),
        ("mixup+baseline", "the baseline has no techniques, so it is never part of a set"),
        ("mixup(alpha=0.1", "its brackets do not match"),
        ("mixup)(", "its brackets do not match"),
        ("mixup(alpha=0.1)x", "'mixup(alpha=0.1)x' does not end with its closing bracket"),
        ("mixup(alpha)", "'alpha' is no option of mixup; write option=value"),
        ("mixup(0.1)", "'0.1' is no option of mixup"),
        ("mixup(alpha=)", "'' is no value of option alpha; write such as alpha=0.1"),
        ("mixup(alpha=0.1 # high)", "'0.1 # high' is no value of option alpha"),
        ("mixup(alpha=1 2)", "'1 2' is no value of option alpha"),
        ("mixup(alpha=1, alpha=2)", "gives option alpha of mixup twice"),
        ("mixup(alpha=None)", "leave the option out to have its default"),
        ("mixup(kind='a)", "a text in quotes is not closed by '"),
        (f"mixup(alpha={'9' * 5000})", "is no value of option alpha"),
        (f"mixup(alpha={'[' * 5000 + ']' * 5000})", "is no value of option alpha"),
    ],
)
def test_what_each_mistake_is_told(text: str, said: str) -> None:
    with pytest.raises(InvalidSuite) as raised:
        parse_set(text)
    assert said in str(raised.value)
    assert repr(text) in str(raised.value)


names = st.sampled_from(["mixup", "ema", "sam", "größe", "_x1"])
options = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["cosine", "max-autotune", "a_b"]),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3),
)


@settings(derandomize=True)
@given(chosen=st.dictionaries(names, st.dictionaries(names, options, max_size=3), max_size=4))
def test_a_label_from_a_table_can_be_typed(chosen: dict[str, dict[str, Any]]) -> None:
    assert parse_set(label(chosen)) == chosen
