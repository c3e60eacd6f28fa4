"""Windows of few packets: low loads are stable, and undecided loads state how long to measure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from called import call
from tutti.networks import flit as noc
from tutti.networks import mesh as smart
from tutti.networks.flit import placement
from tutti.networks.mesh.placement import placed
from tutti.topologies import Topology

if TYPE_CHECKING:
    from pathlib import Path

TURNS = smart.SmartMesh(design="sfo_greedy_2d", columns=4, rows=4)
CAST = smart.Traffic(kind="broadcast", rate=0.004)
ROUTERS = noc.Network(topology=Topology.build("mesh:4x4", rate="16 GB/s", latency="1 ns"))
UNIFORM = noc.Traffic(rate=0.1)


@pytest.mark.parametrize("cycles", [100, 300, 1000])
def test_explore_and_sweep_find_one_saturation_in_short_windows(cycles: int) -> None:
    plan = smart.ReplicationPlan(warmup=1000, measure=cycles, drain=1000, seeds=2)
    explored = placed(TURNS, [CAST], plan)
    swept = smart.saturation(TURNS, CAST, plan)
    width = 0.05 * swept.most
    if not explored.too_short:
        assert explored.saturation == pytest.approx(swept.by_throughput, abs=width)
    bound = smart.ideal(TURNS, CAST)
    assert bound is not None
    # Long windows find 0.86 of the ideal load.
    assert explored.saturation > 0.6 * bound.load
    assert explored.saturation > 0.8 * bound.load or explored.too_short
    assert bool(explored.too_short) == bool(swept.too_short) or cycles > 100


def test_routers_in_short_windows() -> None:
    plan = noc.MeasurementPlan(warmup=500, measure=300, drain=1000, sample=0)
    found = placement.placed(ROUTERS, [UNIFORM], plan).saturation
    swept = noc.saturation(ROUTERS, UNIFORM, plan, tolerance=0.02)
    assert found.load == pytest.approx(swept.load, abs=0.06)
    assert found.load > 0.4


@pytest.mark.parametrize("cycles", [1, 3, 10, 30, 100, 300])
def test_low_loads_are_stable_or_empty_and_never_saturated(cycles: int) -> None:
    for share in (0.02, 0.06, 0.3):
        plan = smart.ReplicationPlan(warmup=500, measure=cycles, drain=1000, seeds=3)
        for kind in ("broadcast", "reduction", "unicast"):
            traffic = smart.Traffic(kind=kind, rate=0.001)
            bound = smart.ideal(TURNS, traffic)
            assert bound is not None
            load = share * bound.load
            run = smart.run(TURNS, smart.at_load(traffic, load), plan, threads=1)
            assert run.ending in {"stable", "empty", "undecided"}, (kind, share)
            assert (run.ending == "undecided") == bool(run.too_short) == bool(run.long_enough)
            few = cycles <= 30 or run.loads[0].messages < 10  # of all seeds
            assert run.ending != "undecided" or few, (kind, share, run.too_short)
        flits = noc.MeasurementPlan(warmup=500, measure=max(cycles, 20), drain=1000, sample=0)
        assert noc.run(ROUTERS, noc.Traffic(rate=share), flits).ending in {"stable", "empty"}


def test_a_window_that_is_long_enough_decides() -> None:
    traffic = smart.Traffic(kind="broadcast", rate=0.063)  # 0.945 of the ideal load
    plan = smart.ReplicationPlan(warmup=300, measure=40, drain=2000, seeds=2)
    run = smart.run(TURNS, traffic, plan, threads=1)
    assert run.ending == "undecided"
    assert run.long_enough is not None
    assert re.fullmatch(r"window too short to decide: \d+ messages of 2 seeds; measure at least "
                        rf"{run.long_enough:,} cycles", run.too_short)  # fmt: skip
    longer = smart.ReplicationPlan(warmup=300, measure=run.long_enough, drain=2000, seeds=2)
    assert smart.run(TURNS, traffic, longer, threads=1).ending == "saturated"


def test_the_commands_state_what_a_window_cannot_decide(tmp_path: Path) -> None:
    given = ["--mesh", "4x4", "--design", "sfo_greedy_2d", "--traffic", "broadcast",
             "--set", "measure.seeds=2", "--set", "measure.warmup=300"]  # fmt: skip
    short = ["--set", "measure.measure=40", "--no-report", "-o", "out"]
    done = call("noc", "run", *given, *short, "--rate", "0.063", cwd=tmp_path)
    assert done.returncode == 3, done.stdout + done.stderr
    text = " ".join((done.stdout + done.stderr).split())
    assert "state: undecided: window too short to decide" in text
    assert re.search(r"hint: add `--set measure.measure=\d+`", text)
    none = ["--set", "measure.measure=3", "--no-report", "-o", "out"]
    done = call("noc", "run", *given, *none, "--rate", "0.0001", cwd=tmp_path)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "state: empty: no message was created" in " ".join(done.stdout.split())
    assert "nan" not in done.stdout
