"""What check says of a technique, and what it cannot check."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import shown, told
from effbench.commands import check
from strange_packages import LAWLESS

pytestmark = pytest.mark.usefixtures("elsewhere")


@pytest.fixture
def _small_company(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check pairs with mixup alone: pairs with all techniques, compiled ones too, are for the tests of the laws."""
    all_pairs = check.in_company
    monkeypatch.setattr(check, "in_company", lambda technique, known: all_pairs(technique, {"mixup": known["mixup"]}))


@pytest.mark.usefixtures("_small_company")
def test_check_tells_which_law_is_broken(capsys: pytest.CaptureFixture[str]) -> None:
    Path("lawless.py").write_text(LAWLESS, encoding="utf-8")
    lines = shown(capsys, "check", "lawless.py", code=1).splitlines()
    assert lines[0] == "lawless"
    verdicts = {line.split()[1]: line.split()[0] for line in lines[1:]}
    assert verdicts["described"] == "kept"
    assert verdicts["neutral"] == verdicts["wraps"] == "broken"
    assert any(line.startswith("  broken  wraps") and "never calls the old one" in line for line in lines)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("nowhere.py", None, "there is no file"),
        ("loop.py", "a loop", "there is no file"),
        ("empty.py", "x = 1", "empty.py defines no technique; mark a function with @effbench.technique(...)"),
        ("broken.py", "import nothing_at_all", "broken.py cannot be imported: ModuleNotFoundError"),
        ("leaving.py", "raise SystemExit", "leaving.py cannot be imported: SystemExit"),
        ("taken.py", LAWLESS.replace("lawless", "mixup"), "there is a technique 'mixup' already, in "),
    ],
)
def test_what_cannot_be_checked(name: str, text: str | None, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    if text == "a loop":
        Path(name).symlink_to(name)
    elif text is not None:
        Path(name).write_text(text, encoding="utf-8")
    assert said in told(capsys, "check", name)


@pytest.mark.usefixtures("_small_company")
def test_a_built_in_technique_is_checked_by_its_file(capsys: pytest.CaptureFixture[str]) -> None:
    from effbench_techniques.optimization_centric.objective import label_smoothing

    lines = shown(capsys, "check", str(label_smoothing.__file__)).splitlines()
    assert lines[0] == "label_smoothing"
    assert {line.split()[0] for line in lines[1:]} == {"kept"}
    assert lines[-1].split() == ["kept", "pairs", "in", "1", "pair"]
