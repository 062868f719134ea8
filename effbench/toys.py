"""Toy recipes: a run of six steps takes hundredths of a second, and yet there is something for every technique.

They are what the laws are checked on. None learns much; all have what techniques trip over: several epochs in few
steps, batch statistics, dropout, tied weights, targets that do not count, masks that are drawn anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from effbench.data.words import PADDING
from effbench.models import Network, bert, gpt, resnet, vit
from effbench.optimizers import clipped_step, decay_groups
from effbench.recipe import Examples, Recipe, Transform, Update
from effbench.terms import IGNORED, step, unchanged
from effbench.workloads.baselines import baseline
from effbench.workloads.masking import masked

EXAMPLES, BATCH = 40, 16  # six steps see each example twice, some thrice
CLASSES, VOCABULARY, TOKENS = 3, 11, 12


def vectors() -> Recipe:
    """Tell the largest of three numbers in a vector; a perceptron with BatchNorm and dropout, not clipped."""
    inputs = torch.randn(EXAMPLES, 8, generator=_random())
    examples = Examples(inputs, inputs[:, :CLASSES].argmax(1))
    return _recipe(examples, _perceptron, traits=(), classes=CLASSES, update=step)


def images() -> Recipe:
    """Tell which third of an image is bright; a residual network with BatchNorm, at home at any resolution."""
    traits = ("image", "any_resolution")
    return _recipe(_bright_thirds(), lambda: resnet(classes=CLASSES, width=4), traits, CLASSES)


def patches() -> Recipe:
    """Tell which third of an image is bright; a vision transformer."""

    def model() -> nn.Module:
        return vit(resolution=8, patch=2, classes=CLASSES, width=16, depth=2, heads=2)

    return _recipe(_bright_thirds(), model, ("image",), CLASSES)


def text() -> Recipe:
    """Continue a count that goes round; a GPT. Some texts are shorter, and padded: the last targets do not count."""
    texts = _counts(TOKENS + 1) + PADDING + 1
    inputs, targets = texts[:, :-1].clone(), texts[:, 1:].clone()
    inputs[::3, -TOKENS // 3 :], targets[::3, -TOKENS // 3 :] = PADDING, IGNORED

    def model() -> nn.Module:
        return gpt(VOCABULARY + 1, length=TOKENS, width=16, depth=4, heads=2)

    return _recipe(Examples(inputs, targets), model, ("text", "causal", "padded"))


def masked_text() -> Recipe:
    """Fill in what is masked in a count that goes round; a BERT."""
    texts = _counts(TOKENS)

    def model() -> nn.Module:
        return bert(VOCABULARY + 1, length=TOKENS, width=16, depth=2, heads=2)

    return _recipe(Examples(texts, texts), model, ("text", "masked"), transform=masked(VOCABULARY, rate=0.3))


#: name -> a function that makes the recipe afresh.
TOYS: Mapping[str, Callable[[], Recipe]] = {toy.__name__: toy for toy in (vectors, images, patches, text, masked_text)}


def _recipe(
    dataset: Examples,
    model: Callable[[], nn.Module],
    traits: tuple[str, ...],
    classes: int | None = None,
    transform: Transform = unchanged,
    update: Update | None = None,
) -> Recipe:
    return baseline(
        dataset,
        model,
        torch.device("cpu"),
        batch_size=BATCH,
        optimizer=_adamw,
        warmup=0.1,
        update=update or clipped_step(1.0),
        transform=transform,
        classes=classes,
        traits=traits,
    )


def _adamw(model: nn.Module) -> Optimizer:
    # AdamW's usual 1e-8 would blow up gradients that are zero but for rounding, such as those of the keys' biases
    return AdamW(decay_groups(model, 0.01), lr=0.01, eps=1e-4, foreach=True)


def _perceptron() -> nn.Module:
    def layer(width_in: int) -> nn.Module:
        return nn.Sequential(nn.Linear(width_in, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2))

    return Network(layer(8), [layer(16) for _ in range(4)], nn.Linear(16, CLASSES))


def _bright_thirds() -> Examples:
    inputs = torch.rand(EXAMPLES, 1, 8, 8, generator=_random())
    targets = torch.arange(EXAMPLES) % CLASSES
    for third in range(CLASSES):
        inputs[targets == third, :, :, 3 * third : 3 * third + 2] += 1.0
    return Examples(inputs, targets)


def _counts(length: int) -> Tensor:
    """Return (EXAMPLES, length) tokens that count up from some number in steps of one to three."""
    first = torch.randint(VOCABULARY, (EXAMPLES, 1), generator=_random())
    return (first + (1 + torch.arange(EXAMPLES) % 3)[:, None] * torch.arange(length)) % VOCABULARY


def _random() -> torch.Generator:
    return torch.Generator().manual_seed(0)
