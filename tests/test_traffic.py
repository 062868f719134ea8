"""Traffic: what collectives send, against closed forms; and a network that is emulated."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from effbench.distributed import metered, traffic
from effbench.distributed.group import Group
from effbench.distributed.launch import RankError, run_ranks
from effbench.distributed.metered import MeteredGroup
from effbench.distributed.traffic import Message, Sent, Traffic
from effbench.distributed.wire import Link

torch.set_num_threads(1)

ELEMENTS, SIZE = 12, 48  # float32; can be divided by 2, 3 and 4


def sent(ranks: int, work: Callable[[Group, Tensor], object]) -> list[dict[str, Sent]]:
    """What each rank sends while it does `work` with a tensor of SIZE bytes."""

    def body(group: Group) -> list[dict[str, Sent]]:
        before = group.wire.traffic.so_far()
        work(group, torch.full((ELEMENTS,), 1.0 + group.rank))
        mine = group.wire.traffic.since(before)
        everyone: list[dict[str, Sent]] = [{}] * group.size
        dist.all_gather_object(everyone, mine)
        return everyone

    return run_ranks(ranks, body)


def parts(tensor: Tensor, ranks: int) -> list[Tensor]:
    return list(tensor.chunk(ranks))


def empty(ranks: int, elements: int = ELEMENTS) -> list[Tensor]:
    return [torch.empty(elements) for _ in range(ranks)]


def test_every_collective_sends_what_its_closed_form_says() -> None:
    n = 3
    forms: dict[str, tuple[Callable[[Group, Tensor], object], list[float]]] = {
        "all_reduce": (lambda group, t: dist.all_reduce(t), [2 * (n - 1) / n * SIZE] * n),
        "reduce_scatter": (
            lambda group, t: dist.reduce_scatter(t.new_empty(ELEMENTS // n), parts(t, n)),
            [(n - 1) / n * SIZE] * n,
        ),
        "all_gather": (lambda group, t: dist.all_gather(empty(n), t), [(n - 1) * SIZE] * n),
        "broadcast": (lambda group, t: dist.broadcast(t, src=1), [0, SIZE, SIZE]),  # 1 -> 2 -> 0
        "reduce": (lambda group, t: dist.reduce(t, dst=1), [SIZE, 0, SIZE]),
        "gather": (lambda group, t: dist.gather(t, empty(n) if group.rank == 1 else None, dst=1), [SIZE, 0, SIZE]),
        "scatter": (
            lambda group, t: dist.scatter(t.new_empty(ELEMENTS // n), parts(t, n) if group.rank == 1 else None, src=1),
            [0, (n - 1) / n * SIZE, 0],
        ),
        "all_to_all": (
            lambda group, t: dist.all_to_all_single(torch.empty(ELEMENTS), t),
            [(n - 1) / n * SIZE] * n,
        ),
        "send": (
            lambda group, t: dist.send(t, 2) if group.rank == 0 else dist.recv(t, 0) if group.rank == 2 else None,
            [SIZE, 0, 0],
        ),
        "barrier": (lambda group, t: dist.barrier(), [0] * n),
    }

    def body(group: Group) -> list[dict[str, dict[str, Sent]]]:
        mine = {}
        for collective, (work, _) in forms.items():
            before = group.wire.traffic.so_far()
            work(group, torch.full((ELEMENTS,), 1.0 + group.rank))
            mine[collective] = group.wire.traffic.since(before)
        everyone: list[dict[str, dict[str, Sent]]] = [{}] * n
        dist.all_gather_object(everyone, mine)
        return everyone

    found = run_ranks(n, body)
    for collective, (_, expected) in forms.items():
        for rank, size in enumerate(expected):
            calls = 0 if collective == "send" and rank else 1
            told = found[rank][collective]
            assert told == ({collective: (pytest.approx(size), calls)} if calls else {}), (collective, rank)


def test_an_all_to_all_of_unequal_parts_counts_those_of_others() -> None:
    def work(group: Group, t: Tensor) -> None:
        splits = [[3, 9], [6, 6]][group.rank]
        received = [[3, 6], [9, 6]][group.rank]
        dist.all_to_all_single(torch.empty(sum(received)), t, received, splits)

    assert [told["all_to_all"].bytes for told in sent(2, work)] == [9 * 4, 6 * 4]


def test_results_are_those_of_torch() -> None:
    def body(group: Group) -> tuple[float, list[float], list[float]]:
        assert isinstance(dist.group.WORLD, MeteredGroup)
        total = torch.tensor(1.0 + group.rank)
        dist.all_reduce(total)
        gathered = empty(3, 1)
        dist.all_gather(gathered, torch.tensor([10.0 * group.rank]))
        mine = torch.empty(1)
        dist.reduce_scatter(mine, parts(torch.arange(3.0), 3))
        shared = empty(3, 1)
        dist.all_gather(shared, mine)
        return float(total), torch.cat(gathered).tolist(), torch.cat(shared).tolist()

    assert run_ranks(3, body) == (6.0, [0.0, 10.0, 20.0], [0.0, 3.0, 6.0])


def test_groups_within_the_group_are_counted_by_their_own_size() -> None:
    def work(group: Group, t: Tensor) -> None:
        pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        dist.all_reduce(t, group=pairs[group.rank // 2])

    assert [told["all_reduce"].bytes for told in sent(4, work)] == [SIZE] * 4  # 2 (2 - 1) / 2


def test_what_ddp_sends_by_itself_is_counted() -> None:
    model = nn.Linear(10, 10, bias=False)

    def work(group: Group, t: Tensor) -> None:
        placed = DistributedDataParallel(model)
        before = group.wire.traffic.so_far()
        placed(torch.ones(2, 10)).sum().backward()
        assert group.wire.traffic.since(before) == {"all_reduce": (400.0, 1)}  # 2 (2 - 1) / 2 of 100 float32

    assert sent(2, work)[0]["broadcast"].bytes > 400.0  # the weights, once, when it is placed


def test_fsdp_gathers_twice_and_scatters_once() -> None:
    def work(group: Group, t: Tensor) -> None:
        mesh = dist.init_device_mesh("cpu", (2,))
        model = nn.Sequential(nn.Linear(10, 10, bias=False))
        fully_shard(model[0], mesh=mesh, reshard_after_forward=True)
        fully_shard(model, mesh=mesh)
        before = group.wire.traffic.so_far()
        model(torch.ones(2, 10)).sum().backward()
        now = group.wire.traffic.since(before)
        assert now == {"all_gather": (400.0, 2), "reduce_scatter": (200.0, 1)}  # 3 (2 - 1) / 2 of 400 bytes
        before = group.wire.traffic.so_far()
        model[0].weight.full_tensor()
        assert group.wire.traffic.since(before) == {"all_gather": (200.0, 1)}  # a functional collective

    sent(2, work)


def test_every_way_to_communicate_that_torch_has_is_counted_or_known_to_receive() -> None:
    """A collective that a new version of torch brings must be given a closed form, or it would cost nothing."""
    silent = {"split_group", "merge_remote_group", "monitored_barrier", "rank", "size", "name", "abort", "shutdown"}
    silent |= {"boxed", "unbox", "bound_device_id", "get_group_store", "group_desc", "group_name", "set_timeout"}
    silent |= {"use_pg_for_symm_mem_rendezvous", "BackendType"}
    public = {name for name in dir(dist.ProcessGroup) if not name.startswith("_") and not name.isupper()}
    assert public - silent <= set(metered.MEASURES) | set(metered.RECEIVING)


def test_traffic_adds_up_from_several_threads() -> None:
    counted = Traffic()

    def talk() -> None:
        for _ in range(1000):
            counted.count(traffic.send(0.5))

    threads = [threading.Thread(target=talk) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counted.so_far() == {"send": (2000.0, 4000)}
    assert counted.sent_bytes() == counted.sent_bytes("send") == 2000.0
    assert counted.sent_bytes("all_reduce") == 0.0


# --- an emulated network ------------------------------------------------------------------------------------------


def test_a_message_takes_its_latency_in_each_round_and_its_bytes_at_the_bandwidth() -> None:
    link = Link(latency=0.5, bandwidth=100.0)
    assert link.seconds(Message("all_reduce", sent=40.0, rounds=3)) == 3 * 0.5 + 0.4
    assert Link(0.0, math.inf).seconds(traffic.all_reduce(1e9, 8)) == 0.0
    # a ring of 4: 2 x 3 rounds, in each a quarter
    assert link.seconds(traffic.all_reduce(100.0, 4)) == pytest.approx(6 * (0.5 + 25 / 100))


def slow(link: Link, work: Callable[[Group, Tensor], object], ranks: int = 2) -> list[object]:
    """Seconds of emulated transit on each rank, and what `work` returned there."""

    def body(group: Group) -> list[object]:
        with group.wire.emulating(link):
            result = work(group, torch.full((ELEMENTS,), 1.0 + group.rank))
        everyone: list[object] = [None] * group.size
        dist.all_gather_object(everyone, (group.wire.seconds, result))
        return everyone

    return run_ranks(ranks, body)


def test_what_is_sent_takes_its_time_and_arrives_as_it_is() -> None:
    link = Link(latency=1e-4, bandwidth=48e3)

    def work(group: Group, t: Tensor) -> list[float]:
        dist.all_reduce(t)  # 2 rounds, 48 bytes: 1.2 ms
        if group.rank == 0:
            dist.send(t, 1)  # 1 round, 48 bytes: 1.1 ms
        else:
            dist.recv(t, 0)
        return t[:1].tolist()

    assert slow(link, work) == [(pytest.approx(2.3e-3), [3.0]), (pytest.approx(1.2e-3), [3.0])]


def test_a_message_leaves_only_when_its_time_is_over() -> None:
    def work(group: Group, t: Tensor) -> bool:
        waiting = dist.all_reduce(t, async_op=True)
        early = waiting.is_completed()
        waiting.wait()
        return early or not waiting.is_completed() or t[0] != 3.0

    assert [result for _, result in slow(Link(0.02, math.inf), work)] == [False, False]


def test_ddp_waits_for_what_is_under_way() -> None:
    model = nn.Linear(10, 10, bias=False)

    def work(group: Group, t: Tensor) -> float:
        placed = DistributedDataParallel(model)
        placed(torch.full((1, 10), 1.0 + group.rank)).sum().backward()
        return float(model.weight.grad[0, 0])

    assert [result for _, result in slow(Link(1e-3, 1e6), work)] == [1.5, 1.5]


def test_a_send_that_nobody_receives_yet_holds_up_nothing() -> None:
    def work(group: Group, t: Tensor) -> float:
        if group.rank == 0:
            sending = dist.isend(torch.tensor([7.0]), 1)
            dist.all_reduce(t)
            sending.wait()
            return 7.0
        dist.all_reduce(t)
        got = torch.empty(1)
        dist.recv(got, 0)
        return float(got)

    assert [result for _, result in slow(Link(1e-3, math.inf), work)] == [7.0, 7.0]


def test_the_line_ends_with_the_ranks() -> None:
    before = threading.active_count()
    slow(Link(1e-3, math.inf), lambda group, t: dist.all_reduce(t))
    assert threading.active_count() == before


@pytest.mark.parametrize("link", [None, Link(0.02, 1e6)])
def test_a_rank_that_dies_while_another_averages_ends_all_with_its_own_traceback(link: Link | None) -> None:
    model = nn.Linear(10, 10)

    def body(group: Group) -> None:
        placed = DistributedDataParallel(model)
        with group.wire.emulating(link):
            outputs = placed(torch.ones(1, 10))
            if group.rank == 1:
                raise ZeroDivisionError("found on the way")
            outputs.sum().backward()

    with pytest.raises(RankError, match="ZeroDivisionError: found on the way"):
        run_ranks(2, body)
