"""Every code block of README, CONTRIBUTING and docs does what it says: it is run here.

A comment before a block says how: `<!-- file: NAME -->` writes it to NAME, `<!-- not run: WHY -->` leaves it out.
Else a `python` block is executed, the `$` lines of a `console` block are run by a shell, and a `toml` block is read as
a suite. The blocks of one page share a folder and run in order.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"(?:^<!-- (?P<how>[^\n]*?) -->\n+)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)#\s]+)[^)]*\)")

pytestmark = pytest.mark.docs


@dataclass(frozen=True)
class Block:
    how: str
    kind: str
    text: str


def blocks(page: Path) -> Iterator[Block]:
    for found in BLOCK.finditer(page.read_text(encoding="utf-8")):
        yield Block(found["how"] or "", found["kind"], found["text"])


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_blocks_run(page: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for block in blocks(page):
        if block.how.startswith("not run: "):
            continue
        if block.how.startswith("file: "):
            file = tmp_path / block.how.removeprefix("file: ")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
        elif block.kind in {"python", "console", "toml"}:
            commands = {"python": python, "console": shell, "toml": suite}[block.kind](block.text, tmp_path)
            done = subprocess.run(commands, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{page.name}:\n{block.text}\n{done.stdout}\n{done.stderr}"


def python(text: str, folder: Path) -> list[str]:
    return [sys.executable, "-c", text]


def shell(text: str, folder: Path) -> list[str]:
    lines = [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]
    assert lines, f"a console block shows what is typed after `$ `:\n{text}"
    return ["bash", "-euo", "pipefail", "-c", "\n".join(lines)]


def suite(text: str, folder: Path) -> list[str]:
    (folder / "page.toml").write_text(text, encoding="utf-8")
    code = "from effbench import plugins, suite; suite.load('page.toml', plugins.load())"
    return [sys.executable, "-c", code]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for found in LINK.finditer(page.read_text(encoding="utf-8")):
        target = found["target"]
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_says_what_it_is(page: Path) -> None:
    for block in blocks(page):
        assert block.kind, f"{page.name}: a block without a language:\n{block.text}"
        assert not block.how or block.how.startswith(("file: ", "not run: ")), block.how
