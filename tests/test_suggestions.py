"""Every command that a verb suggests runs as it is printed."""

import re
import shlex
from pathlib import Path

import pytest

from effbench import cli
from effbench.store import Store
from record_factory import record


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder := tmp_path / "with a space").mkdir()
    monkeypatch.chdir(folder)


def suggested(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[list[str]]:
    """The words of each effbench command in what a verb writes."""
    assert cli.main(arguments) == 0
    text = capsys.readouterr().out
    found = re.findall(r"^ +(effbench .*)$|`(effbench [^`]*)`", text, re.MULTILINE)
    return [shlex.split(line or quoted)[1:] for line, quoted in found]


def test_the_card_of_a_plugins_technique_names_the_plugin(capsys: pytest.CaptureFixture[str]) -> None:
    place = "data_centric/regularization/my_noise"
    check, tried = suggested(capsys, "new", "technique", place, "--into", "my plugins")
    file = "my plugins/my_noise.py"
    assert check == ["check", file]
    assert tried == ["run", "smoke", "--plugin", file, "--technique", "my_noise"]
    *_, shown = suggested(capsys, "show", "my_noise", "--plugin", file)
    assert shown == ["run", "quick", "--plugin", file, "--technique", "my_noise(strength=0.1)"]
    for command in (tried, shown):
        assert cli.main([*command, "--dry-run"]) == 0
        assert "my_noise" in capsys.readouterr().out
    *_, own = suggested(capsys, "show", "mixup", "--plugin", file)
    assert "--plugin" not in own


def test_merging_tells_how_to_look(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        store = Store(name)
        store.check_writable()
        store.append(record("ema" if name == "two" else ""))
    (look,) = suggested(capsys, "merge", "one", "two", "--into", "both of them")
    assert look == ["table", "both of them"]
    assert cli.main(look) == 0
