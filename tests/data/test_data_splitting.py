import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effbench.data.splitting import evenly_spaced, hold_out, stratified


@given(st.integers(0, 50), st.integers(0, 200))
def test_evenly_spaced_positions_differ_and_leave_equal_gaps(count, more):
    total = count + more
    found = evenly_spaced(count, total)
    assert len(set(found.tolist())) == count
    assert all(0 <= position < total for position in found)
    if count > 1:
        gaps = np.diff(found)
        assert gaps.max() - gaps.min() <= 1


@settings(max_examples=50)
@given(st.lists(st.integers(0, 4), min_size=20, max_size=120), st.integers(0, 9), st.integers(0, 9))
def test_stratified_splits_are_whole_disjoint_and_proportional(labels, validation, test):
    labels = np.array(labels)
    splits = stratified(labels, validation=validation, test=test, seed=3)
    assert sorted(np.concatenate(list(splits.values())).tolist()) == list(range(len(labels)))
    assert (len(splits["validation"]), len(splits["test"])) == (validation, test)
    for label in range(5):
        share = (labels == label).mean() * test
        assert abs((labels[splits["test"]] == label).sum() - share) < 1


def test_stratified_mixes_the_classes_of_train_and_depends_on_the_seed():
    labels = np.repeat(np.arange(4), 50)
    first, again, other = (stratified(labels, validation=20, test=20, seed=s)["train"] for s in (0, 0, 1))
    assert (np.diff(labels[first]) != 0).sum() > 80  # sorted by class there would be three changes
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_held_out_passages_are_whole_pieces_spread_over_the_text():
    pieces = [f"<{i:04d}>" + "." * (i % 7) for i in range(1000)]
    splits = hold_out(pieces, validation=200, test=400, chunks=10)
    numbers = {s: [int(piece[:4]) for piece in text.split("<")[1:]] for s, text in splits.items()}
    assert sorted(n for found in numbers.values() for n in found) == list(range(1000))
    assert all(text == "".join(pieces[n] for n in numbers[s]) for s, text in splits.items())
    assert 200 <= len(splits["validation"]) < 200 + 10 * 13
    assert 400 <= len(splits["test"]) < 400 + 10 * 13
    for split in ("validation", "test"):
        assert len({n // 100 for n in numbers[split]}) == 10  # a passage in every tenth of the text


def test_a_split_text_keeps_its_order():
    pieces = [chr(97 + i % 26) for i in range(400)]
    train = hold_out(pieces, validation=8, test=8, chunks=2)["train"]
    joints = sum(ord(b) - ord(a) not in (1, -25) for a, b in itertools.pairwise(train))
    assert joints == pytest.approx(4, abs=1)
