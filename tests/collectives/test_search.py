"""The search: rankings, proofs, thresholds and errors."""

from __future__ import annotations

import itertools

import polars as pl
import pytest

import tutti
from tutti import LogGP, PipeliningPostal, Platform, Topology
from tutti.base.errors import ConfigError, SimulationError
from tutti.collectives.frames import FOUND, THRESHOLDS
from tutti.collectives.schedule_search import KINDS, MULTIPLYING_KINDS
from tutti.platforms.contention import Packets
from tutti.schedules.errors import AlgorithmError, LayoutError
from tutti.topologies.errors import TopologyError

FLAT = Platform(
    name="flat", model=PipeliningPostal(alpha_p="400 ns", alpha_r="100 ns", beta="0.4 ns/B")
)


def hosts(count: int, size: int) -> Platform:
    """Hosts behind a switch, with fast links inside."""
    links = [{"rate": "400 GB/s", "latency": "150 ns"}, {"rate": "50 GB/s", "latency": "1 us"}]
    topology = Topology.build(f"hierarchical:switch:{size}/switch:{count}", links=links)
    model = PipeliningPostal(alpha_p="500 ns", alpha_r="500 ns", beta="0.1 ns/B")
    return Platform(name="hosts", model=model, routes=topology.routes())


def simulated(platform: Platform, notation: str, ranks: int, size: str) -> int:
    laid_out = tutti.schedule(notation, ranks=ranks)
    return tutti.simulate(laid_out, platform, size=size).completion_ps


def test_every_time_is_that_of_the_engine() -> None:
    for ranks in (2, 5, 13, 24):
        found = tutti.search(FLAT, ranks=ranks, size="1 KiB", exhaustive=True)
        for row in found.frame.iter_rows(named=True):
            assert row["time_ps"] == simulated(FLAT, row["schedule"], ranks, "1 KiB"), row


def test_ranking_is_sorted_and_has_the_best_of_each_kind() -> None:
    found = tutti.search(FLAT, ranks=48, size="8 B", top=4)
    assert dict(found.frame.schema) == FOUND
    assert found.frame["time_ps"].is_sorted()
    assert found.frame["place"].to_list() == list(range(1, found.frame.height + 1))
    assert set(found.frame["kind"]) == set(KINDS)
    assert found.frame["above_best"][0] == 0.0
    assert found.proved
    assert found.bound_ps == found.time_ps == found.frame["time_ps"][0]
    # Derivation: three stages a4,a4,a3 take 3 x 400 + 8 x 103.2 ns; eight messages are the fewest.
    assert found.time_ps == 3 * 400_000 + 8 * 103_200
    assert "verified optimal" in repr(found)


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_can_be_chosen(kind: str) -> None:
    found = tutti.search(FLAT, ranks=30, size="8 B", kinds=[kind])
    every = tutti.search(FLAT, ranks=30, size="8 B", kinds=[kind], exhaustive=True)
    assert set(found.frame["kind"]) == {kind}
    assert found.time_ps == every.time_ps
    assert every.exhaustive
    assert every.proved


def test_a_million_ranks_have_a_best_schedule() -> None:
    for ranks in (999_983, 1 << 20, 720_720):
        found = tutti.search(FLAT, ranks=ranks, size="8 B", top=1, verify=False)
        assert found.schedule.ranks == ranks
        assert found.gap < 0.02
        assert found.bound_ps <= found.time_ps


def test_the_order_of_stages_counts_on_a_topology() -> None:
    platform = hosts(8, 8)
    found = tutti.search(platform, ranks=64, size="8 B", kinds=["factored"])
    times = {
        order: simulated(platform, "recursive_multiplying:" + ",".join(order), 64, "8 B")
        for order in itertools.permutations(("a2", "a4", "a8"))
    }
    assert found.time_ps == min(times.values())
    assert max(times.values()) > 1.15 * min(times.values())
    assert found.frame["method"].unique().to_list() == ["simulation"]
    unaware = tutti.search(FLAT, ranks=64, size="8 B").schedule.name
    assert simulated(platform, unaware, 64, "8 B") > 1.05 * found.time_ps


def test_on_a_small_topology_everything_is_run() -> None:
    platform = hosts(3, 4)
    received: list[tuple[int, int]] = []
    found = tutti.search(
        platform,
        ranks=11,
        size="4 KiB",
        kinds=MULTIPLYING_KINDS,
        done=lambda *moved: received.append(moved),
    )
    every = tutti.search(platform, ranks=11, size="4 KiB", kinds=MULTIPLYING_KINDS, exhaustive=True)
    assert found.proved
    assert found.time_ps == every.time_ps
    assert received[-1] == (every.scored, every.scored)
    assert not every.frame["time_ps"].is_duplicated().all()


def test_on_a_large_topology_candidates_are_run() -> None:
    platform = hosts(32, 16)
    kinds = MULTIPLYING_KINDS
    found = tutti.search(platform, ranks=512, size="8 B", kinds=kinds, top=3)
    assert not found.exhaustive
    assert found.bound_ps <= found.time_ps
    assert found.time_ps == simulated(platform, found.schedule.name, 512, "8 B")
    equidistant = FLAT.model_copy(update={"model": platform.model})
    unaware = tutti.search(equidistant, ranks=512, size="8 B", kinds=kinds)
    assert found.time_ps < simulated(platform, unaware.schedule.name, 512, "8 B")


def test_stage_order_matters_most_with_queueing() -> None:
    local, far = {"rate": "50 GB/s", "latency": "100 ns"}, {"rate": "10 GB/s", "latency": "500 ns"}
    topology = Topology.build("dragonfly:p=2,a=4,h=2", links=[local, local, far])
    platform = Platform(
        name="fly",
        model=PipeliningPostal(alpha_p="1 us", alpha_r="250 ns", beta="0.02 ns/B"),
        routes=topology.routes("minimal"),
        contention=Packets(size="4 KiB"),
    )
    every = tutti.search(
        platform, ranks=32, size="64 KiB", kinds=["factored"], exhaustive=True
    ).frame
    same = every.filter(pl.col("schedule").str.count_matches("a2") == 3)["time_ps"]
    assert same.len() == 4  # a2,a2,a2 and a4 in all their orders
    assert max(same) > 1.5 * min(same)
    found = tutti.search(platform, ranks=32, size="64 KiB", kinds=["factored"], top=2)
    assert found.time_ps == every["time_ps"][0]
    assert found.time_ps == simulated(platform, found.schedule.name, 32, "64 KiB")


def test_results_do_not_depend_on_threads() -> None:
    platform = hosts(4, 6)
    frames = [tutti.search(platform, ranks=24, size="8 B", threads=n).frame for n in (1, 2)]
    assert frames[0].equals(frames[1])


def test_thresholds_are_contiguous_and_exact() -> None:
    kinds = MULTIPLYING_KINDS
    frame = tutti.thresholds(FLAT, ranks=24, start="8 B", end="16 KiB", kinds=kinds)
    assert dict(frame.schema) == THRESHOLDS
    assert frame["from_bytes"][0] == 8
    assert frame["to_bytes"][-1] == 16 << 10
    assert (frame["from_bytes"][1:] == frame["to_bytes"][:-1] + 4).all()
    assert frame.height > 1
    for row in frame.iter_rows(named=True):
        for size, time in (("from_bytes", "time_from_ps"), ("to_bytes", "time_to_ps")):
            text = f"{row[size]} B"
            assert row[time] == simulated(FLAT, row["schedule"], 24, text)
            found = tutti.search(FLAT, ranks=24, size=text, kinds=kinds, top=1)
            assert row[time] == found.time_ps
    first, second = frame["schedule"][:2]
    beyond = f"{frame['from_bytes'][1]} B"
    assert simulated(FLAT, first, 24, beyond) > simulated(FLAT, second, 24, beyond)


def test_thresholds_on_a_topology_are_powers_of_two() -> None:
    received: list[str] = []
    frame = tutti.thresholds(
        hosts(4, 4),
        ranks=16,
        start="8 B",
        end="100 KiB",
        kinds=MULTIPLYING_KINDS,
        done=lambda size: received.append(str(size)),
    )
    assert received[:3] == ["8 B", "16 B", "32 B"]
    assert frame["to_bytes"][-1] == 64 << 10
    assert frame["gap"].to_list() == [0] * frame.height, "all schedules are run"


def test_thresholds_state_the_gap_to_the_lower_bound() -> None:
    slow = hosts(32, 32)
    frame = tutti.thresholds(slow, ranks=1024, start="8 B", end="16 B", kinds=["factored"])
    gaps = [
        tutti.search(slow, ranks=1024, size=size, kinds=["factored"], top=1).gap
        for size in ("8 B", "16 B")
    ]
    assert max(frame["gap"]) == max(gaps)
    assert max(gaps) > 0


def test_a_comparison_of_everything_has_the_best_schedule() -> None:
    # Ports that outlast a stage: no ratio of alphas describes this machine.
    model = LogGP(L="100 ns", o="30 ns", g="400 ns", G="0.2 ns/B")
    platform = Platform(name="gaps", model=model)
    frame = tutti.compare(platform, collective="all_reduce", ranks=[13], sizes=["8 B", "4 KiB"])
    for size, times in frame.group_by("size_bytes"):
        best = tutti.search(platform, ranks=13, size=f"{size[0]} B").time_ps
        assert times["time_ps"].min() == best


def test_the_best_schedule_can_be_another_algorithm() -> None:
    found = tutti.search(FLAT, ranks=97, size="8 B", top=2)
    assert found.schedule.name == "dissemination:4"
    assert found.frame["family"].to_list()[:2] == ["dissemination", "recursive_multiplying"]
    alone = tutti.search(FLAT, ranks=97, size="8 B", kinds=MULTIPLYING_KINDS)
    assert found.time_ps == simulated(FLAT, "dissemination:4", 97, "8 B") < alone.time_ps
    assert found.proved
    assert found.bound_ps == found.time_ps
    by_size = tutti.thresholds(FLAT, ranks=97, start="8 B", end="16 B")
    assert by_size["schedule"].to_list() == ["dissemination:4"]


def test_invalid_searches_are_refused() -> None:
    with pytest.raises(AlgorithmError, match="at least 2 ranks"):
        tutti.search(FLAT, ranks=1, size="8 B")
    with pytest.raises(AlgorithmError, match="too many"):
        tutti.search(FLAT, ranks=1 << 25, size="8 B")
    with pytest.raises(AlgorithmError, match="unknown kind of schedule `merge`"):
        tutti.search(FLAT, ranks=8, size="8 B", kinds=["merge"])
    with pytest.raises(AlgorithmError, match="4 ranks have no merged schedule"):
        tutti.search(FLAT, ranks=4, size="8 B", kinds=["merged"])
    with pytest.raises(LayoutError, match="not a multiple of the datatype"):
        tutti.search(FLAT, ranks=8, size="12 B", datatype="float64")
    with pytest.raises(ConfigError, match="top = 0"):
        tutti.search(FLAT, ranks=8, size="8 B", top=0)
    with pytest.raises(ConfigError, match="too many schedules"):
        tutti.search(FLAT, ranks=1 << 20, size="8 B", exhaustive=True)
    with pytest.raises(ConfigError, match="ascending"):
        tutti.thresholds(FLAT, ranks=8, start="1 KiB", end="8 B")
    with pytest.raises(TopologyError, match="rank"):
        tutti.search(hosts(2, 2), ranks=5, size="8 B")


def test_times_out_of_range_are_refused() -> None:
    slow = PipeliningPostal(alpha_p="9000000 s", alpha_r="9000000 s")
    platform = Platform(name="slow", model=slow)
    with pytest.raises(SimulationError, match="range of time"):
        tutti.search(platform, ranks=64, size="8 B")
    ring = tutti.schedule("ring", ranks=4)
    with pytest.raises(SimulationError, match="latest completion time of a run"):
        tutti.simulate(ring, platform, size="8 B")
    with pytest.raises(SimulationError, match="latest completion time of a run"):
        tutti.compare(
            platform, collective="all_reduce", ranks=[4], sizes=["8 B"], algorithms=["ring"]
        )


def test_schedules_slower_than_the_range_of_time_are_left_out() -> None:
    """A stage takes 3 10^18 ps: two fit into 2^63 - 1 ps, and four fit into 2^64 - 1 ps alone."""
    model = PipeliningPostal(alpha_p="3000000 s", alpha_r="1 ps")
    slow = Platform(name="slow", model=model)
    found = tutti.search(slow, ranks=16, size="8 B", exhaustive=True).frame
    names = found["schedule"].to_list()
    assert found.filter(pl.col("time_ps") < 2**63).height == found.height
    assert "recursive_multiplying:a4,a4" in names
    assert "recursive_multiplying:a2,a2,a2,a2" not in names
