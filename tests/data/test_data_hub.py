import dataclasses
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

from effbench.data import hub_connection
from effbench.data.hub import hub_source
from effbench.data.hub_decoders import images
from effbench.data.hub_entries import AG_NEWS, CIFAR10, FASHION_MNIST, HUB_SOURCES, SST2, TINYSTORIES, WIKITEXT2
from effbench.errors import DataUnavailable

datasets = pytest.importorskip("datasets", reason="pip install 'effbench[hub]'")


def save(folder, entry, split, columns, features=None):
    inside = folder / (entry.config or "data")
    inside.mkdir(exist_ok=True)
    rows = datasets.Dataset.from_dict(columns, features=features)
    rows.to_parquet(inside / f"{split}-00000-of-00001.parquet")


def with_decode(entry, decode):
    return hub_source(dataclasses.replace(entry, decode=decode))


def test_images_are_decoded_once_with_a_validation_split_carved_out(empty_cache, tmp_path):
    pixels = np.random.RandomState(0).randint(0, 256, (70, 32, 32, 3)).astype(np.uint8)
    labels = np.arange(70) % 10
    features = datasets.Features(img=datasets.Image(), label=datasets.ClassLabel(num_classes=10))
    for split, chosen in (("train", slice(0, 50)), ("test", slice(50, 70))):
        save(tmp_path, CIFAR10, split, {"img": list(pixels[chosen]), "label": list(labels[chosen])}, features)
    source = with_decode(CIFAR10, images("img", "label", mode="RGB", validation=10))
    source.from_folder(tmp_path)
    splits = source.load()
    assert splits.train.inputs.shape == (40, 3, 32, 32)
    assert splits.validation.targets.sort().values.tolist() == list(range(10))
    expected = torch.from_numpy(pixels[50:].transpose(0, 3, 1, 2) / 255.0)
    torch.testing.assert_close(splits.test.inputs.double(), (expected - 0.473) / 0.251, atol=1e-5, rtol=0)
    assert splits.test.targets.tolist() == labels[50:].tolist()
    seen = {image.numpy().tobytes() for e in (splits.train, splits.validation, splits.test) for image in e.inputs}
    assert len(seen) == 70
    assert source.missing() == ""


def test_grey_images_have_one_channel(empty_cache, tmp_path):
    pixels = np.random.RandomState(0).randint(0, 256, (30, 28, 28)).astype(np.uint8)
    features = datasets.Features(image=datasets.Image(), label=datasets.Value("int64"))
    for split in ("train", "test"):
        save(tmp_path, FASHION_MNIST, split, {"image": list(pixels), "label": [i % 10 for i in range(30)]}, features)
    source = with_decode(FASHION_MNIST, images("image", "label", mode="L", validation=10))
    source.from_folder(tmp_path)
    splits = source.load()
    assert splits.train.inputs.shape == (20, 1, 28, 28)
    assert splits.classes == 10


def test_text_becomes_one_stream_of_bytes(empty_cache, tmp_path):
    for split in WIKITEXT2.splits:
        save(tmp_path, WIKITEXT2, split, {"text": ["", f" = {split} = \n", "a caf\u00e9 \n"] * 200})
    source = hub_source(WIKITEXT2)
    source.from_folder(tmp_path)
    splits = source.load()
    text = bytes(splits.train.inputs.flatten().tolist())
    assert text.startswith(" = train = \na caf\u00e9 \n = train".encode())
    assert splits.train.inputs.shape[1] == 256
    assert b" = validation = " in bytes(splits.validation.targets.flatten().tolist())


def test_two_published_splits_become_three(empty_cache, tmp_path):
    for split in ("train", "validation"):
        save(tmp_path, TINYSTORIES, split, {"text": [f"{split} {i:06d}" for i in range(200)]})
    source = hub_source(TINYSTORIES)
    source.from_folder(tmp_path)
    texts = {s: bytes(getattr(source.load(), s).inputs.flatten().tolist()) for s in ("train", "validation", "test")}
    assert texts["train"].startswith(b"train 000000\n\ntrain 000001\n\n")
    assert texts["validation"].startswith(b"validation 000000\n\nvalidation 000002")
    assert texts["test"].startswith(b"validation 000001\n\nvalidation 000003")


@pytest.mark.parametrize(("entry", "column", "classes"), [(SST2, "sentence", 2), (AG_NEWS, "text", 4)])
def test_sentences_become_words_and_the_vocabulary_is_that_of_train(empty_cache, tmp_path, entry, column, classes):
    count = 1000 * (3 if entry is AG_NEWS else 2)
    train = {column: ["A fine film"] * count, "label": [i % classes for i in range(count)]}
    held = {column: ["a dreadful film"] * 8, "label": [i % classes for i in range(8)]}
    save(tmp_path, entry, entry.splits["train"], train)
    save(tmp_path, entry, entry.splits["test"], held)
    source = hub_source(entry)
    source.from_folder(tmp_path)
    splits = source.load()
    assert splits.notes["words"] == ["a", "film", "fine"]
    assert splits.test.inputs[0, :4].tolist() == [2, 1, 3, 0]  # "dreadful" is not known
    assert splits.classes == classes
    assert splits.test.targets.tolist() == held["label"]
    assert len(splits.validation) == (2000 if entry is AG_NEWS else 1000)


def test_a_local_copy_without_the_split_says_what_it_needs(tmp_path):
    save(tmp_path, SST2, "other", {"sentence": ["a"], "label": [0]})
    expected = r"'sst2' needs files such as train-00000-of-00001.parquet.*there is: other-00000-of-00001.parquet"
    with pytest.raises(DataUnavailable, match=expected):
        hub_source(SST2).from_folder(tmp_path)


def test_a_local_copy_with_other_columns_names_them(empty_cache, tmp_path):
    for split in ("train", "validation"):
        save(tmp_path, SST2, split, {"phrase": ["a"], "label": [0]})
    with pytest.raises(DataUnavailable, match=r"cannot be decoded: .*sentence.*its columns are phrase, label"):
        hub_source(SST2).from_folder(tmp_path)


def test_each_entry_is_pinned_to_a_commit_and_has_its_own_key():
    entries = (CIFAR10, FASHION_MNIST, WIKITEXT2, TINYSTORIES, SST2, AG_NEWS)
    assert [source.name for source in HUB_SOURCES] == [entry.name for entry in entries]
    assert all(
        len(entry.revision) == 40 and entry.revision in s.origin for entry, s in zip(entries, HUB_SOURCES, strict=True)
    )
    changed = dataclasses.replace(SST2, revision="0" * 40), dataclasses.replace(SST2, decoding=2)
    assert len({entry.key for entry in (*entries, *changed)}) == 8


UNREACHABLE = """
import sys
{before}
import effbench.data, effbench.errors
(source,) = [s for s in effbench.data.SOURCES if s.name == "cifar10"]
for call in (source.load, source.fetch):
    try: call()
    except effbench.errors.DataUnavailable as error: print(error)
print(source.missing())
print("offline switch left behind:", __import__("os").environ.get("HF_HUB_OFFLINE"))
"""


@pytest.mark.parametrize("before", ["", "import huggingface_hub.constants"])
def test_an_unreachable_hub_is_an_error_that_says_what_to_do(empty_cache, monkeypatch, before):
    """Left to itself, the library would retry for 24 s on each call: the limit below stands far from both."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    code = UNREACHABLE.format(before=before)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=45)
    *errors, switch = done.stdout.strip().splitlines()
    assert len(errors) == 3
    for error in errors:
        assert "'cifar10' comes from the Hugging Face hub (uoft-cs/cifar10), which cannot be reached" in error
        assert "http://127.0.0.1:9: [Errno 111] Connection refused" in error
        assert "--data cifar10=" in error
        assert str(empty_cache / "cifar10-") in error
    assert "Retrying" not in done.stderr
    assert switch == "offline switch left behind: None"


def test_the_offline_switch_is_honoured_without_asking(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(hub_connection, "_probe", pytest.fail)
    assert hub_connection.unreachable() == "HF_HUB_OFFLINE is set"


def test_a_hub_that_never_answers_is_given_up(monkeypatch):
    monkeypatch.setattr(hub_connection, "PROBE_SECONDS", 0.2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        began = time.monotonic()
        assert hub_connection._probe(f"http://127.0.0.1:{silent.getsockname()[1]}") != ""
        assert time.monotonic() - began < 20
    assert "unknown url type" in hub_connection._probe("nonsense")


HUB_LIKE = """
import dataclasses, sys
from effbench.data.hub import hub_source
from effbench.data.hub_entries import AG_NEWS
source = hub_source(dataclasses.replace(AG_NEWS, repository=sys.argv[1]))
print(source.missing()[:20])
source.fetch()
print(source.missing(), len(source.load().test))
"""


def test_what_the_library_loads_is_decoded_and_kept(empty_cache, tmp_path, monkeypatch):
    """A folder stands in for the hub: the library takes either."""
    hub = tmp_path / "hub"
    hub.mkdir()
    save(hub, AG_NEWS, "train", {"text": ["A fine film"] * 3000, "label": [i % 4 for i in range(3000)]})
    save(hub, AG_NEWS, "test", {"text": ["a film"] * 8, "label": [0] * 8})
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    done = subprocess.run(
        [sys.executable, "-c", HUB_LIKE, str(hub)], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.splitlines() == ["data set 'ag_news' c", " 8"]
    (kept,) = empty_cache.iterdir()
    assert kept.name.startswith("ag_news-")


def test_a_copy_in_the_librarys_own_cache_counts(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path))
    assert not hub_connection.in_library_cache("roneneldan/TinyStories")
    (tmp_path / "roneneldan___tiny_stories").mkdir()
    assert hub_connection.in_library_cache("roneneldan/TinyStories")
    assert not hub_connection.in_library_cache("roneneldan/TinyStoriesV2")
