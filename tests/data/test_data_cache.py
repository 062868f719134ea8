import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from effbench.data import cache
from effbench.data.prepared import cache_key, keep, prepared_source
from effbench.data.source import sha256_of
from effbench.data.splitting import unpack
from effbench.errors import DataUnavailable

INPUTS = np.arange(4 * 3000, dtype=np.uint8).reshape(4, 3000)
ARRAYS = {
    f"{s}_{p}": INPUTS if p == "inputs" else np.arange(4)
    for s in ("train", "validation", "test")
    for p in ("inputs", "targets")
}


class Counted:
    """A source that knows how often it was built."""

    def __init__(self, arrays=ARRAYS, sha256=None, **more):
        self.builds = 0

        def build():
            self.builds += 1
            return arrays

        self.source = prepared_source(
            name="made",
            summary="",
            task="",
            licence="",
            origin="thin air",
            size_mib=0,
            sha256=sha256 or sha256_of(ARRAYS),
            build=build,
            unpack=lambda arrays, sha256: unpack(arrays, sha256, lambda a: torch.from_numpy(a.astype(np.float32))),
            **more,
        )


def file_in(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


def test_a_data_set_is_built_once_and_then_read(empty_cache):
    made = Counted(needs=lambda: "a thing")
    assert made.source.missing() == "a thing"
    first, second = made.source.load(), made.source.load()
    assert made.builds == 1
    assert made.source.missing() == ""
    assert torch.equal(first.train.inputs, second.train.inputs)
    assert second.train.inputs.tolist() == INPUTS.tolist()
    assert file_in(empty_cache).name == f"made-{sha256_of(ARRAYS)[:16]}.npz"


def shortened(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flipped(data: bytes) -> bytes:
    middle = data.index(bytes(range(200)))
    return data[:middle] + b"\x07" + data[middle + 1 :]


def renamed(data: bytes) -> bytes:
    return data.replace(b"train_inputs", b"train_inputz")


@pytest.mark.parametrize("damage", [shortened, flipped, renamed, lambda _: b"", lambda _: b"not a zip" * 100])
def test_a_damaged_file_is_built_again(empty_cache, damage):
    made = Counted()
    made.source.load()
    file = file_in(empty_cache)
    whole = file.read_bytes()
    assert damage(whole) != whole
    file.write_bytes(damage(whole))
    assert made.source.load().train.inputs.tolist() == INPUTS.tolist()
    assert made.builds == 2
    assert sha256_of(cache.read(file.stem)) == sha256_of(ARRAYS)


def test_a_whole_file_with_other_contents_is_built_again(empty_cache):
    made = Counted()
    cache.write(cache_key("made", sha256_of(ARRAYS)), ARRAYS | {"train_inputs": INPUTS[::-1]})
    assert made.source.load().train.inputs.tolist() == INPUTS.tolist()
    assert made.builds == 1


def test_pickled_objects_are_never_loaded(empty_cache):
    empty_cache.mkdir(parents=True)
    np.savez(empty_cache / "evil.npz", evil=np.array([print], object))
    assert cache.read("evil") is None


def test_what_is_built_otherwise_than_pinned_is_refused_and_not_kept(empty_cache):
    made = Counted(arrays=ARRAYS | {"train_inputs": INPUTS + 1})
    with pytest.raises(DataUnavailable, match=f"'made' .*{sha256_of(ARRAYS)} is expected.*thin air"):
        made.source.load()
    with pytest.raises(DataUnavailable, match=f"{sha256_of(ARRAYS)} is expected"):
        keep(made.source, ARRAYS | {"train_inputs": INPUTS + 1})
    assert not empty_cache.exists()


def test_another_hash_is_another_file():
    assert cache_key("made", "a" * 64) != cache_key("made", "b" * 64)


def test_without_a_writable_folder_it_works_and_warns_once_a_load(tmp_path, monkeypatch):
    (tmp_path / "effbench").write_text("a file where a folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = Counted()
    with pytest.warns(RuntimeWarning, match=f"{tmp_path}/effbench/data cannot be written.*XDG_CACHE_HOME") as caught:
        splits = made.source.load()
    assert len(caught) == 1
    assert splits.test.inputs.tolist() == INPUTS.tolist()
    with pytest.raises(DataUnavailable, match="what was fetched cannot be kept"):
        keep(made.source, ARRAYS)


WRITER = """
import numpy as np, sys
from effbench.data import cache
arrays = {"a": np.full(300_000, int(sys.argv[1]), np.uint8), "b": np.full(300_000, int(sys.argv[1]), np.uint8)}
for _ in range(60):
    cache.write("shared", arrays)
    found = cache.read("shared")
    assert found is not None and found["a"].min() == found["a"].max() == found["b"].min() == found["b"].max()
"""


def test_two_processes_may_write_one_file_at_once(empty_cache):
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(n)]) for n in (1, 2)]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert cache.read("shared")["a"][0] in (1, 2)
    assert file_in(empty_cache).name == "shared.npz"  # and nothing half written beside it


KILLED = """
import numpy as np, os
from effbench.data import cache
class Deadly:
    def __array__(self, *_, **__): os._exit(9)
cache.write("half", {"a": np.zeros(100_000), "b": Deadly()})
"""


def test_a_writer_killed_in_the_middle_leaves_no_half_file(empty_cache):
    assert subprocess.run([sys.executable, "-c", KILLED], check=False).returncode == 9
    partial = file_in(empty_cache)
    assert partial.suffix == ".partial"
    assert cache.read("half") is None
    cache.write("half", {"a": np.ones(3)})
    assert partial.exists()  # it might still be written to
    old = time.time() - 2 * cache.STALE_SECONDS
    os.utime(partial, (old, old))
    cache.write("half", {"a": np.ones(3)})
    assert file_in(empty_cache).name == "half.npz"


def test_a_writer_that_fails_cleans_up(empty_cache):
    class Faulty:
        def __array__(self, *_, **__):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        cache.write("half", {"a": np.zeros(10), "b": Faulty()})
    assert list(empty_cache.iterdir()) == []


@pytest.mark.parametrize(
    ("platform", "chosen", "expected"),
    [
        ("linux", "/elsewhere", "/elsewhere/effbench/data"),
        ("linux", "", "/home/me/.cache/effbench/data"),
        ("linux", "not/absolute", "/home/me/.cache/effbench/data"),
        ("darwin", "", "/home/me/Library/Caches/effbench/data"),
        ("darwin", "/elsewhere", "/elsewhere/effbench/data"),
    ],
)
def test_the_folder_is_where_the_platform_keeps_caches(monkeypatch, platform, chosen, expected):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv("XDG_CACHE_HOME", chosen)
    monkeypatch.setenv("HOME", "/home/me")
    assert cache.folder() == Path(expected)
