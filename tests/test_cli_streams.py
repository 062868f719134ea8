"""The command line never crashes a shell, a pipe or a console, whatever they are closed to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from effbench import cli
from effbench.store import Store
from record_factory import several


def effbench_process(*arguments: str, env: dict[str, str] | None = None, **words: object) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONWARNINGS": "error", **(env or {})}
    command = [sys.executable, "-m", "effbench", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, **words)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(("command", "code"), [("list suites", 0), ("table nowhere", 2)])
def test_a_shell_may_close_what_it_likes(closed: str, command: str, code: int, tmp_path: Path) -> None:
    shell = ["sh", "-c", f"{sys.executable} -m effbench {command} {closed}"]
    found = subprocess.run(shell, cwd=tmp_path, capture_output=True, check=False)
    assert found.returncode == code
    assert b"Error" not in found.stdout + found.stderr


def test_what_is_closed_takes_no_number_that_another_file_would_get() -> None:
    look = "import os, effbench.cli as c; c._open_closed_streams(); os._exit(os.open('/', os.O_RDONLY) < 3)"
    shell = ["sh", "-c", f'{sys.executable} -c "{look}" <&- >&- 2>&-']
    assert subprocess.run(shell, check=False).returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk to try")
@pytest.mark.parametrize("command", ["list suites > /dev/full", "table nowhere 2> /dev/full"])
def test_a_full_disk_leaves_the_exit_code(command: str, tmp_path: Path) -> None:
    shell = ["sh", "-c", f"{sys.executable} -m effbench {command}"]
    assert subprocess.run(shell, cwd=tmp_path, capture_output=True, check=False).returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk to try")
@pytest.mark.parametrize("command", [["table"], ["report"], ["plot", "forest"]])
def test_a_full_disk_is_named_where_a_file_was_asked_for(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if command[0] == "plot":
        pytest.importorskip("matplotlib", reason="figures for papers need matplotlib: pip install 'effbench[plots]'")
    store = Store(tmp_path / "results")
    store.check_writable()
    for each in several("", [0.80, 0.82, 0.81]) + several("ema", [0.85, 0.87, 0.89]):
        store.append(each)
    (tmp_path / "full.pdf").symlink_to("/dev/full")
    assert cli.main([*command, str(tmp_path / "results"), "-o", str(tmp_path / "full.pdf")]) == 2
    assert capsys.readouterr().err == f"effbench: cannot write {tmp_path / 'full.pdf'}: No space left on device\n"


def test_a_reader_that_has_seen_enough_is_no_fault() -> None:
    process = effbench_process("list", "taxonomy", "--json")
    assert process.stdout is not None
    process.stdout.close()  # before a byte is written, as `| head` does after its lines
    assert process.wait(60) == cli.BROKEN_PIPE
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()


@pytest.mark.parametrize(
    ("env", "encoding"),
    [
        ({"PYTHONIOENCODING": "cp1252"}, "cp1252"),
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""}, "ascii"),
    ],
)
def test_consoles_without_unicode_get_stand_ins(env: dict[str, str], encoding: str, tmp_path: Path) -> None:
    plugin = tmp_path / "größe.py"
    plugin.write_text("raise ValueError('Größe ≥ 3 — \U0001f600')", encoding="utf-8")
    process = effbench_process("show", "label_smoothing", "--plugin", "größe.py", env=env, cwd=tmp_path)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "Rethinking the Inception Architecture" in out.decode(encoding)
    warned = {"cp1252": "Größe \\u2265 3 — \\U0001f600", "ascii": "Gr\\xf6\\xdfe \\u2265 3 - \\U0001f600"}
    assert warned[encoding] in err.decode(encoding)


def test_json_is_the_same_on_every_console(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list", "--json"]) == 0
    shown = capsys.readouterr().out
    assert shown.isascii()
    assert all("name" in thing for thing in json.loads(shown))
