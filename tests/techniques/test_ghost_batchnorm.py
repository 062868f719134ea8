import copy

import pytest
import torch
from torch import nn

from effbench.errors import InvalidTechnique, NotApplicable
from effbench_techniques.optimization_centric.large_batch.ghost_batchnorm import GhostBatchNorm, ghost_batchnorm
from toy import begun, flat, images, run, same, tokens


def test_each_part_is_normalised_as_if_it_were_the_batch() -> None:
    x = torch.randn(13, 4, 3, 3)
    norm = nn.BatchNorm2d(4)
    twin = copy.deepcopy(norm)
    ghost = GhostBatchNorm(norm, 4)
    expected = torch.cat([twin(part) for part in (x[:5], x[5:9], x[9:])])  # three parts: none is a small remainder
    assert torch.equal(ghost(x), expected)
    assert torch.equal(norm.running_mean, twin.running_mean)
    assert int(norm.num_batches_tracked) == 3


def test_a_part_as_large_as_the_batch_is_batchnorm_and_so_is_evaluation() -> None:
    x = torch.randn(8, 4)
    norm = nn.BatchNorm1d(4)
    twin = copy.deepcopy(norm)
    assert torch.equal(GhostBatchNorm(norm, 8)(x), twin(x))
    ghost = GhostBatchNorm(norm, 2).eval()
    twin.eval()
    assert torch.equal(ghost(x), twin(x))


def test_every_batchnorm_of_the_model_is_replaced_and_the_weights_are_the_baselines() -> None:
    ours, plain = begun(ghost_batchnorm.apply(images(), {"size": 4})), begun(images())
    ghosts = [module for module in ours.model.modules() if isinstance(module, GhostBatchNorm)]
    norms = [module for module in ours.model.modules() if isinstance(module, nn.BatchNorm2d)]
    assert len(ghosts) == len(norms) == sum(isinstance(module, nn.BatchNorm2d) for module in plain.model.modules())
    assert torch.equal(flat(ours.model), flat(plain.model))
    for one, other in zip(ours.optimizer.param_groups, plain.optimizer.param_groups, strict=True):
        assert one["weight_decay"] == other["weight_decay"]
        assert [p.shape for p in one["params"]] == [p.shape for p in other["params"]]


def test_off_and_as_large_as_the_batch_it_is_the_baseline_and_smaller_it_is_not() -> None:
    baseline = run(images(), 4)
    assert same(run(ghost_batchnorm.apply(images(), {"size": 0}), 4).model, baseline.model)
    assert torch.equal(flat(run(ghost_batchnorm.apply(images(), {"size": 8}), 4).model), flat(baseline.model))
    assert not torch.equal(flat(run(ghost_batchnorm.apply(images(), {"size": 4}), 4).model), flat(baseline.model))


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="BatchNorm, and this model has none"):
        ghost_batchnorm.apply(tokens(), {})
    for size in (-1, 1):
        with pytest.raises(InvalidTechnique, match="size is"):
            ghost_batchnorm.apply(images(), {"size": size})
