"""The JSON Schema of suites: it takes what effbench takes, and refuses what is wrong in kind."""

from __future__ import annotations

import json
import tomllib
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

from effbench import plugins, schema
from effbench import suite as suites
from effbench.suite_file import KEYS

SHAPE = json.loads(files("effbench").joinpath("suite.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft7Validator(SHAPE)


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft7Validator.check_schema(SHAPE)


def test_the_schema_is_current() -> None:
    found = files("effbench").joinpath("suite.schema.json").read_text(encoding="utf-8")
    assert found == schema.current(plugins.load(strict=True)), "run `python tools/refresh.py`"


@pytest.mark.parametrize("name", suites.packaged())
def test_packaged_suites_pass_and_name_the_schema(name: str) -> None:
    text = suites.packaged()[name].read_text(encoding="utf-8")
    assert not list(VALIDATOR.iter_errors(tomllib.loads(text)))
    assert text.startswith("#:schema ../effbench/suite.schema.json\n")


GOOD = {
    "workloads": ["digits_mlp"],
    "seeds": [0],
    "techniques": [{"mixup": {"alpha": 0.1}}, {"a_plugins_own": {"x": 1}}],
}


def test_what_plugins_offer_is_free() -> None:
    VALIDATOR.validate({**GOOD, "workloads": ["a_plugins_own"], "budget": "100 joules", "budgets": {"x": "5s"}})


@pytest.mark.parametrize(
    ("wrong", "at"),
    [
        ({"budgt": "5s"}, ""),
        ({"budget": "60"}, "budget"),
        ({"budget": "-1s"}, "budget"),
        ({"budget": 60}, "budget"),
        ({"budgets": {"kjv_gpt": 5}}, "budgets.kjv_gpt"),
        ({"total": "5M tokens"}, "total"),
        ({"seeds": []}, "seeds"),
        ({"seeds": [0, 0]}, "seeds"),
        ({"seeds": [-1]}, "seeds.0"),
        ({"seeds": [True]}, "seeds.0"),
        ({"seeds": 3}, "seeds"),
        ({"workloads": "digits_mlp"}, "workloads"),
        ({"workloads": [1]}, "workloads.0"),
        ({"name": "a/b"}, "name"),
        ({"techniques": {"mixup": {}}}, "techniques"),
        ({"techniques": [{"mixup": 0.2}]}, "techniques.0.mixup"),
        ({"techniques": [{"mixup": {"alhpa": 0.2}}]}, "techniques.0.mixup"),
        ({"techniques": [{"mixup": {"alpha": "0.2"}}]}, "techniques.0.mixup.alpha"),
        ({"techniques": [{"mixup": {}}, {"mixup": {}}]}, "techniques"),
    ],
)
def test_what_is_wrong_is_refused_where_it_stands(wrong: dict[str, Any], at: str) -> None:
    errors = list(VALIDATOR.iter_errors({**GOOD, **wrong}))
    assert [".".join(map(str, error.absolute_path)) for error in errors] == [at]


@pytest.mark.parametrize("key", ["workloads", "seeds"])
def test_what_is_needed_is_asked_for(key: str) -> None:
    assert not VALIDATOR.is_valid({name: value for name, value in GOOD.items() if name != key})


def test_editors_can_explain_and_complete() -> None:
    assert {key: shape["description"] for key, shape in SHAPE["properties"].items()} == KEYS
    mixup = SHAPE["properties"]["techniques"]["items"]["properties"]["mixup"]
    assert mixup["properties"]["alpha"]["default"] == 0.2
    assert mixup["properties"]["alpha"]["description"].startswith("both parameters of the Beta")
    assert "kjv_gpt" in SHAPE["properties"]["workloads"]["items"]["anyOf"][0]["enum"]
