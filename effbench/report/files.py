"""Write a table, a page or a figure to the file that somebody asked for."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from effbench.errors import EffbenchError


def write(file: Path, content: str | bytes) -> None:
    """Write a file, text as UTF-8, whole or not at all; what is no plain file, such as a pipe, is written into.

    Raises:
        EffbenchError: it cannot be written, as on a full disk; names the file and the reason.
    """
    # A lone surrogate, as in the name of a file that is no UTF-8, is written as an escape.
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    try:
        # What /dev/stdout leads to may be a file that others write as well: it must not be replaced under them.
        streams = str(file.absolute()).startswith(("/dev/", "/proc/"))
        if streams or (file.exists() and not file.is_file()):
            file.write_bytes(data)
        else:
            _replace(Path(os.path.realpath(file)), data)  # a link stays one
    except OSError as fault:
        raise EffbenchError(f"cannot write {file}: {fault.strerror or fault}") from fault


def _replace(file: Path, data: bytes) -> None:
    """Put a file in the place of an earlier one, which is kept until all is written; its mode lasts."""
    if file.exists() and not os.access(file, os.W_OK):
        file.open("ab").close()  # raises: whoever protected the file meant it
    beside = file.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with beside.open("xb") as stream:
            if file.exists():
                beside.chmod(file.stat().st_mode & 0o7777)
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(file)
    except BaseException:  # a half-written file is in nobody's way, not even after Ctrl-C
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
