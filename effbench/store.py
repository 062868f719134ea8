"""The results folder: records that are only ever appended, logs, and what the trials were run with.

    results/records.jsonl   one record a line, strict JSON; two runs may append at once
    results/logs/           one log a trial
    results/prices.json     what a step costs, for budgets in reference-seconds
    results/suite.json      the suite as it was run, and which trials were planned
    results/claims.json     what is published of its techniques
    results/.run.lock       held by `effbench run` as long as it runs: a second one is refused
    results/aa/             the same for the baseline against itself

A line that was cut off by a crash costs itself alone: readers leave it out and say so.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from effbench import collecting
from effbench.errors import EffbenchError
from effbench.planned import without_record
from effbench.reading import Common, common, read_together
from effbench.records import Record, canonical, plain

#: Statuses that a resumed run keeps. What raised, hung, was killed or never ran is tried again.
FINAL: frozenset[str] = frozenset({"ok", "skipped", "diverged"})

_TOGETHER = 32  # lines that are parsed at once: few enough to stay in the processor's own memory
_PROBE_BYTES = 65536  # more than a record, so that a full disk is seen before the compute


class StoreWarning(UserWarning):
    """Something in a results folder could not be read or locked; the rest could."""


class Store:
    """A results folder. Making one touches nothing; `check_writable` makes the folder."""

    __slots__ = ("_read", "_seen", "logs", "path", "records_file")

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.records_file = self.path / "records.jsonl"
        self.logs = self.path / "logs"
        self._seen: tuple[int, ...] = ()
        self._read: list[Record] = []

    def check_writable(self) -> None:
        """Make the folder and write a probe, so that no compute is lost for want of a place for its result.

        Raises:
            EffbenchError: nothing can be written there; names the path and the reason.
        """
        probe = self.path / f".probe.{os.getpid()}.tmp"
        with _explained("write results to", self.path):
            self.logs.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self.records_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666))
            try:
                _write_through(probe, b"\0" * _PROBE_BYTES)
            finally:
                probe.unlink(missing_ok=True)

    def append(self, record: Record) -> None:
        """Add a record to the file and wait until the disk has it; on any error the file stays as it was.

        Raises:
            TypeError: the record holds something that is no plain value.
            EffbenchError: the file cannot be written.
        """
        # A lone surrogate becomes \udcxx, which is how JSON writes it.
        line = record.to_json().encode("utf-8", "backslashreplace") + b"\n"
        with (
            _explained("append to", self.records_file),
            _opened(self.records_file) as descriptor,
            _locked(descriptor),
        ):
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                line = b"\n" + line  # the last writer died inside its line
            try:
                _write_all(descriptor, line)
                os.fsync(descriptor)
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, size)
                raise

    def records(self) -> list[Record]:
        """Return all records in the order in which they were written; warn of lines that are none.

        Raises:
            EffbenchError: there is no such folder, or its file cannot be read.
        """
        with _explained("read results from", self.path):
            if not self.path.is_dir():
                raise FileNotFoundError(2, "there is no such folder", str(self.path))
            if not self.records_file.exists():
                return []
            found = self.records_file.stat()
            seen = (found.st_ino, found.st_size, found.st_mtime_ns)
            if seen != self._seen:
                self._read, self._seen = read_lines(self.records_file), seen
        return list(self._read)

    def latest(self) -> dict[str, Record]:
        """Return the record that counts for each key, in the order in which these were written."""
        return latest(self.records())

    def finished(self, key: str) -> Record | None:
        """Return the record of a trial that need not run again, or None."""
        record = self.latest().get(key) if self.path.is_dir() else None
        return record if record and record.status in FINAL else None

    def read_json(self, name: str) -> Any | None:
        """Return what `<name>.json` of the folder holds ("prices", "suite"), or None where there is none.

        Raises:
            EffbenchError: the file is no JSON object.
        """
        file = self.path / f"{name}.json"
        with _explained("read results from", self.path):
            if not file.exists():
                return None
            try:
                found = json.loads(file.read_text(encoding="utf-8"))
            except (ValueError, RecursionError) as fault:
                raise EffbenchError(f"{file} is no JSON ({fault}); delete it, or restore it from a copy") from fault
            if not isinstance(found, dict):
                raise EffbenchError(f"{file} holds no JSON object; delete it, or restore it from a copy")
            return found

    def write_json(self, name: str, value: Any) -> None:
        """Replace `<name>.json` of the folder at one stroke: a reader sees the old file or the new one.

        Raises:
            TypeError: the value holds something that is no plain value.
            EffbenchError: the file cannot be written.
        """
        text = json.dumps(plain(value), allow_nan=False, ensure_ascii=False, indent=2) + "\n"
        temporary = self.path / f".{name}.{os.getpid()}.tmp"
        with _explained("write results to", self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            try:
                _write_through(temporary, text.encode("utf-8", "backslashreplace"))
                temporary.replace(self.path / f"{name}.json")
            finally:
                temporary.unlink(missing_ok=True)

    def merge_json(self, name: str, entries: Mapping[str, Any]) -> dict[str, Any]:
        """Add entries to the object in `<name>.json`, as two runs may at once; return the whole object."""
        with _explained("write results to", self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            with _opened(self.path / f".{name}.lock") as descriptor, _locked(descriptor):
                merged = {**(self.read_json(name) or {}), **entries}
                self.write_json(name, merged)
        return merged


def read_lines(file: Path) -> list[Record]:
    """Read a file of records; warn of each line that is none, and leave it out.

    Raises:
        EffbenchError: the file cannot be read.
    """
    with (
        _explained("read results from", file),
        file.open("rb") as opened,
        _locked(opened.fileno(), fcntl.LOCK_SH),
        collecting.put_off(),
    ):
        records, number, known = [], 1, common()
        while lines := list(itertools.islice(opened, _TOGETHER)):
            records += _records_of(lines, number, file, known)
            number += len(lines)
    return records


def _records_of(lines: Sequence[bytes], first: int, file: Path, known: Common) -> list[Record]:
    """Return the records of some lines, read in one go where they allow it."""
    with contextlib.suppress(ValueError, RecursionError):
        return read_together(lines, known)
    records = []
    for number, line in enumerate(lines, start=first):
        if not line.strip():
            continue
        try:
            records.append(Record.from_json(line.decode("utf-8")))
        except ValueError as fault:
            warnings.warn(
                f"{file}, line {number} is no record and is left out; a crash may have cut it off ({fault})",
                StoreWarning,
                stacklevel=3,
            )
    return records


def read_records(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[Record]:
    """Return the records that count, of results folders or files of records, in the order given.

    Trials that a folder's suite planned, and that left no record, come last, as not started.

    Raises:
        EffbenchError: a path is neither, or what lies there is damaged.
    """
    several = [Path(paths)] if isinstance(paths, str | os.PathLike) else list(map(Path, paths))
    records: list[Record] = []
    for path in several:
        records += read_lines(path) if path.is_file() else Store(path).records()
    found = list(latest(records).values())
    for path in several if found else ():
        found += without_record((Store(path).read_json("suite") if path.is_dir() else None) or {}, found)
    return found


def latest(records: Iterable[Record]) -> dict[str, Record]:
    """Return the record that counts for each key: the last final one, or else the last.

    A run that was interrupted while it repeated finished work does not take that work away. Records without
    a key are told apart by what was asked.
    """
    found: dict[str, Record] = {}
    for record in records:
        key = record.key or f"{record.workload} {record.budget} {record.seed} {canonical(record.techniques)}"
        if key not in found or record.status in FINAL or found[key].status not in FINAL:
            found.pop(key, None)  # so that the order is that of the records that count
            found[key] = record
    return found


@contextlib.contextmanager
def _explained(doing: str, path: Path) -> Iterator[None]:
    """Turn the system's errors into one that names the path and the reason."""
    try:
        yield
    except OSError as fault:
        raise EffbenchError(f"cannot {doing} {path}: {fault.strerror or fault}") from fault


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[int]:
    descriptor = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _locked(descriptor: int, kind: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Hold the file's advisory lock; it falls with the descriptor, so a killed writer blocks nobody."""
    try:
        fcntl.flock(descriptor, kind)
    except OSError as fault:
        warnings.warn(
            f"this file system has no locks ({fault.strerror}): let one run at a time write here",
            StoreWarning,
            stacklevel=2,
        )
    yield


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _write_through(file: Path, data: bytes) -> None:
    """Write a new file and wait until the disk has it."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        _write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
