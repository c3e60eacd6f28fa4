"""All_to_all of NCCL on several nodes: messages change rails in the sender's node."""

from __future__ import annotations

import pytest

import tutti
from tutti.nccl.relayed import ops_of, relayed_all_to_all, relayed_scatter
from tutti.nccl.schedules import Layout, schedule_of
from tutti.platforms import platform

GIB = 1 << 30


@pytest.mark.parametrize(("width", "nodes", "pieces"), [(1, 2, 1), (2, 2, 2), (3, 4, 3), (8, 2, 4)])
def test_every_block_arrives_and_stays_on_its_rail(width: int, nodes: int, pieces: int) -> None:
    schedule = relayed_all_to_all(width, nodes, pieces)
    schedule.verify()
    ranks, sends = width * nodes, 0
    across = [0] * ranks
    for rank in range(ranks):
        for step in range(schedule.steps(rank)):
            for op in schedule.ops(rank, step):
                if op.kind != "send" or op.peer is None:
                    continue
                sends += 1
                if op.peer // width != rank // width:
                    assert op.peer % width == rank % width
                    across[rank] += 1
    assert across == [pieces * width * (nodes - 1)] * ranks
    assert 2 * sends == pieces * ops_of(width, nodes)


@pytest.mark.parametrize("name", ["dgx_h100_cluster", "dgx_a100_cluster", "dgx_b200_cluster"])
@pytest.mark.parametrize("size", [1 << 20, 1 << 26, GIB])
def test_all_to_all_on_several_nodes_takes_the_time_of_nccl(name: str, size: int) -> None:
    rows = tutti.compare(platform(name), collective="all_to_all", ranks=[16], sizes=[f"{size} B"],
                         algorithms=["nccl"])  # fmt: skip
    times = dict(rows.select("algorithm", "time_ps").iter_rows())
    assert times["nccl"] == pytest.approx(times["library"], rel=0.05 if size > 1 << 20 else 0.15)


@pytest.mark.parametrize(("width", "nodes", "pieces", "root"), [(2, 3, 2, 3), (8, 2, 1, 9)])
def test_a_scatter_uses_every_rail(width: int, nodes: int, pieces: int, root: int) -> None:
    schedule = relayed_scatter(width, nodes, pieces, root)
    schedule.verify()
    home, across = root // width, [0] * width
    for rank in range(home * width, (home + 1) * width):
        for step in range(schedule.steps(rank)):
            for op in schedule.ops(rank, step):
                if op.kind == "send" and op.peer is not None and op.peer // width != home:
                    assert op.peer % width == rank % width
                    across[rank % width] += 1
    assert across == [pieces * (nodes - 1)] * width


@pytest.mark.parametrize(("collective", "gb_per_s"), [("scatter", 384), ("gather", 96)])
def test_only_a_scatter_has_all_adapters(collective: str, gb_per_s: float) -> None:
    """The root sends 15 of 16 blocks at 360 GB/s, or has an adapter of 48 GB/s for eight."""
    where = platform("dgx_h100_cluster")
    rows = tutti.compare(where, collective=collective, ranks=[16], sizes=["1 GiB"], root=3,
                         algorithms=["nccl"])  # fmt: skip
    times = dict(rows.select("algorithm", "time_ps").iter_rows())
    assert times["library"] * 1e-12 == pytest.approx(GIB / gb_per_s / 1e9, rel=0.01)
    assert times["nccl"] == pytest.approx(times["library"], rel=0.05)
    assert all(limit <= 1 for limit in rows["of_limit"])


def test_short_messages_and_gathers_are_sent_at_once() -> None:
    layout = Layout(width=8, nodes=2)
    for collective, protocol in (("all_to_all", "LL"), ("gather", "Simple"), ("scatter", "LL")):
        made = schedule_of("P2P", protocol, collective, layout, size=1 << 20, channels=8)
        assert made == "direct"
