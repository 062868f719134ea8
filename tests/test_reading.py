"""Many lines at once give the records that each line gives by itself."""

import json
import math

import pytest

from effbench.reading import common, read_together
from effbench.records import Record
from effbench.rows import Rows
from effbench.store import StoreWarning, read_lines
from record_factory import record


def priced(ratio):
    phase = {"start": 0.0, "cost": 0.5, "ratio": ratio, "low": 0.9, "high": 1.1, "rounds": 100}
    return {"unit": "reference", "phases": [phase], "lumps": [[0.0, 0.1]]}


SEVERAL = [
    record(seed=0),
    record("ema", seed=1, price=priced(1), environment={"cores": 2, "load": 0.5, "system": "a"}),
    record("ema", seed=2, price=priced(1.0), environment={"cores": 2.0, "load": None, "system": "a"}),
    record({"混合": {"alpha": 1}}, reason="a\u2028b", warnings=["busy"], status="failed"),
    record({"混合": {"alpha": True}}, measured={"joules": 3.5}, traffic=[{"all_reduce": {"bytes": 1.0}}]),
    record(metrics={"test": {"accuracy": math.inf}}, curve=[{"accuracy": -math.inf}]),
    record("NaN", identity={"workload": "w"}),
]


def lines_of(records):
    return [each.to_json().encode() + b"\n" for each in records]


def shown(records):
    """As text, in which 1, 1.0 and True differ."""
    return [each.to_json() for each in records]


def test_records_are_those_that_each_line_gives_by_itself():
    lines = lines_of(SEVERAL)
    found = read_together(lines, common())
    assert found == SEVERAL
    assert shown(found) == shown([Record.from_json(line.decode()) for line in lines])


def test_what_records_have_in_common_is_kept_once():
    known = common()
    (one,), (other,) = (read_together(lines_of([record("ema", seed=seed)]), known) for seed in (0, 1))
    for name in ("techniques", "versions", "plugins", "order", "workload", "measured", "traffic", "warnings"):
        assert getattr(one, name) is getattr(other, name), name
    assert one.environment["processor"] is other.environment["processor"]
    assert isinstance(one.curve, Rows)


def test_what_is_written_alike_alone_is_shared():
    options = [{"a": {"x": x}} for x in (1, 1.0, True, "1")]
    found = read_together(lines_of([record(each) for each in options]), common())
    assert repr([each.techniques for each in found]) == repr(options)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seed", "0"),
        ("techniques", []),
        ("techniques", {"a": 3}),
        ("metrics", {"test": 3}),
        ("metrics", {"test": {"accuracy": [1]}}),
        ("curve", [3]),
        ("curve", [{"accuracy": "much"}]),
        ("versions", {"torch": {}}),
        ("warnings", [["odd"]]),
        ("order", "ema"),
        ("ledger", {"setup": "long"}),
        ("traffic", [{"all_reduce": {"bytes": "many"}}]),
    ],
)
def test_a_line_that_is_no_record_is_left_out_alone(tmp_path, name, value):
    bad = json.dumps(json.loads(record().to_json()) | {name: value})
    with pytest.raises(ValueError, match=name):
        read_together([*lines_of([record()]), bad.encode()], common())
    file = tmp_path / "records.jsonl"
    file.write_bytes(b"".join(lines_of([record(seed=1)])) + bad.encode() + b"\n" + b"".join(lines_of([record(seed=2)])))
    with pytest.warns(StoreWarning, match="line 2 is no record"):
        assert [each.seed for each in read_lines(file)] == [1, 2]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"suite": "s"}', None),
        (b'{"seed": 1}, {"seed": 2}', None),
        (b"[1]", None),
        (b"\xff", None),
        (b'{"suite": "s", "suite": "t"', None),
        (record(reason="x").to_json().replace('"x"', '"x", "reason": "y"').encode(), "y"),  # the last of two counts
        (record(reason="\udcff").to_json().encode("utf-8", "backslashreplace"), "\udcff"),
    ],
)
def test_odd_lines_are_read_as_ever(tmp_path, line, reason):
    file = tmp_path / "records.jsonl"
    file.write_bytes(b"".join(lines_of([record(seed=1)])) + line + b"\n" + b"".join(lines_of([record(seed=2)])))
    if reason is None:
        with pytest.warns(StoreWarning, match="line 2 is no record"):
            assert [each.seed for each in read_lines(file)] == [1, 2]
    else:
        assert [each.reason for each in read_lines(file)] == ["", reason, ""]


def test_a_record_of_an_older_version_has_the_usual_values():
    old = {name: value for name, value in json.loads(record().to_json()).items() if name not in {"jobs", "traffic"}}
    (found,) = read_together([json.dumps(old | {"colour": "blue"}).encode()], common())
    assert (found.jobs, found.traffic) == (1, [])
