"""The JSON Schema of suites, from which editors complete and check them; `suite.schema.json` is made by it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from effbench import cards
from effbench.discovery import OWN
from effbench.suite_file import FACTORIAL, KEYS, REQUIRED

if TYPE_CHECKING:
    from effbench.plugins import Plugins
    from effbench.techniques import Technique
    from effbench.workloads.workload import Workload

_BUDGET = {
    "type": "string",
    "pattern": r"^\s*[0-9.][^a-zA-Z]*[a-zA-Z]",  # that there is a unit; effbench itself says which there are
    "examples": ["5s reference", "60s", "60s cpu", "2000 steps", "3 epochs", "1e6 examples", "5M tokens", "3e12 flop"],
}
_WALL = r"^\s*([0-9.]+\s*(ms|min|[dhms])\s*)+$"
_KINDS = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", tuple: "array"}


def suite_schema(techniques: Iterable[Technique], workloads: Iterable[Workload]) -> dict[str, Any]:
    """Return the schema. It knows the options of these techniques and leaves those of others, of plugins, free."""
    names = sorted(workload.name for workload in workloads)
    known = {technique.name: _options(technique) for technique in sorted(techniques, key=lambda each: each.name)}
    budget = {"$ref": "#/definitions/budget"}
    shapes: dict[str, dict[str, Any]] = {
        "name": {"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.-]*$"},
        "summary": {"type": "string"},
        "budget": {"allOf": [budget]},  # what stands beside a bare $ref is ignored
        "budgets": {"type": "object", "properties": dict.fromkeys(names, budget), "additionalProperties": budget},
        "total": {"type": "string", "pattern": _WALL, "examples": ["10m", "1h30m"]},
        "seeds": _list_of({"type": "integer", "minimum": 0}),
        "workloads": _list_of({"anyOf": [{"enum": names}, {"type": "string"}]}),
        "ladder": _list_of({"type": "number", "exclusiveMinimum": 0}),
        "per_step": {"type": "boolean"},
        "factorial": {
            "type": "object",
            "additionalProperties": False,
            "required": ["techniques"],
            "properties": {
                "techniques": {"description": FACTORIAL["techniques"], **_list_of({"type": "string"}), "minItems": 2},
                "fraction": {"description": FACTORIAL["fraction"], "enum": [1, 2, 4, 8, 16, 32, 64], "default": 1},
            },
        },
        "only": {
            "type": "object",
            "properties": dict.fromkeys(names, sets := _list_of({"type": "string"})),
            "additionalProperties": sets,
        },
        "techniques": {
            "type": "array",
            "uniqueItems": True,
            "items": {"type": "object", "properties": known, "additionalProperties": {"type": "object"}},
        },
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "effbench suite",
        "description": "Which techniques to compare, on which workloads, under which budget.",
        "type": "object",
        "additionalProperties": False,
        "required": list(REQUIRED),
        "properties": {key: {"description": about, **shapes[key]} for key, about in KEYS.items()},
        "definitions": {"budget": _BUDGET},
    }


def _list_of(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "minItems": 1, "uniqueItems": True, "items": items}


def _options(technique: Technique) -> dict[str, Any]:
    card = cards.card(technique)
    options = {
        name: {"description": card.options.get(name, ""), "default": default, **_kind(default)}
        for name, default in technique.options.items()
    }
    return {"type": "object", "description": card.summary, "properties": options, "additionalProperties": False}


def _kind(default: Any) -> dict[str, str]:
    return {"type": _KINDS[type(default)]} if type(default) in _KINDS else {}


def current(plugins: Plugins) -> str:
    """Return the text of the schema's file: what effbench itself offers, whatever else is installed."""
    schema = suite_schema(
        [own for name, own in plugins.techniques.items() if plugins.origin("effbench_techniques", name) == "builtin"],
        [own for name, own in plugins.workloads.items() if plugins.origin("effbench_workloads", name) == OWN[0]],
    )
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
