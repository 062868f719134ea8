"""Records that somebody, or a crash, has changed: told by file, line and field, and never a fault in effbench."""

from __future__ import annotations

import copy
import json
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effbench.analysis.claims import claims
from effbench.analysis.comparison import compare
from effbench.analysis.explain import explain
from effbench.analysis.targets import spent_at
from effbench.reading import common, read_together
from effbench.records import Record
from effbench.report.html.page import report
from effbench.report.tables import tables_of
from effbench.store import StoreWarning, read_lines
from record_factory import several

PHASE = {"start": 0.0, "cost": 0.5, "ratio": 1.5, "low": 1.4, "high": 1.6, "rounds": 100}
PRICE = {"unit": "reference", "phases": [PHASE], "lumps": [[0.0, 0.1]]}
GOOD = [
    json.loads(record.to_json())
    for name in ("", "ema")
    for record in several(name, [0.80, 0.82, 0.85], price=PRICE, ledger={"setup": 0.1, "update": 1.0})
]
LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([1e308, -1e308, 0.5, "", "NaN", "Infinity"])
VALUES = LEAVES | st.lists(LEAVES, max_size=2) | st.dictionaries(st.sampled_from("ab"), LEAVES, max_size=2)


def places(value, at=()):
    """Where something can be changed, as paths."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*at, key)
        yield from places(each, (*at, key))


def changed(number: int, place: tuple, value: object) -> list[str]:
    records = copy.deepcopy(GOOD)
    inside = records[number]
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    return [json.dumps(record) for record in records]


@settings(max_examples=40)
@given(number=st.integers(0, len(GOOD) - 1), chosen=st.data(), value=VALUES)
def test_a_changed_field_is_left_out_or_counted_and_never_a_fault(tmp_path_factory, number, chosen, value):
    lines = changed(number, chosen.draw(st.sampled_from([*places(GOOD[number])])), value)
    file = tmp_path_factory.mktemp("damaged") / "records.jsonl"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoreWarning)
        records = list(read_lines(file))
    assert len(records) >= len(GOOD) - 1
    found = compare(records)
    assert tables_of(found)
    assert claims(found) is not None
    explain([Record.from_json(json.dumps(each)) for each in GOOD], records)
    assert report(records)


@pytest.mark.parametrize(
    "price",
    [
        {},
        {"unit": "flop", "phases": []},
        {"unit": None, "phases": PRICE["phases"]},
        {**PRICE, "phases": [{"start": 0.0, "cost": 0.5, "ratio": 1.5}]},
        {**PRICE, "phases": [{**PHASE, "cost": 0.0}]},
        {**PRICE, "phases": [{**PHASE, "ratio": 0}]},
        {**PRICE, "phases": [{**PHASE, "low": "NaN"}]},
        {**PRICE, "phases": [0]},
        {**PRICE, "lumps": [[0.0]]},
        {**PRICE, "lumps": 3},
    ],
)
def test_a_price_of_which_no_cost_can_be_told_is_refused_in_one_line_and_in_many(price):
    lines = [json.dumps({**each, "price": price}) for each in GOOD]
    with pytest.raises(ValueError, match="price of a record cannot be"):
        Record.from_json(lines[0])
    known = common()
    for _ in range(2):  # what was refused once is not taken for what was met
        with pytest.raises(ValueError, match="price of a record cannot be"):
            read_together([line.encode() for line in lines], known)


def test_a_point_at_which_less_than_nothing_was_spent_is_passed_over():
    curve = [{"spent": -1e308, "accuracy": 0.1}, {"spent": 2.0, "accuracy": 0.5}, {"spent": 4.0, "accuracy": 0.9}]
    (found,) = several("ema", [0.9], curve=curve)
    assert spent_at(found, 0.7) == pytest.approx(3.0)


@pytest.mark.parametrize("field", ["ledger", "curve"])
def test_a_number_that_is_missing_is_told_of(field):
    found = copy.deepcopy(GOOD[0])
    inside = found["ledger"] if field == "ledger" else found["curve"][0]
    inside[next(iter(inside))] = None
    with pytest.raises(ValueError, match=f"{field} of a record cannot be"):
        Record.from_json(json.dumps(found))


def test_all_published_records_are_read_without_a_complaint():
    files = sorted((Path(__file__).parent.parent / "results" / "reference").glob("*/records.jsonl"))
    assert files
    for file in files:
        assert len(list(read_lines(file))) == len(file.read_text(encoding="utf-8").splitlines())
