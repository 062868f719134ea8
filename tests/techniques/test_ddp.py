import dataclasses
from itertools import chain

import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from effbench.errors import InvalidTechnique, NotApplicable
from effbench.models import gpt
from effbench.optimizers import sgd
from effbench.recipe import Recipe
from effbench.surgery import operate
from effbench.techniques import compose
from effbench.workloads.masking import masked
from effbench_techniques.data_centric.regularization.mixup import mixup
from effbench_techniques.data_centric.sampling.selective_backprop import selective_backprop
from effbench_techniques.model_centric.curriculum.progressive_stacking import progressive_stacking
from effbench_techniques.model_centric.curriculum.stochastic_depth import stochastic_depth
from effbench_techniques.optimization_centric.large_batch.gradient_accumulation import gradient_accumulation
from effbench_techniques.system_centric.model.ddp import ddp
from ranks import distance, evaluated, on_all_ranks
from toy import VOCABULARY, masked_tokens, run, same, tokens, vectors

KNOWN = {
    technique.name: technique
    for technique in (ddp, mixup, selective_backprop, progressive_stacking, stochastic_depth, gradient_accumulation)
}
SGD = sgd(
    0.1, momentum=0.9, weight_decay=0.01
)  # which does not divide rounding errors by small gradients, as Adam does
TOLERANCE = 1e-6


def off(recipe: Recipe, others: dict[str, dict[str, object]] | None = None, processes: int = 2) -> float:
    """How far weights are from those of one process, with other techniques in both."""
    others = others or {}
    several = compose(recipe, {**others, "ddp": {"processes": processes}}, KNOWN)[0]
    return distance(several, compose(recipe, others, KNOWN)[0])


@pytest.mark.parametrize("processes", [2, 3])
@pytest.mark.parametrize("toy", [vectors, tokens])
def test_several_processes_train_the_weights_of_one(toy, processes: int) -> None:
    assert off(toy(optimizer=SGD), processes=processes) < TOLERANCE


def test_a_batch_that_cannot_be_divided_counts_every_example_once() -> None:
    assert off(tokens(optimizer=SGD, batch_size=lambda progress: 7)) < TOLERANCE


def test_what_is_drawn_mixed_or_chosen_is_what_one_process_draws_mixes_or_chooses() -> None:
    assert off(masked_tokens(optimizer=SGD, transform=masked(VOCABULARY - 1))) < TOLERANCE
    assert off(vectors(optimizer=SGD), {"mixup": {"alpha": 1.0}}) < TOLERANCE
    assert off(tokens(optimizer=SGD), {"selective_backprop": {"start": 0.0}}) < TOLERANCE


def test_micro_batches_and_a_model_that_grows_change_nothing() -> None:
    deep = tokens(optimizer=SGD, model=lambda: gpt(VOCABULARY, length=16, width=8, depth=4, heads=2))
    assert off(deep, {"gradient_accumulation": {"micro_batches": 2}}) < TOLERANCE
    assert off(deep, {"progressive_stacking": {}}) < TOLERANCE


def test_every_epoch_has_another_order_and_ranks_share_each_without_overlap() -> None:
    drawn: list[list[int]] = []

    def note(batch, training):
        drawn.append(batch.index.tolist())
        return batch

    recipe = ddp.apply(vectors(), {})
    noting = recipe.wrap(share=lambda batch, training: note(recipe.share(batch, training), training))
    both = on_all_ranks(noting, lambda training: drawn, steps=3 * 64 // 8)
    epochs = []
    for epoch in range(3):
        shares = [list(chain.from_iterable(rank[8 * epoch : 8 * (epoch + 1)])) for rank in both]
        assert not set(shares[0]) & set(shares[1])
        assert sorted(shares[0] + shares[1]) == list(range(64))
        epochs.append([one for pair in zip(*shares, strict=True) for one in pair])
    assert epochs[0] != epochs[1] != epochs[2] != epochs[0]
    alone: list[int] = []  # what one process draws
    run(vectors(transform=lambda batch, training: alone.extend(batch.index.tolist()) or batch), 24)
    assert list(chain.from_iterable(epochs)) == alone


def test_where_a_sampler_may_disagree_rank_0_says_what_is_drawn() -> None:
    def by_rank(training):
        while True:
            yield torch.arange(16) + 16 * training.group.rank

    recipe = ddp.apply(vectors().wrap(sampler=by_rank), {})
    seen: list[int] = []
    noting = recipe.wrap(transform=lambda batch, training: seen.extend(batch.index.tolist()) or batch)
    drawn = on_all_ranks(noting, lambda training: seen, steps=2)
    assert drawn == [list(range(16)), list(range(16))]


def wrapper(training) -> tuple[bool, list[float]]:
    forward = training.forward
    assert isinstance(forward, DistributedDataParallel)
    return forward.find_unused_parameters, evaluated(training).tolist()


def test_dropped_layers_are_looked_for_where_a_technique_says_so_and_all_ranks_agree() -> None:
    recipe, _ = compose(tokens(optimizer=SGD), {"stochastic_depth": {"rate": 0.9}, "ddp": {}}, KNOWN)
    (searches, one), (_, other) = on_all_ranks(recipe, wrapper)
    assert searches
    assert one == other
    assert off(tokens(optimizer=SGD), {"stochastic_depth": {"rate": 0.5}}) < TOLERANCE
    (searches, one), (_, other) = on_all_ranks(ddp.apply(tokens(), {}), wrapper)
    assert not searches
    assert one == other


def test_a_parameter_that_no_loss_depends_on_is_explained_and_is_no_trouble_where_it_is_told_of() -> None:
    def with_spare() -> nn.Module:
        model = gpt(VOCABULARY, length=16, width=8, depth=1, heads=2)
        model.spare = nn.Linear(2, 2)
        return model

    recipe = tokens(optimizer=SGD, model=with_spare)
    with pytest.raises(InvalidTechnique, match=r"a step left some without; .* adds the trait 'unused_parameters'"):
        on_all_ranks(ddp.apply(recipe, {}), evaluated)
    assert off(dataclasses.replace(recipe, traits=recipe.traits | {"unused_parameters"})) < TOLERANCE


def test_a_layer_that_is_frozen_on_the_way_is_no_trouble() -> None:
    def freeze(training) -> None:
        operate(training, lambda model: model.blocks[0].requires_grad_(False) and None)

    recipe = tokens(optimizer=SGD).at(0.5, freeze)
    one, other = on_all_ranks(ddp.apply(recipe, {}), lambda training: evaluated(training).tolist(), steps=10)
    assert one == other
    assert distance(ddp.apply(recipe, {}), recipe, steps=10) < TOLERANCE


def test_only_the_wrapper_knows_of_the_processes() -> None:
    def told(training) -> tuple[bool, int, int]:
        plain = training.recipe.eval_model(training) is training.model and training.forward.module is training.model
        return plain, training.examples, len(training.losses)

    assert on_all_ranks(ddp.apply(tokens(batch_size=lambda progress: 7), {}), told) == [(True, 42, 4), (True, 42, 3)]


def test_one_process_is_the_baseline() -> None:
    assert same(run(ddp.apply(tokens(), {"processes": 1})).model, run(tokens()).model)


def test_it_refuses_more_processes_than_examples() -> None:
    with pytest.raises(NotApplicable, match="9 processes share batches of 8 examples"):
        ddp.apply(vectors(), {"processes": 9})
    with pytest.raises(InvalidTechnique, match="ddp: processes is 0"):
        ddp.apply(vectors(), {"processes": 0})
    single = vectors().wrap(transform=lambda batch, training: batch[:1])
    with pytest.raises(NotApplicable, match="1 examples cannot be shared by 2 processes"):
        on_all_ranks(ddp.apply(single, {}), lambda training: None)
