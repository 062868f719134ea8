"""Commands of the command line, called in this process, and what they say."""

from __future__ import annotations

import pytest

from effbench import cli


def shown(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """What a command writes; it says nothing on standard error."""
    assert cli.main(arguments) == code
    out, err = capsys.readouterr()
    assert err == ""
    return out


def told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 2) -> str:
    """What a failing command says on standard error; nothing else may be said."""
    assert cli.main(arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("effbench: ")
    return err
