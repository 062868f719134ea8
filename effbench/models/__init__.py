"""The standard models: one file for each family, and one shape for all.

Techniques change models without knowing the family. What they may count on:

- Every model is a `Network`: `embed`, then each of `blocks` (an `nn.ModuleList`) in order, then `head`;
  nothing else happens in its forward pass. So blocks can be stacked, copied, frozen, dropped, recomputed, and
  dealt out to a pipeline.
- What sits in a residual connection is a `Residual`: `forward(x) == shortcut(x) + residual(x)`, and `last` is
  the module whose zero weights make the branch zero. `residuals(model)` finds them all, in order: two in each
  block of a transformer (`attention`, `feed_forward`), one in each block of a ResNet, none in the MLP and the
  1-D CNN.
- In transformers `attention.attend` is a module, (q, k, v) -> mixed values, each (B, heads, T, C / heads): so
  another kind of attention is another module. `feed_forward.activation` and every `norm` are modules too.
- In a Switch transformer every other `feed_forward` is an `Experts`, with `router`, and lists `first` and `last` of
  their layers.
- The head of a language model works token by token, so that it may be given some tokens alone.
- `head.output` and `embed.tokens` of `gpt`, `switch_gpt` and `bert` share their weights.
- Blocks that keep the shape of their input are interchangeable with their neighbours of the same shape.
- Models are built on the CPU from torch's global random numbers: a seed gives equal weights on every device.
"""

from __future__ import annotations

from effbench.models.bert import bert, text_classifier
from effbench.models.cnn1d import cnn1d
from effbench.models.gpt import gpt
from effbench.models.mlp import mlp
from effbench.models.network import Network, Residual, residuals
from effbench.models.resnet import resnet
from effbench.models.switch import switch_gpt
from effbench.models.vit import vit

__all__ = [
    "Network",
    "Residual",
    "bert",
    "cnn1d",
    "gpt",
    "mlp",
    "residuals",
    "resnet",
    "switch_gpt",
    "text_classifier",
    "vit",
]
