"""torch.compile: fuse the operations of the model by a compiler."""

from __future__ import annotations

import copy
import os
import shutil
import sys

import torch
from torch import Tensor, nn

from effbench import Batch, Recipe, Training, technique
from effbench.errors import InvalidTechnique, NotApplicable


@technique(
    "system_centric/optimization",
    paper="Ansel et al., PyTorch 2: Faster Machine Learning Through Dynamic Python Bytecode Transformation and Graph "
    "Compilation, ASPLOS 2024; in the line of Chen et al., TVM, arXiv:1802.04799",
    claim="1.41 times faster training, the geometric mean over 180 models on an A100",
    conflicts={
        "fsdp": "its hooks gather and free parameters in the middle of the graph",
        "stochastic_depth": "each combination of dropped branches is another graph to compile",
    },
)
def torch_compile(recipe: Recipe, *, backend: str = "inductor") -> Recipe:
    """Compile forward and backward of the model into fused kernels, as one graph without breaks.

    The model is compiled in place, so that its weights keep their names, when it is first called; that time is on the
    clock. What is evaluated is the same model, not compiled. A model that cannot be one graph is refused.

    When it helps: GPUs, and runs so long that compiling is soon forgotten.
    When it does not: short budgets: the first step takes as long as thousands of others, less where an earlier run has
        left something in the cache. Small models on a CPU, whose steps may become slower.

    backend: what turns the graph into code, by torch's name of it; "aot_eager" turns that off, and only traces.
    """
    known = torch.compiler.list_backends(exclude_tags=())
    if backend not in known:
        raise InvalidTechnique(f"torch_compile: backend is {backend!r}; it should be one of {', '.join(known)}")
    if backend == "inductor" and compiler() is None:
        raise NotApplicable("torch_compile needs a C++ compiler, and finds neither g++, clang++ nor what CXX names")

    def place(model: nn.Module) -> nn.Module:
        placed = recipe.placement(model)
        torch.compiler.reset()  # or what former runs in this process compiled would count against torch's limit
        model.compile(backend=backend, fullgraph=True)
        return placed

    def gradient(training: Training, batch: Batch) -> Tensor:
        from torch._dynamo.exc import Unsupported, UserError  # a second's import, for those who compile

        try:
            return recipe.gradient(training, batch)
        except (Unsupported, UserError) as why:
            reason = str(why).strip().partition("\n")[0]
            raise NotApplicable(f"torch_compile cannot make one graph of this model: {reason}") from why

    def not_compiled(training: Training) -> nn.Module:
        return copy.copy(recipe.eval_model(training))  # which leaves the compiled code behind, and shares all else

    return recipe.wrap(placement=place, gradient=gradient, eval_model=not_compiled)


def compiler() -> str | None:
    """Return the path of the C++ compiler that torch would use, or None where there is none."""
    usual = "clang++" if sys.platform == "darwin" else "g++"
    return shutil.which(os.environ.get("CXX", usual))
