import time

import pytest
import torch

from effbench.errors import InvalidTechnique
from effbench.optimizers import sgd
from effbench.techniques import compose
from effbench_techniques.system_centric.model.ddp import ddp
from effbench_techniques.system_centric.model.fsdp import fsdp
from effbench_techniques.system_centric.model.zero1_weight_update_sharding import zero1_weight_update_sharding
from effbench_techniques.system_centric.optimization.emulated_network import emulated_network
from effbench_techniques.system_centric.optimization.ring_allreduce import ring_allreduce
from ranks import evaluated, on_all_ranks
from toy import run, same, tokens, vectors

KNOWN = {
    technique.name: technique
    for technique in (emulated_network, ddp, fsdp, zero1_weight_update_sharding, ring_allreduce)
}
SGD = sgd(0.1, momentum=0.9, weight_decay=0.01)
FAST = {"latency": 1e-5, "bandwidth": 1e9}


def both(parallel: str, ranks: int = 2, **conditions: float):
    sets = {parallel: {"processes": ranks}, "emulated_network": {**FAST, **conditions}}
    return compose(vectors(optimizer=SGD), sets, KNOWN)[0]


def weights_and_seconds(training) -> tuple[list[float], float, float]:
    wire = training.group.wire
    return evaluated(training).tolist(), wire.seconds, training.kept.get("emulated_network", 0.0)


@pytest.mark.parametrize("parallel", ["ddp", "fsdp", "zero1_weight_update_sharding", "ring_allreduce"])
def test_it_changes_when_numbers_arrive_and_none_of_them(parallel: str) -> None:
    far = on_all_ranks(both(parallel), weights_and_seconds)
    near = on_all_ranks(compose(vectors(optimizer=SGD), {parallel: {}}, KNOWN)[0], weights_and_seconds)
    for (ours, seconds, _), (theirs, none, _) in zip(far, near, strict=True):
        assert ours == theirs
        assert seconds > 6 * 2 * 1e-5  # two messages in each of six steps, at the least
        assert none == 0.0


@pytest.mark.parametrize("ranks", [2, 3])
def test_a_step_of_ddp_takes_the_seconds_of_a_ring(ranks: int) -> None:
    size = 4 * sum(p.numel() for p in vectors().model().parameters())
    latency, bandwidth = 2e-5, 1e8
    recipe = both("ddp", ranks, latency=latency, bandwidth=bandwidth)
    told = [on_all_ranks(recipe, weights_and_seconds, steps) for steps in (2, 5)]  # the first step agrees on an order
    a_step = 2 * (ranks - 1) * latency + 2 * (ranks - 1) / ranks * size / bandwidth
    for (_, two, _), (_, five, _) in zip(*told, strict=True):
        assert five - two == pytest.approx(3 * a_step)


def test_no_bandwidth_is_any_bandwidth() -> None:
    recipe = both("zero1_weight_update_sharding", latency=1e-5, bandwidth=0.0)
    told = on_all_ranks(recipe, weights_and_seconds, steps=5)
    assert [seconds for _, seconds, _ in told] == pytest.approx([5 * 2 * 1e-5] * 2)  # two collectives of one round


def test_only_training_is_slowed_down() -> None:
    def evaluation(training) -> tuple[float, float]:
        before = training.group.wire.seconds
        training.recipe.eval_model(training)  # gathers the weights
        training.group.sum(torch.ones(1))
        return before, training.group.wire.seconds

    for before, after in on_all_ranks(both("fsdp"), evaluation):
        assert before == after > 0.0


def test_the_last_rank_sleeps_in_proportion_to_what_it_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    ticks = iter(range(10**6))
    monkeypatch.setattr(time, "thread_time", lambda: float(next(ticks)))  # a second at each look
    monkeypatch.setattr(time, "sleep", slept.append)

    def told(training) -> tuple[list[float], float]:
        return [seconds for seconds in slept if seconds > 1.0], training.kept.get("emulated_network", 0.0)

    first, last = on_all_ranks(both("ddp", slowdown=3.5), told, steps=4)
    assert first == ([], 0.0)
    naps = 4 * 2 + 1  # after the gradient and the update of each step, and at the end
    assert last == ([2.5] * naps, 2.5 * naps)


def test_now_and_then_any_rank_is_slow() -> None:
    def slow_in(training) -> list[int]:
        return slow

    slow: list[int] = []
    recipe = both("ddp", slowdown=1.0 + 1e-6, often=0.25)

    def look(training) -> None:
        before = training.kept.get("before", 0.0)
        training.kept["before"] = training.kept.get("emulated_network", 0.0)
        if training.kept["before"] > before:
            slow.append(training.step - 1)

    told = on_all_ranks(recipe, slow_in, steps=80, look=look)
    slow.clear()
    assert [len(steps) for steps in told] == pytest.approx([20, 20], abs=10)
    assert told[0] != told[1]
    assert told == on_all_ranks(recipe, slow_in, steps=80, look=look)  # by the same lot


def test_it_goes_around_all_others() -> None:
    for parallel in ("zero1_weight_update_sharding", "ring_allreduce"):
        order = compose(vectors(), {"emulated_network": {}, parallel: {}}, KNOWN)[1]
        assert order == [parallel, "emulated_network"]


def test_without_delay_or_alone_it_is_the_baseline() -> None:
    off = {"latency": 0.0, "bandwidth": 0.0, "slowdown": 1.0}
    recipe = tokens()
    assert emulated_network.apply(recipe, off).history == recipe.history
    assert same(run(emulated_network.apply(tokens(), {})).model, run(tokens()).model)


def test_it_refuses_what_no_network_is() -> None:
    with pytest.raises(InvalidTechnique, match=r"latency is -1\.0"):
        emulated_network.apply(vectors(), {"latency": -1.0})
    with pytest.raises(InvalidTechnique, match=r"slowdown is 0\.5"):
        emulated_network.apply(vectors(), {"slowdown": 0.5})
    with pytest.raises(InvalidTechnique, match=r"latency is inf .*; they should be from 0 to 60 seconds"):
        emulated_network.apply(vectors(), {"latency": float("inf")})
    with pytest.raises(InvalidTechnique, match=r"bandwidth 1e-300; .* a byte per second or more"):
        emulated_network.apply(vectors(), {"bandwidth": 1e-300})
    with pytest.raises(InvalidTechnique, match=r"slowdown is 1e\+300; it should be from 1 \(off\) to 1e\+06 times"):
        emulated_network.apply(vectors(), {"slowdown": 1e300})
    with pytest.raises(InvalidTechnique, match=r"often is 2\.0"):
        emulated_network.apply(vectors(), {"often": 2.0})
