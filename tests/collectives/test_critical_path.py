"""The causes of time on the critical path of a run."""

from __future__ import annotations

import pytest

from tutti import schedule, simulate
from tutti.platforms import platform

CAUSES = ["latency", "bandwidth", "contention", "reduction", "endpoint", "other"]
PLATFORMS = ["cray_xc30", "loggp_cluster", "infiniband_hdr_fat_tree", "dgx_h100_cluster"]


@pytest.mark.parametrize("name", PLATFORMS)
@pytest.mark.parametrize("algorithm", ["ring", "direct", "binomial"])
@pytest.mark.parametrize("size", ["8 B", "1 MiB"])
def test_the_path_covers_the_completion_time(name: str, algorithm: str, size: str) -> None:
    run = simulate(schedule(algorithm, ranks=8), platform(name), size=size)
    found = run.critical_path
    assert list(found.shares_ps) == CAUSES
    assert sum(found.shares_ps.values()) == run.completion_ps
    assert all(share >= 0 for share in found.shares_ps.values())
    assert found.hops[0].start_ps == 0
    assert found.hops[-1].end_ps == run.completion_ps
    for before, after in zip(found.hops, found.hops[1:], strict=False):
        assert before.end_ps == after.start_ps


def test_causes_of_known_runs() -> None:
    # A ring of the postal model without sharing: each step takes one message, then a reduction.
    short = simulate(schedule("ring", ranks=8), platform("cray_xc30"), size="32 B").critical_path
    assert short.shares_ps["latency"] > 0.95 * sum(short.shares_ps.values())
    long = simulate(schedule("ring", ranks=8), platform("cray_xc30"), size="64 MiB").critical_path
    assert long.shares_ps["reduction"] > long.shares_ps["latency"]
    assert long.shares_ps["contention"] == 0


def test_messages_that_share_a_link_are_contention() -> None:
    # All hosts send to all others through one network adapter each.
    platform_ = platform("dgx_h100_cluster")
    found = simulate(schedule("direct", ranks=16), platform_, size="4 MiB").critical_path
    assert found.shares_ps["contention"] > found.shares_ps["bandwidth"] > 0


def test_launch_is_time_of_the_endpoint() -> None:
    run = simulate(schedule("ring", ranks=4), platform("dgx_h100_cluster"), size="8 B")
    launch = run.timeline.filter(kind="launch", rank=0)["end_ps"].sum()
    assert run.critical_path.shares_ps["endpoint"] >= launch > 0
