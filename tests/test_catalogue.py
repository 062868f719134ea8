"""What lists are made of, where plugins are broken or odd."""

from __future__ import annotations

from pathlib import Path

import pytest

from effbench import catalogue, plugins
from effbench.discovery import module_from_file
from strange_packages import LAWLESS

pytestmark = pytest.mark.usefixtures("elsewhere")


def test_a_broken_plugin_is_listed_with_its_fault() -> None:
    Path("broken.py").write_text("raise ValueError('no')", encoding="utf-8")
    things = catalogue.loaded_plugins(plugins.load(["broken.py"]))
    assert things[-1]["problem"] == "ValueError: no"
    assert things[-1]["offers"] == {}
    assert "mixup" in next(thing for thing in things if thing["name"] == "builtin")["offers"]["techniques"]


def test_options_that_json_lacks_are_written_out() -> None:
    text = LAWLESS.replace("by: float = 1.0", "by: object = object").replace(', neutral={"by": 1.0}', "")
    Path("odd.py").write_text(text, encoding="utf-8")
    loaded = plugins.load()
    loaded.techniques["lawless"] = module_from_file(Path("odd.py")).lawless
    odd = next(thing for thing in catalogue.techniques(loaded) if thing["name"] == "lawless")
    assert odd["options"] == {"by": "<class 'object'>"}
