import collections
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from effbench.data.text import alphabet_of, decode, encode, pack_text, unpack_bytes, unpack_text, windows
from effbench.data.words import encode_words, pack_vocabulary, unpack_words, vocabulary_of, words_of


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=80))
def test_text_survives_a_round_trip(text):
    alphabet = alphabet_of(text)
    assert decode(torch.from_numpy(encode(text, alphabet)), alphabet) == text


def test_encode_refuses_what_it_cannot_say():
    with pytest.raises(ValueError, match="lacks 'c'"):
        encode("abca", "ab")
    with pytest.raises(ValueError, match="lacks 'Z'"):
        encode("Z", "ab")
    with pytest.raises(ValueError, match="257 characters does not fit into a byte"):
        encode("a", "".join(chr(97 + i) for i in range(257)))


def test_windows_cover_the_stream_once_and_targets_are_one_ahead():
    stream = np.arange(35, dtype=np.uint8)
    made = windows(stream, 8)
    assert made.inputs.shape == made.targets.shape == (4, 8)
    assert made.targets.flatten().tolist() == list(range(1, 33))
    assert torch.equal(made.inputs + 1, made.targets)


def test_windows_are_views_of_one_stream():
    made = windows(np.zeros(64_001, np.uint8), 64)
    assert made.inputs.untyped_storage().data_ptr() == made.targets.untyped_storage().data_ptr()
    assert made.inputs.untyped_storage().nbytes() == 8 * 64_001


def test_bytes_per_token_counts_utf8():
    texts = {"train": "aæ\u2014" * 30, "validation": "a" * 9, "test": "aaaæ" * 4}
    splits = unpack_text(pack_text(texts), "hash", length=8)
    assert splits.notes["alphabet"] == "aæ\u2014"
    assert splits.notes["vocabulary"] == 3
    assert splits.notes["bytes_per_token"] == pytest.approx(5 / 4)
    assert decode(splits.test.inputs[0], "aæ\u2014") == "aaaæaaaæ"


def test_a_byte_is_its_own_token():
    arrays = {split: np.frombuffer(b"hello, world", np.uint8) for split in ("train", "validation", "test")}
    splits = unpack_bytes(arrays, "hash", length=4)
    assert bytes(splits.train.inputs.flatten().tolist()) == b"hello, w"
    assert bytes(splits.train.targets.flatten().tolist()) == b"ello, wo"
    assert splits.notes == {"vocabulary": 256, "context": 4, "bytes_per_token": 1.0}


def test_kjv_in_windows_reads_as_the_bible_does(source_of):
    splits = source_of("kjv").load()
    train = decode(splits.train.inputs[:2000].flatten(), splits.notes["alphabet"])
    assert train.startswith("In the beginning God created the heaven and the earth. And the earth was without form")
    assert torch.equal(splits.train.targets[:, :-1], splits.train.inputs[:, 1:])
    assert torch.equal(splits.train.targets[:-1, -1], splits.train.inputs[1:, 0])


def test_a_unigram_model_of_kjv_needs_the_known_number_of_bits(source_of):
    splits = source_of("kjv").load()
    counts = torch.bincount(splits.train.targets.flatten(), minlength=68).double()
    bits = -(counts / counts.sum() * (counts / counts.sum()).log2().nan_to_num()).sum().item()
    assert bits == pytest.approx(4.371, abs=0.002)
    tested = collections.Counter(splits.test.targets.flatten().tolist())
    crossed = -sum(n * math.log2(counts[t] / counts.sum()) for t, n in tested.items()) / sum(tested.values())
    assert crossed == pytest.approx(4.373, abs=0.002)


def test_held_out_kjv_is_not_in_train(source_of):
    splits = source_of("kjv").load()
    train, *held = (
        decode(e.inputs.flatten(), splits.notes["alphabet"]) for e in (splits.train, splits.validation, splits.test)
    )
    for text in held:
        passages = [text[i : i + 120] for i in range(0, len(text) - 120, 120)]
        assert len(passages) > 130
        assert not any(passage in train for passage in passages)  # 40 characters do recur: a few per cent


def test_words_are_numbered_by_frequency_then_alphabet():
    vocabulary = vocabulary_of(["The cat, the dog", "a cat's the\u2019re"], size=5)
    assert words_of("The cat's \u2018here\u2019, 3 times") == ["the", "cat's", "here", "3", "times"]
    assert vocabulary == ["the", "a", "cat"]
    rows = encode_words(["the cat sat on a mat", "THE", ""], vocabulary, length=5)
    assert rows.tolist() == [[2, 4, 1, 1, 3], [2, 0, 0, 0, 0], [0, 0, 0, 0, 0]]


def test_a_vocabulary_survives_packing():
    words = ["the", "æ", "cat's"]
    arrays = pack_vocabulary(words)
    for split in ("train", "validation", "test"):
        arrays |= {f"{split}_inputs": np.array([[2, 0]], np.uint16), f"{split}_targets": np.array([1], np.uint8)}
    splits = unpack_words(arrays, "hash", classes=2, notes={"more": 1})
    assert splits.notes == {"vocabulary": 5, "words": words, "more": 1}
    assert splits.train.inputs.tolist() == [[2, 0]]
