"""Whether the Hugging Face hub can be reached, found out in seconds.

Left to itself the library retries for 24 s where the connection is refused, and for minutes where nothing answers.
Its offline switch is read once, when it is first imported; so the hub is asked with the standard library before that.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from types import ModuleType

from effbench.errors import DataUnavailable

PROBE_SECONDS = 3.0
OFFLINE_SWITCHES = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE")


def endpoint() -> str:
    """Return the address of the hub, or of the mirror that the user has set."""
    return os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")


def unreachable() -> str:
    """Return "" where the hub answers, else the reason; each address is asked once in a process."""
    for switch in OFFLINE_SWITCHES:
        if os.environ.get(switch, "").upper() in {"1", "ON", "YES", "TRUE"}:
            return f"{switch} is set"
    return _probe(endpoint())


@functools.cache
def _probe(address: str) -> str:
    found = [f"no answer within {PROBE_SECONDS:.0f} s"]

    def ask() -> None:
        try:
            request = urllib.request.Request(f"{address}/api/datasets?limit=1", method="HEAD")  # noqa: S310 - the user's own address
            urllib.request.urlopen(request, timeout=PROBE_SECONDS).close()  # noqa: S310 - as above
        except urllib.error.HTTPError:
            found[0] = ""  # an answer, if not a friendly one
        except (OSError, ValueError) as error:
            found[0] = str(getattr(error, "reason", error))
        else:
            found[0] = ""

    asking = threading.Thread(target=ask, daemon=True)  # as no timeout applies to looking the name up
    asking.start()
    asking.join(PROBE_SECONDS + 0.2)
    return found[0]


def not_installed() -> str:
    """Return "" where the library `datasets` is installed, else what to do."""
    if importlib.util.find_spec("datasets") is None:
        return "data from the Hugging Face hub needs the library 'datasets': pip install 'effbench[hub]'"
    return ""


def import_datasets(*, online: bool) -> ModuleType:
    """Import the library `datasets`, with its offline switch on where the hub cannot be reached.

    online: False for local files, for which the hub is not asked.

    Raises:
        DataUnavailable: it is not installed.
        ConnectionError: the hub cannot be reached, and it is too late to tell the library not to try.
    """
    if reason := not_installed():
        raise DataUnavailable(reason)
    reason = unreachable() if online else ""
    constants = sys.modules.get("huggingface_hub.constants")
    if not reason or (constants is not None and constants.HF_HUB_OFFLINE):
        return importlib.import_module("datasets")
    if constants is not None:
        raise ConnectionError(reason)
    before = os.environ.get("HF_HUB_OFFLINE")
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        return importlib.import_module("datasets")
    finally:
        if before is None:
            del os.environ["HF_HUB_OFFLINE"]
        else:
            os.environ["HF_HUB_OFFLINE"] = before


def in_library_cache(repository: str) -> bool:
    """Return whether the library keeps a copy of the data set, which it can load without the hub."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    home = os.environ.get("HF_HOME") or Path(home) / "huggingface"
    folder = Path(os.environ.get("HF_DATASETS_CACHE") or Path(home) / "datasets")
    wanted = _plain(repository.replace("/", ""))  # the folder of a/TinyStories is a___tiny_stories
    return folder.is_dir() and any(_plain(entry.name) == wanted for entry in folder.iterdir() if entry.is_dir())


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
