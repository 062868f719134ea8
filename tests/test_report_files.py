"""What was asked for with -o is written whole, or what was there stays."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from effbench.errors import EffbenchError
from effbench.report.files import write


def test_a_write_that_fails_leaves_the_earlier_file_and_nothing_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "table.md"
    file.write_text("earlier")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(EffbenchError, match=r"cannot write .*table\.md: No space left on device"):
        write(file, "later")
    assert file.read_text() == "earlier"
    assert [each.name for each in tmp_path.iterdir()] == ["table.md"]


def test_the_mode_of_an_earlier_file_lasts(tmp_path: Path) -> None:
    file = tmp_path / "table.md"
    file.write_text("earlier")
    file.chmod(0o640)
    write(file, "later")
    assert file.read_text() == "later"
    assert file.stat().st_mode & 0o7777 == 0o640


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_a_link(tmp_path: Path, there: bool) -> None:
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "table.md", tmp_path / "link.md"
    if there:
        target.write_text("earlier")
    link.symlink_to(target)
    write(link, "later")
    assert link.is_symlink()
    assert target.read_text() == "later"


def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write(pipe, "through")
    reader.join()
    assert read == [b"through"]
    assert pipe.is_fifo()


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="there is no /dev/stdout here")
def test_a_file_behind_stdout_is_not_replaced(tmp_path: Path) -> None:
    script = "from pathlib import Path; from effbench.report.files import write; write(Path('/dev/stdout'), 'text')"
    with (tmp_path / "out").open("wb") as out:
        before = os.fstat(out.fileno()).st_ino
        subprocess.run([sys.executable, "-c", script], stdout=out, check=True)
    assert (tmp_path / "out").read_text() == "text"
    assert (tmp_path / "out").stat().st_ino == before


def test_a_folder_is_no_file_to_write(tmp_path: Path) -> None:
    with pytest.raises(EffbenchError, match="cannot write"):
        write(tmp_path, "text")
