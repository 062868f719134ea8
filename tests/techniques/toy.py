"""Small recipes on random data, one of each kind, and what tests of techniques do with them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from effbench import terms
from effbench.budget import Budget
from effbench.clock import Clock, StepClock
from effbench.models import bert, gpt, mlp, resnet
from effbench.optimizers import adamw, sgd
from effbench.recipe import Examples, Recipe, Training
from effbench.train import start, train

torch.set_num_threads(1)

CLASSES, VOCABULARY = 4, 13


def recipe(inputs: Tensor, targets: Tensor, **terms_and_facts: object) -> Recipe:
    """A baseline: random order, cross-entropy, AdamW, warm-up and linear decay, batches of 8."""
    plain = {
        "sampler": terms.shuffled,
        "loader": terms.by_position,
        "batch_size": lambda progress: 8,
        "transform": terms.unchanged,
        "placement": terms.as_it_is,
        "loss": terms.cross_entropy,
        "gradient": terms.backward,
        "optimizer": adamw(3e-3, weight_decay=0.1),
        "lr_schedule": terms.warmup_then_linear(0.1),
        "update": terms.step,
        "eval_model": terms.trained_model,
    }
    return Recipe(dataset=Examples(inputs, targets), **{**plain, **terms_and_facts})


def random_numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def random_integers(below: int, *shape: int) -> Tensor:
    return torch.randint(below, shape, generator=torch.Generator().manual_seed(2))


def vectors(**changes: object) -> Recipe:
    """64 vectors of 6 numbers, of which one of the first is the largest; a perceptron."""
    inputs = random_numbers(64, 6)
    facts = {"model": lambda: mlp(6, CLASSES, width=8, depth=2), "classes": CLASSES}
    return recipe(inputs, inputs[:, :CLASSES].argmax(1), **{**facts, **changes})


def images(height: int = 8, width: int = 8, **changes: object) -> Recipe:
    """32 images of one channel, a ResNet with BatchNorm, SGD."""
    inputs, targets = random_numbers(32, 1, height, width), random_integers(CLASSES, 32)
    facts = {
        "model": lambda: resnet(classes=CLASSES, width=4),
        "optimizer": sgd(0.05, momentum=0.9, weight_decay=5e-4),
        "classes": CLASSES,
        "traits": frozenset({"image", "any_resolution"}),
    }
    return recipe(inputs, targets, **{**facts, **changes})


def tokens(length: int = 16, **changes: object) -> Recipe:
    """32 texts that count upwards in ones and twos, a GPT; the end of every other text does not count."""
    text = (1 + random_integers(2, 32, length + 1)).cumsum(1) % VOCABULARY
    targets = text[:, 1:].clone()
    targets[::2, length // 2 :] = terms.IGNORED
    facts = {
        "model": lambda: gpt(VOCABULARY, length=length, width=8, depth=2, heads=2),
        "traits": frozenset({"text", "causal"}),
    }
    return recipe(text[:, :-1], targets, **{**facts, **changes})


def masked_tokens(length: int = 16, **changes: object) -> Recipe:
    """32 texts, a BERT; a third of the tokens are targets."""
    inputs = random_integers(VOCABULARY, 32, length)
    targets = torch.where(random_integers(3, 32, length) == 0, inputs, terms.IGNORED)
    facts = {
        "model": lambda: bert(VOCABULARY, length=length, width=8, depth=1, heads=2),
        "traits": frozenset({"text", "masked"}),
    }
    return recipe(inputs, targets, **{**facts, **changes})


def texts(**changes: object) -> Recipe:
    """32 texts with a class each; a network that averages its embedded tokens."""
    inputs, targets = random_integers(VOCABULARY, 32, 10), random_integers(CLASSES, 32)
    facts = {
        "model": lambda: nn.Sequential(nn.EmbeddingBag(VOCABULARY, 8), nn.Linear(8, CLASSES)),
        "classes": CLASSES,
        "traits": frozenset({"text"}),
    }
    return recipe(inputs, targets, **{**facts, **changes})


def run(recipe: Recipe, steps: int = 6, seed: int = 0, look: Callable[[Training], object] | None = None) -> Training:
    """Train for some steps; `look` at the training after each."""
    return spend(recipe, f"{steps} steps", StepClock(), seed, look)


def spend(
    recipe: Recipe, budget: str, clock: Clock, seed: int = 0, look: Callable[[Training], object] | None = None
) -> Training:
    training = start(recipe, seed)
    for _ in train(training, Budget.parse(budget), clock):
        if look is not None:
            look(training)
    return training


def begun(recipe: Recipe, seed: int = 0, progress: float = 0.0) -> Training:
    """A training that stands at `progress` and has not taken a step."""
    training = start(recipe, seed)
    training.progress = progress
    return training


def first_batch(recipe: Recipe, training: Training, count: int = 8):
    """The first examples of the data set, transformed."""
    return recipe.transform(recipe.loader(torch.arange(count), training), training)


def state(model: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def flat(model: nn.Module) -> Tensor:
    """All weights in one vector, float64."""
    return torch.cat([weight.detach().flatten().double() for weight in model.parameters()])


def same(one: nn.Module, other: nn.Module) -> bool:
    """Whether two models hold the same weights and buffers, bit by bit."""
    ours, theirs = one.state_dict(), other.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)
