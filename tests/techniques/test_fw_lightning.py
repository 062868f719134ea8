import pytest
import torch
from torch import Tensor

from effbench.errors import Conflict
from effbench.techniques import compose
from effbench_techniques.model_centric.curriculum.progressive_stacking import progressive_stacking
from effbench_techniques.optimization_centric.objective.sam import sam
from effbench_techniques.system_centric.frameworks.fw_lightning import fw_lightning
from toy import flat, images, run, tokens, vectors

KNOWN = {t.name: t for t in (fw_lightning, progressive_stacking, sam)}


@pytest.mark.parametrize("make", [vectors, images, tokens])
def test_losses_and_weights_are_the_baselines(make) -> None:
    losses: dict[str, list[Tensor]] = {"plain": [], "ours": []}
    plain = run(make(), 10, look=lambda training: losses["plain"].append(training.losses))
    ours = run(fw_lightning.apply(make(), {}), 10, look=lambda training: losses["ours"].append(training.losses))
    for one, other in zip(*losses.values(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-5)
    torch.testing.assert_close(flat(ours.model), flat(plain.model), rtol=0, atol=1e-6)


def test_model_and_optimizer_are_the_frameworks_and_follow_the_schedule() -> None:
    training = run(fw_lightning.apply(vectors(), {}), 10)
    assert type(training.optimizer).__name__ == "FabricAdamW"
    assert type(training.forward).__name__ == "_FabricModule"
    assert {group["lr"] for group in training.optimizer.param_groups} == {0.0}
    assert training.model.state_dict().keys() == vectors().model().state_dict().keys()


def test_a_model_that_grows_keeps_its_optimizer_state() -> None:
    both = run(compose(tokens(), {"fw_lightning": {}, "progressive_stacking": {}}, KNOWN)[0], 12).model
    alone = run(compose(tokens(), {"progressive_stacking": {}}, KNOWN)[0], 12).model
    torch.testing.assert_close(flat(both), flat(alone), rtol=0, atol=1e-6)


def test_it_excludes_those_that_take_the_gradient_in_another_way() -> None:
    with pytest.raises(Conflict, match="fw_lightning replaces the gradient that sam changed"):
        compose(vectors(), {"fw_lightning": {}, "sam": {}}, KNOWN)
