"""Rows of numbers in one array are, to whoever reads them, the dictionaries that they were made of."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effbench.rows import Rows, columns, packed

CURVE = [{"progress": 0.5, "spent": 1, "steps": 40, "accuracy": 0.1}, {"progress": 1.0, "spent": 2, "steps": 80}]
WHOLE = [CURVE[0], {**CURVE[1], "accuracy": -0.0}]


def test_rows_are_the_dictionaries_that_they_were_made_of():
    found = packed(WHOLE, {})
    assert isinstance(found, Rows)
    assert (found == WHOLE, len(found), repr(found)) == (True, 2, repr(WHOLE))  # whole numbers stay whole
    assert (found[-1], found[:1]) == (WHOLE[1], WHOLE[:1])
    assert found == packed(WHOLE, {})
    assert found != WHOLE[:1]
    with pytest.raises(IndexError):
        found[2]


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [{}],
        CURVE,
        [{"a": 1.0, "b": 2.0}, {"b": 2.0, "a": 1.0}],  # in another order
        [{"a": 1}, {"a": 1.0}],
        [{"a": True}],
        [{"a": None}],
        [{"a": "NaN"}],
        [{"a": 2**53 + 1}],
        [{"a": 10**400}],
        [{"a": math.nan}],
    ],
)
def test_what_an_array_cannot_hold_stays_as_it_is(rows):
    assert packed(rows, {}) is rows


@given(st.lists(st.fixed_dictionaries({"x": st.floats(allow_nan=False), "n": st.integers()})))
def test_no_number_changes(rows):
    assert repr(list(packed(rows, {}))) == repr(rows)


@pytest.mark.parametrize("rows", [WHOLE, packed(WHOLE, {})], ids=["list", "rows"])
def test_columns_are_the_same_of_both(rows):
    steps, accuracy, loss = columns(rows, "steps", "accuracy", "loss")
    assert repr((steps, accuracy)) == "([40, 80], [0.1, -0.0])"
    assert len(loss) == 2
    assert all(map(math.isnan, loss))


def test_equal_shapes_are_kept_once():
    shapes = {}
    packed(WHOLE, shapes)
    packed([dict(row) for row in WHOLE], shapes)
    assert len(shapes) == 1
