import copy

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters

from effbench.errors import Conflict, InvalidTechnique, NotApplicable
from effbench.models import Network
from effbench.optimizers import sgd
from effbench.techniques import compose
from effbench.train import start
from effbench_techniques.model_centric.curriculum.progressive_stacking import progressive_stacking
from effbench_techniques.model_centric.curriculum.stochastic_depth import stochastic_depth
from effbench_techniques.optimization_centric.averaged_weights.ema import ema
from effbench_techniques.system_centric.model.activation_checkpointing import activation_checkpointing
from effbench_techniques.system_centric.model.fsdp import fsdp
from effbench_techniques.system_centric.optimization.torch_compile import torch_compile
from toy import CLASSES, flat, images, run, same, tokens, vectors

TRACED = {"backend": "aot_eager"}  # traces forward and backward, and runs the graphs as they are
KNOWN = {
    t.name: t for t in (torch_compile, activation_checkpointing, progressive_stacking, stochastic_depth, ema, fsdp)
}


@pytest.fixture(autouse=True)
def forget_what_was_compiled() -> None:
    torch.compiler.reset()
    counters.clear()


@pytest.mark.parametrize("toy", [vectors, images, tokens])
def test_the_traced_model_trains_the_baselines_weights_in_one_graph(toy) -> None:
    compiled = run(torch_compile.apply(toy(), TRACED))
    assert counters["stats"]["unique_graphs"] == 1
    assert not counters["graph_break"]
    assert same(compiled.model, run(toy()).model)


@pytest.mark.parametrize("other", ["activation_checkpointing", "progressive_stacking", "ema"])
def test_it_goes_with_what_changes_the_model_or_copies_it(other: str) -> None:
    for toy in (images, tokens) if other != "progressive_stacking" else (tokens,):
        both = compose(toy(), {other: {}, "torch_compile": TRACED}, KNOWN)[0]
        alone = compose(toy(), {other: {}}, KNOWN)[0]
        one, two = run(both), run(alone)
        assert same(both.eval_model(one), alone.eval_model(two))


def test_what_is_evaluated_shares_the_weights_and_is_not_compiled() -> None:
    training = run(torch_compile.apply(tokens(), TRACED))
    graphs = counters["stats"]["unique_graphs"]
    model = training.recipe.eval_model(training)
    assert list(model.parameters()) == list(training.model.parameters())
    model.eval()
    with torch.no_grad():
        model(training.recipe.dataset.inputs[:3])
    assert counters["stats"]["unique_graphs"] == graphs
    model.train()
    assert all(module.training for module in training.model.modules())


class Breaking(nn.Module):
    """A block that looks at a value, which a graph cannot."""

    def forward(self, x: Tensor) -> Tensor:
        return x * (2.0 if float(x.detach().sum()) > 0 else 3.0)


def test_a_model_that_is_no_single_graph_is_refused() -> None:
    def model() -> nn.Module:
        return Network(nn.Linear(6, 4), [Breaking()], nn.Linear(4, CLASSES))

    with pytest.raises(NotApplicable, match="torch_compile cannot make one graph of this model: "):
        run(torch_compile.apply(vectors(model=model), TRACED))


def test_it_needs_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(NotApplicable, match=r"needs a C\+\+ compiler"):
        torch_compile.apply(vectors(), {})
    assert torch_compile.apply(vectors(), TRACED).history


def test_it_refuses_unknown_backends_and_changing_graphs() -> None:
    with pytest.raises(InvalidTechnique, match=r"backend is 'inductr'; it should be one of .*inductor"):
        torch_compile.apply(vectors(), {"backend": "inductr"})
    for other in ("stochastic_depth", "fsdp"):
        with pytest.raises(Conflict, match=f"torch_compile and {other} exclude each other"):
            compose(tokens(), {"torch_compile": {}, other: {}}, KNOWN)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning")  # torch's own
@pytest.mark.parametrize("toy", [images, tokens])
def test_compiled_outputs_gradients_and_weights_are_those_of_eager_mode(toy) -> None:
    recipe = torch_compile.apply(toy(optimizer=sgd(0.05, momentum=0.9, weight_decay=0.0)), {})
    training = start(recipe, 0)
    twin = copy.deepcopy(training.model)
    inputs = recipe.dataset.inputs[:8]
    ours, theirs = training.forward(inputs), twin(inputs)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)
    ours.square().mean().backward()
    theirs.square().mean().backward()
    for one, other in zip(training.model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=0, atol=1e-5)
    assert counters["stats"]["unique_graphs"] == 1
    assert not counters["graph_break"]
    plain = run(toy(optimizer=sgd(0.05, momentum=0.9, weight_decay=0.0)))
    torch.testing.assert_close(flat(run(recipe).model), flat(plain.model), rtol=0, atol=1e-5)
