from __future__ import annotations

import pytest

from effbench.distributed.pipeline_schedules import (
    Action,
    Schedule,
    fill_drain,
    interleaved,
    one_forward_one_backward,
)
from schedule_slots import bubble, idle_share, most_under_way, timeline

SCHEDULES = [
    pytest.param(fill_drain, 1, id="fill_drain"),
    pytest.param(one_forward_one_backward, 1, id="1f1b"),
    pytest.param(interleaved(2), 2, id="interleaved in 2"),
    pytest.param(interleaved(3), 3, id="interleaved in 3"),
]
SIZES = [(1, 4), (2, 2), (2, 8), (3, 3), (3, 6), (4, 8), (5, 10)]  # devices, micro-batches


def plans(schedule: Schedule, devices: int, micro_batches: int) -> list[list[Action]]:
    return [schedule(device, devices, micro_batches) for device in range(devices)]


@pytest.mark.parametrize(("devices", "micro_batches"), SIZES)
@pytest.mark.parametrize(("schedule", "chunks"), SCHEDULES)
def test_every_micro_batch_goes_forward_once_and_then_back_once(schedule, chunks, devices, micro_batches) -> None:
    for plan in plans(schedule, devices, micro_batches):
        assert len(plan) == len(set(plan)) == 2 * chunks * micro_batches
        for chunk in range(chunks):
            for number in range(micro_batches):
                assert plan.index(Action("forward", chunk, number)) < plan.index(Action("backward", chunk, number))


@pytest.mark.parametrize(("devices", "micro_batches"), SIZES)
@pytest.mark.parametrize(("schedule", "chunks"), SCHEDULES)
def test_the_bubble_is_that_of_the_papers(schedule, chunks, devices, micro_batches) -> None:
    rows = timeline(plans(schedule, devices, micro_batches))
    assert idle_share(rows) == pytest.approx(bubble(devices, micro_batches, chunks))
    assert len(rows[0]) == 2 * (chunks * micro_batches + devices - 1)


@pytest.mark.parametrize("micro_batches", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("schedule", [fill_drain, one_forward_one_backward])
def test_it_is_so_for_any_number_of_micro_batches(schedule, micro_batches) -> None:
    rows = timeline(plans(schedule, 4, micro_batches))
    assert idle_share(rows) == pytest.approx(3 / (micro_batches + 3))


def test_the_bubble_of_four_devices_and_eight_micro_batches() -> None:
    assert bubble(4, 8) == pytest.approx(3 / 11)
    assert bubble(4, 8, chunks=2) == pytest.approx(3 / 19)
    assert bubble(1, 8) == 0.0


def test_1f1b_keeps_as_many_micro_batches_as_stages_lie_ahead_and_fill_drain_keeps_all() -> None:
    for device in range(4):
        assert most_under_way(one_forward_one_backward(device, 4, 9)) == 4 - device
        assert most_under_way(one_forward_one_backward(device, 4, 2)) == min(2, 4 - device)
        assert most_under_way(fill_drain(device, 4, 9)) == 9


def test_interleaved_devices_keep_a_bounded_number_of_passes_however_many_micro_batches_there_are() -> None:
    for device in range(4):
        expected = 4 + 2 * (3 - device) + 1  # the warm-up, and the forward pass of the first turn
        assert most_under_way(interleaved(2)(device, 4, 16)) == expected
        assert most_under_way(interleaved(2)(device, 4, 64)) == expected


def test_fill_drain_as_in_the_paper() -> None:
    assert fill_drain(0, 2, 2) == [("forward", 0, 0), ("forward", 0, 1), ("backward", 0, 1), ("backward", 0, 0)]


def test_1f1b_as_in_the_paper() -> None:
    kinds = ["".join(a.kind[0] + str(a.micro_batch) for a in one_forward_one_backward(d, 4, 4)) for d in range(4)]
    assert kinds == ["f0f1f2f3b0b1b2b3", "f0f1f2b0f3b1b2b3", "f0f1b0f2b1f3b2b3", "f0b0f1b1f2b2f3b3"]


def test_interleaved_goes_through_all_chunks_by_groups() -> None:
    forward = [(a.chunk, a.micro_batch) for a in interleaved(2)(0, 2, 4) if a.kind == "forward"]
    assert forward == [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3)]
    backward = [(a.chunk, a.micro_batch) for a in interleaved(2)(0, 2, 4) if a.kind == "backward"]
    assert backward == [(1, 0), (1, 1), (0, 0), (0, 1), (1, 2), (1, 3), (0, 2), (0, 3)]
    assert interleaved(1)(1, 4, 6) == one_forward_one_backward(1, 4, 6)


def test_groups_must_be_full() -> None:
    with pytest.raises(ValueError, match="5 micro-batches do not fill groups of 4"):
        interleaved(2)(0, 4, 5)


def test_devices_that_wait_for_each_other_for_ever_are_noticed() -> None:
    forward, back = Action("forward", 0, 0), Action("backward", 0, 0)
    with pytest.raises(ValueError, match="after 1 slots every device waits"):
        timeline([[forward, back], [back, forward]])
