"""Write a results folder of as many made-up records as one likes, to see what reports do with them.

$ python tests/many_records.py FOLDER --sets 60 --seeds 9 --budgets 1
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from effbench.records import Record
from effbench.report.sources import technique_sources
from record_factory import record

#: workload -> (metric, whether more is better, value of the baseline, spread over seeds, target)
WORKLOADS = {
    "mnist1d_cnn": ("accuracy", True, 0.83, 0.012, 0.75),
    "mnist5k_resnet": ("accuracy", True, 0.956, 0.004, 0.95),
    "kjv_gpt": ("bits_per_byte", False, 2.654, 0.015, 2.6),
    "cluttered_vit": ("accuracy", True, 0.78, 0.01, 0.7),
    "kjv_books": ("accuracy", True, 0.69, 0.012, 0.65),
    "digits_mlp": ("accuracy", True, 0.972, 0.004, 0.99),
    "mnist1d_mlp": ("accuracy", True, 0.7, 0.01, 0.65),
    "cluttered_cnn": ("accuracy", True, 0.92, 0.006, 0.9),
    "kjv_bert": ("accuracy", True, 0.55, 0.01, 0.5),
}
STEPS = 400


def many(
    sets: int, seeds: int, budgets: Sequence[float] = (5.0,), workloads: int = 9, draw: int = 0
) -> Iterator[Record]:
    """Yield the records of a study with so many sets, the baseline besides, of techniques that there are."""
    dice = random.Random(draw)
    names = sorted(technique_sources())
    chosen: list[dict[str, dict[str, float]]] = [{}]
    chosen += [{name: {}} for name in names[:sets]]
    while len(chosen) <= sets:
        chosen.append({name: {"strength": len(chosen) / 100} for name in dice.sample(names, 2)})
    for workload, facts in list(WORKLOADS.items())[:workloads]:
        effects = [0.0, *(dice.gauss(0.0, 1.5 * facts[3]) for _ in chosen[1:])]
        fates = ["ok", *(dice.choices(["ok", "skipped", "diverged", "failed"], [90, 6, 2, 2])[0] for _ in chosen[1:])]
        for budget in budgets:
            luck = [dice.gauss(0.0, facts[3]) for _ in range(seeds)]
            for number, techniques in enumerate(chosen):
                for seed in range(seeds):
                    values = effects[number], luck[seed] + dice.gauss(0.0, facts[3] / 3), fates[number]
                    yield _record(workload, techniques, seed, budget, *values, dice)


def _record(
    workload: str,
    techniques: dict[str, dict[str, float]],
    seed: int,
    budget: float,
    effect: float,
    noise: float,
    fate: str,
    dice: random.Random,
) -> Record:
    metric, higher, usual, _, target = WORKLOADS[workload]
    asked = {"workload": workload, "seed": seed, "budget": f"{budget:g}s reference", "suite": "survey"}
    asked |= {"metric": metric, "higher_is_better": higher, "target": target}
    if fate != "ok":
        reason = {"skipped": f"{next(iter(techniques))} needs images, and {workload} has none"}.get(
            fate, "the loss was nan"
        )
        return record(techniques, status=fate, reason=reason, **asked)
    grown = (
        usual * (1.0 - 0.25 / (1.0 + budget)) / (1.0 - 0.25 / 6.0)
        if higher
        else usual * (1.0 + 0.5 / (1.0 + budget)) / (1.0 + 0.5 / 6.0)
    )
    value = min(0.999, grown + effect + noise) if higher else grown + effect + noise
    start = 0.1 if higher else 2.0 * usual
    rows = []
    for step in range(1, 11):
        share = step / 10
        risen = value + (start - value) * math.exp(-5.0 * share) + dice.gauss(0.0, abs(noise) / 6)
        rows.append({"progress": share, "spent": share * budget, "steps": round(STEPS * share), metric: risen})
    speed = 2500.0 * (1.0 + 0.15 * math.sin(len(str(techniques)))) * (1.0 + 0.01 * dice.random())
    wall = 6.0 * budget / 5.0
    return record(
        techniques,
        value=value,
        metrics={"validation": {metric: value + noise / 2}, "test": {metric: value}},
        curve=rows,
        spent=budget,
        examples_per_second=speed,
        ledger={
            "setup": 0.06,
            "data": 0.03 * wall,
            "forward_backward": 0.7 * wall,
            "update": 0.12 * wall,
            "extra": 0.05 * wall * dice.random() * bool(techniques),
            "evaluation": 0.08 * wall,
            "idle": 0.02 * wall,
        },
        wall_seconds=wall,
        peak_memory_mib=20.0 + 10.0 * abs(math.sin(len(str(techniques)))),
        identity={
            "workload": workload,
            "techniques": str(techniques),
            "seed": str(seed),
            "harness": "8266bc7c3c5eeb5d",
        },
        started="2026-11-29T21:00:00+00:00",
        finished="2026-11-29T21:00:06+00:00",
        **asked,
    )


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    for name, usual in (("--sets", 60), ("--seeds", 9), ("--budgets", 1), ("--workloads", 9)):
        parser.add_argument(name, type=int, default=usual)
    asked = parser.parse_args()
    budgets = [5.0 * 2.0**-rung for rung in range(asked.budgets)]
    asked.folder.mkdir(parents=True, exist_ok=True)
    found = {}
    with (asked.folder / "records.jsonl").open("w", encoding="utf-8") as file:
        for each in many(asked.sets, asked.seeds, budgets, asked.workloads):
            found[each.label] = each.techniques
            file.write(each.to_json() + "\n")
    suite = {"name": "survey", "budget": "5s reference", "seeds": [*range(asked.seeds)], "sets": [*found.values()]}
    suite["workloads"] = [*WORKLOADS][: asked.workloads]
    (asked.folder / "suite.json").write_text(json.dumps(suite), encoding="utf-8")


if __name__ == "__main__":
    main()
