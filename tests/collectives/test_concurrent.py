"""Channels that progress concurrently, as the thread blocks of a GPU library do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import tutti
from tutti.collectives.view.perfetto import write_trace
from tutti.collectives.view.timeline import picture
from tutti.schedules.errors import ScheduleError

if TYPE_CHECKING:
    from pathlib import Path

RINGS = tutti.schedule("ring:node=4,channels=4", collective="all_gather", ranks=8)
"""Each ring has 6 links within two nodes and 2 between them; a shard crosses 7 of the 8."""


def machine() -> tutti.Platform:
    """Returns two nodes of 4 NPUs on which only latencies matter: 1 us and 20 us per link."""
    near, far = ({"rate": "10000 GB/s", "latency": latency} for latency in ("1 us", "20 us"))
    topology = tutti.Topology.build("rail_optimized:npus=4,hosts=2", links=[near, far, far])
    model = tutti.PipeliningPostal(alpha_p="0 ns", alpha_r="1 ps")
    return tutti.Platform(name="t", model=model, routes=topology.routes("shortest_path"))


def test_a_channel_does_not_wait_for_another_channel_between_nodes() -> None:
    where, concurrent = machine(), RINGS.concurrent(4)
    assert where.routes is not None
    near, far = (where.routes.pair(0, to).latency.ps for to in (1, 4))
    steps = tutti.simulate(RINGS, where, size="4 KiB").completion_ps
    channels = tutti.simulate(concurrent, where, size="4 KiB").completion_ps
    assert steps == pytest.approx(7 * far, rel=0.001)
    assert channels == pytest.approx(5 * near + 2 * far, rel=0.001)
    one = tutti.schedule("ring", collective="all_gather", ranks=8)
    alone = tutti.simulate(one, where, size="4 KiB").completion_ps
    assert tutti.simulate(one.concurrent(1), where, size="4 KiB").completion_ps == alone
    assert concurrent.verify().messages == RINGS.verify().messages


def test_the_record_has_the_channels(tmp_path: Path) -> None:
    where, concurrent = machine(), RINGS.concurrent(4)
    run = tutti.simulate(concurrent, where, size="4 KiB", record=True)
    assert run.completion_ps == tutti.simulate(concurrent, where, size="4 KiB").completion_ps
    timeline = run.timeline.sort("rank", "channel", "start_ps")
    assert sorted(timeline["channel"].unique()) == [0, 1, 2, 3]
    before = pl.col("end_ps").shift(1).over("rank", "channel").fill_null(0)
    assert timeline.filter(pl.col("start_ps") < before).is_empty()
    last = timeline.group_by("rank").agg(pl.max("end_ps")).sort("rank")
    assert last["end_ps"].to_list() == run.finish_ps
    assert sum(run.critical_path.shares_ps.values()) == run.completion_ps
    frame = run.messages_frame
    assert frame.select("source", "destination", "index").is_unique().all()
    assert frame.height == run.messages == 8 * 7 * 4
    assert "Channel 0 of 4 is drawn." in picture(timeline, frame).notes
    assert b"rank 7, channel 3" in write_trace(tmp_path / "t.pftrace", timeline, frame).read_bytes()


def test_noise_is_that_of_the_ranks() -> None:
    where, concurrent = machine(), RINGS.concurrent(4)
    late = [f"{1000 * (rank == 3)} us" for rank in range(8)]
    arrival = tutti.platforms.PerRank(times=late)
    conditions = tutti.Conditions(arrival=arrival, wait_for_sends=True)
    run = tutti.simulate(concurrent, where, size="4 KiB", conditions=conditions)
    assert run.completion_ps > 1_000_000_000
    assert run.frame["start_ps"].to_list() == [0, 0, 0, 1_000_000_000, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("notation", "channels", "problem"),
    [
        ("ring:node=4,channels=4", 3, "3 channels of 1 chunks do not divide the 32 chunks"),
        ("recursive_doubling", 8, "has an op that does not belong to one channel"),
    ],
)
def test_other_channels_are_refused(notation: str, channels: int, problem: str) -> None:
    schedule = tutti.schedule(notation, collective="all_gather", ranks=8)
    with pytest.raises(ScheduleError, match=problem):
        schedule.concurrent(channels)
