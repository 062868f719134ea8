import copy

import pytest
import torch

from effbench.errors import Conflict, InvalidTechnique
from effbench.surgery import operate
from effbench.techniques import compose
from effbench_techniques.optimization_centric.averaged_weights.lookahead import lookahead
from effbench_techniques.optimization_centric.averaged_weights.swa import swa
from toy import begun, flat, images, run, same, tokens, vectors


def test_it_equals_the_paper_line_by_line() -> None:
    alpha, k = 0.4, 3
    twin = begun(vectors())  # whose steps the gradients of ours are fed to
    slow = flat(twin.model)
    gradients = []

    def gradient(training, batch):
        losses = vectors().gradient(training, batch)
        gradients.append([weight.grad.clone() for weight in training.model.parameters()])
        return losses

    def look(training) -> None:
        nonlocal slow
        for twins, theirs in zip(twin.optimizer.param_groups, training.optimizer.param_groups, strict=True):
            twins["lr"] = theirs["lr"]
        for weight, grad in zip(twin.model.parameters(), gradients[-1], strict=True):
            weight.grad = grad
        twin.optimizer.step()
        if training.step % k == 0:
            slow = slow + alpha * (flat(twin.model) - slow)
            torch.nn.utils.vector_to_parameters(slow.float(), twin.model.parameters())
        torch.testing.assert_close(flat(training.model), flat(twin.model), rtol=0, atol=1e-6)
        torch.testing.assert_close(flat(training.recipe.eval_model(training)), slow, rtol=0, atol=1e-6)

    training = run(lookahead.apply(vectors(gradient=gradient), {"alpha": alpha, "interval": k}), 11, look=look)
    assert float((flat(training.model) - slow).abs().max()) > 1e-5
    assert training.ledger.wall["extra"] > 0.0


@pytest.mark.parametrize("make", [vectors, images])
def test_following_all_the_way_is_the_baseline_and_half_of_it_is_not(make) -> None:
    baseline = run(make(), 12)
    assert same(run(lookahead.apply(make(), {"alpha": 1.0}), 12).model, baseline.model)
    recipe = lookahead.apply(make(), {})
    ours = run(recipe, 12)
    assert not same(ours.model, baseline.model)
    assert same(run(recipe, 12, look=recipe.eval_model).model, ours.model)


def test_the_slow_weights_start_anew_when_the_model_grows() -> None:
    def grow(training) -> None:
        operate(training, lambda model: model.blocks.append(copy.deepcopy(model.blocks[0])) and None)

    training = run(lookahead.apply(tokens().at(0.5, grow), {}), 12)
    assert training.kept["lookahead"]["steps"] == 6
    assert len(training.recipe.eval_model(training).blocks) == 3
    assert torch.isfinite(flat(training.model)).all()


def test_it_excludes_another_average() -> None:
    with pytest.raises(Conflict, match="which average"):
        compose(vectors(), {"lookahead": {}, "swa": {}}, {"lookahead": lookahead, "swa": swa})


@pytest.mark.parametrize("options", [{"alpha": 0.0}, {"alpha": 1.1}, {"interval": 0}])
def test_wrong_options_are_refused(options) -> None:
    with pytest.raises(InvalidTechnique, match=next(iter(options))):
        lookahead.apply(vectors(), options)
