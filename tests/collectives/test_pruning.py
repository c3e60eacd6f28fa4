"""Schedules that are not simulated: they change neither the winner nor the runner-up."""

from __future__ import annotations

import polars as pl
import pytest

import tutti
from tutti.base.units import Size
from tutti.collectives import pruning
from tutti.collectives.candidates import ComparisonPlan, try_plan
from tutti.collectives.request import ComparisonRequest
from tutti.platforms import platform

NETWORKS = ("fat_tree:m=4x3,w=1x2,rate=10GB/s", "torus:3x4,rate=10GB/s")


def plan_of(network: str, size: str, *, prune: bool) -> ComparisonPlan:
    request = ComparisonRequest(
        platform=platform(network),
        collective="all_reduce",
        ranks=[12],
        sizes=[Size.of_any(size)],
        algorithms=None,
        prune=prune,
    )
    return try_plan(request).plan


def fastest(network: str, size: str, *, prune: bool) -> list[tuple[str, int]]:
    """Returns the algorithms by their best times."""
    frame = tutti.compare(
        platform(network), collective="all_reduce", ranks=[12], sizes=[size], prune=prune
    )
    best = frame.group_by("algorithm").agg(pl.col("time_ps").min()).sort("time_ps", "algorithm")
    return best.rows()


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("size", ["960 B", "960 KiB", "96 MiB"])
def test_the_two_fastest_do_not_depend_on_pruning(
    network: str, size: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = fastest(network, size, prune=False)
    monkeypatch.setattr(pruning, "_LARGE", 50)
    kept = fastest(network, size, prune=True)
    assert kept[:2] == every[:2]
    assert {name for name, _ in kept} <= {name for name, _ in every}


@pytest.mark.parametrize("network", NETWORKS)
def test_a_schedule_that_is_not_simulated_takes_longer_than_its_bound(
    network: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "_LARGE", 50)
    plan = plan_of(network, "960 KiB", prune=True)
    assert plan.pruned
    for one in plan.pruned:
        on = platform(network)
        schedule = tutti.schedule(one.schedule, ranks=12, topology=on.routes)
        took = tutti.simulate(schedule, on, size=Size(bytes=one.size_bytes)).completion_ps
        assert one.second_ps < one.bound_ps <= took, one
        assert all(point.case.name != one.schedule for point in plan.points)


def test_small_and_named_schedules_are_simulated() -> None:
    assert plan_of(NETWORKS[0], "960 KiB", prune=True).pruned == ()
    assert plan_of(NETWORKS[0], "960 KiB", prune=False).pruned == ()
