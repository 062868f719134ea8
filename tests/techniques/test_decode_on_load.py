import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from effbench.errors import Conflict, InvalidTechnique
from effbench.techniques import compose
from effbench_techniques.data_centric.sampling.infobatch import infobatch
from effbench_techniques.data_centric.sampling.uniform_subset import uniform_subset
from effbench_techniques.system_centric.data.decode_on_load import Records, decode_on_load
from toy import images, masked_tokens, run, same, texts, tokens, vectors


@pytest.mark.parametrize("make", [vectors, images, tokens, masked_tokens])
@pytest.mark.parametrize("level", [0, 6])
def test_the_weights_are_the_baselines_bit_by_bit(make, level: int) -> None:
    assert same(run(decode_on_load.apply(make(), {"level": level}), 10).model, run(make(), 10).model)


def test_batches_are_those_of_a_data_loader_in_the_same_order() -> None:
    seen = []
    recipe = decode_on_load.apply(images(), {})

    def noting(positions, training):
        batch = recipe.loader(positions, training)
        seen.append(batch)
        return batch

    run(recipe.wrap(loader=noting), 4)
    order = torch.cat([batch.index for batch in seen]).tolist()
    assert sorted(order) == list(range(32))  # an epoch
    dataset = TensorDataset(recipe.dataset.inputs, recipe.dataset.targets)
    for ours, (inputs, targets) in zip(seen, DataLoader(dataset, 8, sampler=order), strict=True):
        assert torch.equal(ours.inputs, inputs)
        assert torch.equal(ours.targets, targets)


@pytest.mark.parametrize("make", [vectors, images, tokens, texts])
def test_records_give_back_what_was_written_and_take_less_room(make) -> None:
    dataset = make().dataset
    stored, packed = Records.of(dataset, 0), Records.of(dataset, 9)
    for records in (stored, packed):
        for position in (0, 7, len(dataset) - 1):
            inputs, targets = records.read(position)
            assert torch.equal(inputs, dataset.inputs[position])
            assert torch.equal(targets, dataset.targets[position])
            assert inputs.dtype is dataset.inputs.dtype
    raw = dataset.inputs[:1].nbytes * len(dataset) + dataset.targets[:1].nbytes * len(dataset)
    assert raw < len(stored.data) < raw + 32 * len(dataset)
    if not dataset.inputs.is_floating_point():  # noise has nothing to spare
        assert len(packed.data) < raw / 2


def test_the_memory_that_it_reads_is_not_the_data_sets() -> None:
    recipe = decode_on_load.apply(vectors(), {})
    training = run(recipe, 2)
    with torch.no_grad():
        recipe.dataset.inputs.zero_()
    inputs, _ = training.kept["decode_on_load"].read(3)
    assert inputs.any()


def test_it_reads_what_a_sampler_chooses_and_excludes_other_loaders() -> None:
    known = {t.name: t for t in (decode_on_load, infobatch, uniform_subset)}
    subset = {"uniform_subset": {}}
    both = compose(vectors(), {**subset, "decode_on_load": {}}, known)[0]
    assert same(run(both, 10).model, run(compose(vectors(), subset, known)[0], 10).model)
    with pytest.raises(Conflict, match="decode_on_load replaces the loader that infobatch changed"):
        compose(vectors(), {"infobatch": {}, "decode_on_load": {}}, known)


def test_wrong_options_are_refused() -> None:
    with pytest.raises(InvalidTechnique, match="level is 10"):
        decode_on_load.apply(vectors(), {"level": 10})
