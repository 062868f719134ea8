"""Suites as files, which tests change here and there."""

from __future__ import annotations

GOOD = """\
name = "mine"
summary = "Two techniques."
budget = "5s"
total = "10m"
seeds = [0, 1, 2]
workloads = ["digits_mlp", "kjv_gpt"]

[budgets]
kjv_gpt = "100 joules"

[[techniques]]
mixup = {}
[[techniques]]
mixup = { alpha = 0.1 }
ema = { decay = 0.9, steps = 2 }
"""

ALONE = (
    GOOD
    + """
[only]
kjv_gpt = ["ema(decay=0.5)", "mixup(alpha=0.3)"]
"""
)
