"""Optimizer in backward: update each weight as soon as its gradient is there, and let the gradient go."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from effbench import Batch, Recipe, Training, technique
from effbench.distributed.scopes import kinds_of, scope_of
from effbench.errors import Conflict, NotApplicable
from effbench.optimizers import Together
from effbench.surgery import members

#: Techniques whose update looks at the weights after the step, and not at gradients.
_AFTER_THE_STEP = {"ema", "lawa", "lookahead", "swa"}


@technique(
    "system_centric/model",
    paper="Lv et al., Full Parameter Fine-tuning for Large Language Models with Limited Resources (LOMO), "
    "arXiv:2306.09782",
    claim="fine-tuning of 65 billion parameters on eight GPUs of 24 GB",
)
def optimizer_in_backward(recipe: Recipe) -> Recipe:
    """Step each weight in the backward pass, right after its gradient is complete, so that gradients never pile up.

    Each weight gets an optimizer of its own, with the settings of its group. Weights end where the ordinary step takes
    them: a weight that has been updated is not needed again in that pass. At most one gradient exists at a time, where
    there were as many numbers in gradients as in weights.

    When it helps: large models, small batches: there gradients are a large part of the memory.
    When it does not: memory for activations dominates; an optimizer for each weight loses the time that taking
        weights together saves. Whatever needs all gradients at once is impossible: clipping by their norm,
        accumulation, SAM.
    """
    if "clipped" in recipe.traits:
        raise NotApplicable("optimizer_in_backward lets gradients go one by one, and this baseline clips their norm")
    for term, harmless in (("gradient", set()), ("update", _AFTER_THE_STEP)):
        others = sorted({author for _, changed, author in recipe.history if changed == term and author} - harmless)
        if others:
            raise Conflict(
                f"optimizer_in_backward spends gradients as they come, and {' and '.join(others)} changed the {term}, "
                "which may need them all at once"
            )
    if strange := [kind.__name__ for kind in kinds_of(recipe) if scope_of(kind) == "model"]:
        raise NotApplicable(f"optimizer_in_backward: {' and '.join(strange)} may not step each weight by itself")

    def build(model: nn.Module) -> Optimizer:
        made = members(recipe.optimizer(model))
        alone = [
            type(member)([{**group, "params": [weight]}])  # type: ignore[call-arg]  # as every kind of optimizer can be made
            for member in made
            for group in member.param_groups
            for weight in group["params"]
        ]
        return Together(*alone)

    def gradient(training: Training, batch: Batch) -> Tensor:
        if training.group.size > 1:
            raise NotApplicable("optimizer_in_backward spends gradients before processes have shared them")
        hooks = [
            weight.register_post_accumulate_grad_hook(Spending(member))
            for member in members(training.optimizer)
            for group in member.param_groups
            for weight in group["params"]
            if weight.requires_grad
        ]
        try:
            return recipe.gradient(training, batch)
        finally:
            for hook in hooks:
                hook.remove()

    return recipe.wrap(optimizer=build, gradient=gradient)


class Spending:
    """Takes the step of a weight, and clears its gradient."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer

    def __call__(self, weight: Any) -> None:
        """Hear that the gradient of `weight` is complete."""
        self._optimizer.step()
        weight.grad = None
