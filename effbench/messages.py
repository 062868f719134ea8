"""What a person is told beside the result: warnings and failures, one line each on standard error."""

from __future__ import annotations

import sys

from effbench.report.console import Screen, emit, visible


def warn(text: str) -> None:
    """Say what should be known, though the work goes on."""
    first, _, rest = text.partition("\n")
    _say(f"warning: {first}{' ...' if rest else ''}", "yellow")


def fail(text: str) -> None:
    """Say why the work does not go on."""
    _say(text, "red", "bold")


def _say(text: str, *styles: str) -> None:
    screen = Screen.of(sys.stderr)
    head = screen.paint("effbench:", *styles)
    first, *rest = (visible(line) for line in text.splitlines() or [""])
    emit("\n".join([f"{head} {first}", *rest]), sys.stderr)
