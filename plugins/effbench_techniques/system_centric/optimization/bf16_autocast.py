"""bf16 autocast: multiply matrices in bfloat16, keep weights, sums and the loss in float32."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique

_FLOAT32_ATTENTION = ("cpu", "always", "never")


@technique(
    "system_centric/optimization",
    paper="Kalamkar et al., A Study of BFLOAT16 for Deep Learning Training, arXiv:1905.12322",
    claim="the accuracy of float32 without any change of hyperparameters",
    title="bf16 autocast",
)
def bf16_autocast(recipe: Recipe, *, float32_attention: str = "cpu") -> Recipe:
    """Run the forward pass under torch.autocast, so that matrix products are computed in bfloat16.

    Weights, gradients and optimizer state stay in float32, and so do softmax, norms and the loss, whose inputs are cast
    back. bfloat16 has the range of float32, so that no loss scaling is needed. Evaluation is in float32.

    When it helps: hardware with bfloat16 units (AMX, AVX512-BF16, tensor cores) and matrices large enough for them;
        convolutions, with `channels_last`.
    When it does not: small models, where casting costs more than it saves, and CPUs without such units. The backward
        pass of the CPU's fused attention is slower in bfloat16 by more than all else gains; hence the option.

    float32_attention: where attention stays in float32: "cpu", "always", or "never", which turns the exception off.
    """
    if float32_attention not in _FLOAT32_ATTENTION:
        raise InvalidTechnique(
            f"bf16_autocast: float32_attention is {float32_attention!r}; it should be one of "
            f"{', '.join(map(repr, _FLOAT32_ATTENTION))}"
        )

    def place(model: nn.Module) -> nn.Module:
        placed = recipe.placement(model)
        device = next(model.parameters()).device.type
        if float32_attention == "always" or float32_attention == device:
            exempt_attention(model)
        return Autocast(placed, device)

    return recipe.wrap(placement=place)


class Autocast(nn.Module):
    """A model that computes in bfloat16 where that is safe, and returns float32."""

    def __init__(self, model: nn.Module, device: str) -> None:
        super().__init__()
        self.model, self.device = model, device

    def forward(self, inputs: Tensor) -> Any:
        """Return the model's outputs in float32."""
        with torch.autocast(self.device, torch.bfloat16):
            outputs = self.model(inputs)
        return in_float32(outputs)


def in_float32(outputs: Any) -> Any:
    """Cast tensors of floats, also inside tuples, lists and dictionaries; leave all else."""
    if isinstance(outputs, Tensor):
        return outputs.float() if outputs.is_floating_point() else outputs
    if isinstance(outputs, tuple | list):
        return type(outputs)(in_float32(each) for each in outputs)
    if isinstance(outputs, dict):
        return {name: in_float32(each) for name, each in outputs.items()}
    return outputs


def exempt_attention(model: nn.Module) -> None:
    """Let every `attend`, (q, k, v) -> mixed values, compute in float32; a second time changes nothing."""
    for module in list(model.modules()):
        attend = getattr(module, "attend", None)
        if isinstance(attend, nn.Module) and not isinstance(module, Float32Attention):
            module.attend = attend if isinstance(attend, Float32Attention) else Float32Attention(attend)


class Float32Attention(nn.Module):
    """Attention outside of autocast."""

    def __init__(self, attend: nn.Module) -> None:
        super().__init__()
        self.attend = attend

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Mix the values of each head; all shapes (B, heads, T, C / heads)."""
        with torch.autocast(q.device.type, enabled=False):
            mixed: Tensor = self.attend(q.float(), k.float(), v.float())
        return mixed
