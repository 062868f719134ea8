import copy

import pytest
import torch

from effbench.errors import NotApplicable
from effbench.optimizers import adamw, sgd
from effbench.techniques import compose
from effbench_techniques.model_centric.curriculum.progressive_stacking import progressive_stacking
from effbench_techniques.optimization_centric.learning_rate.lion import lion
from effbench_techniques.optimization_centric.learning_rate.muon import muon
from effbench_techniques.system_centric.optimization.fused_optimizer import fused_optimizer
from toy import flat, run, tokens, vectors

KNOWN = {technique.name: technique for technique in (fused_optimizer, lion, muon, progressive_stacking)}
OPTIMIZERS = [adamw(3e-3, weight_decay=0.1), sgd(0.05, momentum=0.9, weight_decay=0.01)]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_one_update_is_that_of_the_loop_over_weights(optimizer) -> None:
    model = vectors().model()
    twin = copy.deepcopy(model)
    fused = fused_optimizer.apply(vectors(optimizer=optimizer), {}).optimizer(model)
    loop = optimizer(twin)
    for group in loop.param_groups:
        group["foreach"] = False
    for step in range(5):
        for one, other in zip(model.parameters(), twin.parameters(), strict=True):
            gradient = torch.randn(one.shape, generator=torch.Generator().manual_seed(step))
            one.grad, other.grad = gradient, gradient.clone()
        fused.step()
        loop.step()
        assert float((flat(model) - flat(twin)).abs().max()) < 1e-7 * (step + 1)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_run_ends_where_the_baseline_ends(optimizer) -> None:
    fused = run(fused_optimizer.apply(vectors(optimizer=optimizer), {}), 20)
    plain = run(vectors(optimizer=optimizer), 20)
    assert all(group["fused"] and not group["foreach"] for group in fused.optimizer.param_groups)
    torch.testing.assert_close(flat(fused.model), flat(plain.model), rtol=0, atol=1e-5)


def test_of_several_optimizers_those_are_fused_that_can_be() -> None:
    both = compose(tokens(), {"muon": {}, "fused_optimizer": {}}, KNOWN)[0]
    groups = run(both).optimizer.param_groups
    assert [group.get("fused") for group in groups if "betas" in group] == [True, True]
    assert [group.get("fused") for group in groups if "betas" not in group] == [None]


def test_it_stays_fused_when_the_model_grows() -> None:
    training = run(compose(tokens(), {"progressive_stacking": {}, "fused_optimizer": {}}, KNOWN)[0])
    assert training.generation == 1
    assert all(group["fused"] for group in training.optimizer.param_groups)


def test_it_refuses_an_optimizer_without_a_fused_kernel() -> None:
    with pytest.raises(NotApplicable, match="lion_step has no fused kernel"):
        compose(vectors(), {"lion": {}, "fused_optimizer": {}}, KNOWN)
