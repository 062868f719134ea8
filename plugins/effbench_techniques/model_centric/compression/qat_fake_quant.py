"""Quantisation-aware training: compute with rounded weights and activations, and learn as if they were not."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import functional_call

from effbench import Recipe, Training, technique
from effbench.errors import InvalidTechnique, NotApplicable
from effbench.models.hidden import Layer, hidden_layers
from effbench.surgery import operate

_TINY = 1e-8  # a scale of zero rounds nothing
_CHOICES = (0, *range(2, 9))


@technique(
    "model_centric/compression",
    paper="Jacob et al., Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference, "
    "arXiv:1712.05877",
    claim="MobileNets in 8 bits within 1 to 2 points of float",
    neutral={"bits": 0},
    conflicts={"low_rank_factorization": "it would look for layers that are hidden in quantised ones"},
    title="Quantisation-aware training",
)
def qat_fake_quant(recipe: Recipe, *, bits: int = 8, start: float = 0.5) -> Recipe:
    """Round the weights and inputs of the hidden layers to few bits, in training and in evaluation.

    Weights are rounded in each output channel by itself, to whole multiples of the largest of them divided by
    2^(bits - 1) - 1; inputs to 2^bits values between the least and the greatest of the batch. The gradient goes through
    the rounding as if it were not there. What is evaluated rounds, too: the loss of quality is what is measured.

    When it helps: deployment on hardware that computes with integers.
    When it does not: time of training: rounding is simulated in floating point, and comes on top.

    bits: of weights and inputs, 2 to 8; 0 turns it off.
    start: share of the budget after which it begins.
    """
    if bits not in _CHOICES:
        raise InvalidTechnique(f"qat_fake_quant: bits is {bits}; it should be 2 to 8, or 0 (off)")
    if not 0.0 <= start < 1.0:
        raise InvalidTechnique(f"qat_fake_quant: start is {start}; it should be a share from 0, below 1")
    with torch.random.fork_rng(devices=[]):
        if not hidden_layers(recipe.model()):
            raise NotApplicable("qat_fake_quant finds no layer in the model's `blocks`")
    if bits == 0:
        return recipe

    def begin(training: Training) -> None:
        def edit(model: nn.Module) -> None:
            for name, layer in hidden_layers(model).items():
                model.set_submodule(name, Quantised(layer, bits))

        operate(training, edit)

    return recipe.at(start, begin)


class Quantised(nn.Module):
    """A linear layer or a convolution that computes with rounded weights and inputs."""

    def __init__(self, layer: Layer, bits: int) -> None:
        super().__init__()
        self.layer, self.bits = layer, bits

    @property
    def weight(self) -> Tensor:
        """The weights before they are rounded."""
        return self.layer.weight

    def forward(self, x: Tensor) -> Tensor:
        """Return what the layer makes of `x`, (B, ...), both rounded."""
        weight = rounded_weights(self.layer.weight, self.bits)
        computed: Tensor = functional_call(self.layer, {"weight": weight}, (rounded_inputs(x, self.bits),))
        return computed


def rounded_weights(weight: Tensor, bits: int) -> Tensor:
    """Round each output channel of `weight`, (O, ...), to multiples of a scale of its own, zero among them."""
    most = 2 ** (bits - 1) - 1
    scale = weight.detach().flatten(1).abs().amax(1).float() / most + _TINY
    zero = torch.zeros_like(scale, dtype=torch.int32)
    return torch.fake_quantize_per_channel_affine(weight, scale, zero, 0, -most, most)


def rounded_inputs(x: Tensor, bits: int) -> Tensor:
    """Round `x` to 2^bits values between its least and its greatest, zero among them."""
    if not x.numel():  # no token came here
        return x
    most = 2**bits - 1
    low, high = x.detach().amin().clamp(max=0.0).float(), x.detach().amax().clamp(min=0.0).float()
    scale = (high - low) / most + _TINY
    zero = (-low / scale).round().clamp(0, most).to(torch.int32)
    return torch.fake_quantize_per_tensor_affine(x, scale, zero, 0, most)
