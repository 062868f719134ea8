"""Write a table, a page or a figure to the file that somebody asked for."""

from __future__ import annotations

from pathlib import Path

from effbench.errors import EffbenchError


def write(file: Path, content: str | bytes) -> None:
    """Write a file, text as UTF-8.

    Raises:
        EffbenchError: it cannot be written, as on a full disk; names the file and the reason.
    """
    # A lone surrogate, as in the name of a file that is no UTF-8, is written as an escape.
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    try:
        file.write_bytes(data)
    except OSError as fault:
        raise EffbenchError(f"cannot write {file}: {fault.strerror or fault}") from fault
