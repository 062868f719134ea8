"""A record survives strict JSON, whatever its names and numbers are."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effbench.records import Record, canonical, label, plain
from record_factory import record

PRICE = {
    "unit": "reference",
    "phases": [{"start": 0.0, "cost": 0.5, "ratio": 1.5, "low": 1.4, "high": 1.6, "rounds": 100}],
    "lumps": [[0.0, 0.1]],
}


def strict(text):
    def refuse(constant):
        raise ValueError(constant)

    return json.loads(text, parse_constant=refuse)


def test_a_record_comes_back_as_it_was():
    before = record({"mixup": {"alpha": 0.1, "layers": [1, 2]}}, seed=3, value=0.1 + 0.2, price=PRICE)
    assert Record.from_json(before.to_json()) == before


def test_non_finite_numbers_are_words_on_disk_and_numbers_again():
    metrics = {"test": {"good": 0.5, "nan": math.nan, "up": math.inf, "down": -math.inf}}
    before = record(metrics=metrics, flop=math.inf, ledger={"data": math.nan}, curve=[{"accuracy": -math.inf}])
    found = strict(before.to_json())
    assert found["metrics"]["test"] == {"good": 0.5, "nan": "NaN", "up": "Infinity", "down": "-Infinity"}
    after = Record.from_json(before.to_json())
    assert after.metrics["test"]["good"] == 0.5
    assert math.isnan(after.metrics["test"]["nan"])
    assert (after.metrics["test"]["up"], after.metrics["test"]["down"]) == (math.inf, -math.inf)
    assert after.flop == math.inf
    assert math.isnan(after.ledger["data"])
    assert after.curve == [{"accuracy": -math.inf}]


@pytest.mark.parametrize("name", ["NaN", "Infinity", "NaNny", "None", "NA", "0012e3", "混合精度", "a\u2028b"])
def test_names_are_never_taken_for_numbers(name):
    after = Record.from_json(
        record({name: {"mode": name}}, reason=name, metrics={"test": {"loss": math.nan}}).to_json()
    )
    assert after.techniques == {name: {"mode": name}}
    assert after.reason == name


@settings(deadline=None)
@given(st.text(), st.floats(), st.integers())
def test_any_text_and_number_survive(text, number, whole):
    before = record({text: {"x": whole}}, reason=text, metrics={"test": {"m": number}})
    after = Record.from_json(before.to_json())
    assert (after.techniques, after.reason) == ({text: {"x": whole}}, text)
    assert math.isclose(after.metrics["test"]["m"], number, rel_tol=0) or math.isnan(number)
    assert "\n" not in before.to_json()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[1]", "found list"),
        ('{"suite": "s"}', "missing"),
        ('{"suite": "s", "workload": "w", "techniques": [], "seed": 0, "budget": "1s", "status": "ok"}', "techniques"),
        ('{"suite": "s", "workload": "w", "techniques": {}, "seed": "0", "budget": "1s", "status": "ok"}', "seed"),
        (record().to_json().replace('"curve": [', '"curve": [3, '), "found 3"),
        (record(versions={"torch": {}}).to_json(), "versions"),
        (record(warnings=[["odd"]]).to_json(), "warnings"),
        (record(ledger={"setup": "long"}).to_json(), "ledger"),
        (record(metrics={"test": {"accuracy": [1]}}).to_json(), "metrics"),
        ('{"suite": "s", "workl', "Unterminated"),
        ('{"a":' * 50_000 + "1" + "}" * 50_000, "nested too deep"),
    ],
)
def test_what_is_no_record_is_refused(line, said):
    with pytest.raises(ValueError, match=said):
        Record.from_json(line)


def test_keys_of_a_newer_version_are_left_out():
    found = strict(record().to_json()) | {"colour": "blue"}
    assert Record.from_json(json.dumps(found)) == record()


def test_what_is_not_plain_is_refused_by_name():
    with pytest.raises(TypeError, match="found object"):
        record(environment={"device": object()}).to_json()
    assert plain({"b", "a"}) == ["a", "b"]


def test_labels_are_for_people_and_canonical_text_tells_sets_apart():
    assert label({}) == "baseline"
    assert label({"mixup": {"alpha": 0.1}, "ema": {}}) == "ema+mixup(alpha=0.1)"
    assert label({"a": {"x": 1}}) == label({"a": {"x": "1"}})
    assert canonical({"a": {"x": 1}}) != canonical({"a": {"x": "1"}})
    assert canonical({"a": {}, "b": {}}) == canonical({"b": {}, "a": {}})
