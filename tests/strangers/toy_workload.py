"""A stranger's plugin: a tiny workload, and others that are judged slowly or strangely, or have no baseline."""

from __future__ import annotations

import os
import time

import torch
from torch import nn

import effbench
from effbench import Examples, Recipe, Workload, terms
from effbench.optimizers import adamw


def points(seed: int, count: int) -> Examples:
    generator = torch.Generator().manual_seed(seed)
    inputs = 3 * torch.randn(count, 8, generator=generator) + 5
    return Examples(inputs, (inputs[:, 0] + inputs[:, 1] > 10).long())


def model() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 2))


def baseline(device: torch.device) -> Recipe:
    return Recipe(
        dataset=points(0, 200),
        sampler=terms.shuffled,
        loader=terms.by_position,
        batch_size=lambda progress: 20,
        transform=terms.unchanged,
        model=model,
        placement=terms.as_it_is,
        loss=terms.cross_entropy,
        gradient=terms.backward,
        optimizer=adamw(1e-2, 0.01),
        lr_schedule=terms.warmup_then_linear(0.05),
        update=terms.step,
        eval_model=terms.trained_model,
        classes=2,
    )


def evaluate(network: nn.Module, split: str) -> dict[str, float]:
    data = points({"validation": 1, "test": 2}[split], 100)
    network.eval()
    with torch.no_grad():
        outputs = network(data.inputs)
    network.train()
    right, loss = (outputs.argmax(1) == data.targets).float().mean(), nn.functional.cross_entropy(outputs, data.targets)
    return {"accuracy": float(right), "loss": float(loss)}


def slow_evaluate(network: nn.Module, split: str) -> dict[str, float]:
    time.sleep(0.3)
    return evaluate(network, split)


def strange_evaluate(network: nn.Module, split: str) -> dict[str, float]:
    return {"accuracy": object()}


def raising(device: torch.device) -> Recipe:
    raise KeyError("no baseline today")


def leaving(device: torch.device) -> Recipe:
    os._exit(6)


def workload(name: str, judge=evaluate, recipe=baseline) -> Workload:
    return Workload(
        name=name,
        summary="Tell which side of a line a point lies on.",
        dataset="points",
        model="MLP 8-16-2 with BatchNorm",
        baseline="AdamW 1e-2",
        metric="accuracy",
        higher_is_better=True,
        target=0.9,
        budget="40 steps",
        step_seconds=0.0005,
        recipe=recipe,
        evaluate=judge,
    )


@effbench.hookimpl
def effbench_workloads() -> list[Workload]:
    return [
        workload("toy"),
        workload("judged_slowly", slow_evaluate),
        workload("judged_strangely", strange_evaluate),
        workload("raises", recipe=raising),
        workload("leaves", recipe=leaving),
    ]
