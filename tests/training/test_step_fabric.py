"""Steps and collectives with any algorithm on any topology, behind endpoints."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import tutti
from tutti.base.errors import ConfigError
from tutti.base.units import Size, Time, TimePerByte
from tutti.schedules.errors import AlgorithmError
from tutti.training.collective import Alone
from tutti.training.endpoint import Ring, configurations
from tutti.training.fabric import Dimension
from tutti.training.files.step_file import load_training
from tutti.training.step import Step
from tutti.workloads import Parallelism, build
from tutti.workloads.errors import WorkloadError

if TYPE_CHECKING:
    from pathlib import Path

MODEL = tutti.PipeliningPostal(alpha_p="0 ns", alpha_r="1 ns")
CONFIGURATIONS = configurations()


def machine(notation: str, **given: Any) -> tutti.Platform:
    topology = tutti.Topology.build(notation, rate="25 GB/s", latency="400 ns")
    routes = topology.routes("shortest_path")
    return tutti.Platform(name="t", model=MODEL, routes=routes, **given)


def collective(where: tutti.Platform, algorithm: str, size: str = "64 KiB") -> Alone:
    ranks = where.routes.topology.ranks  # type: ignore[union-attr]
    rings = (Dimension("all", ranks),)
    algorithms = {"all_reduce": algorithm}
    return Alone(size=Size.parse(size), rings=rings, platform=where, algorithms=algorithms)


def rings(*nodes: int) -> tuple[Ring, ...]:
    rate, latency = TimePerByte.parse("25 GB/s"), Time.parse("400 ns")
    return tuple(Ring(f"ring{at}", count, rate, latency) for at, count in enumerate(nodes))


@pytest.mark.parametrize("notation", ["torus:4x4", "fat_tree:k=4,n=2", "bypass:4x4:mesh,0=>3"])
@pytest.mark.parametrize(
    "algorithm", ["ring", "swing", "recursive_halving_doubling", "double_binary_tree", "multi_tree"]
)
def test_no_endpoint_beats_the_lower_bound(notation: str, algorithm: str) -> None:
    for name in ("no_overlap", "comp_opt", "ace", "ideal"):
        alone = collective(machine(notation), algorithm)
        run = alone.run(CONFIGURATIONS[name])
        assert run.limit.time <= run.time
        assert run.record.npus == 16


@pytest.mark.parametrize("algorithm", ["ring", "swing", "recursive_doubling", "binomial"])
def test_sent_bytes_are_those_of_the_schedule(algorithm: str) -> None:
    """Bytes are conserved: what the NPUs put on their links is what the schedule sends."""
    run = collective(machine("switch:8"), algorithm).run(CONFIGURATIONS["ideal"])
    schedule = tutti.schedule(algorithm, ranks=8)
    sent = tutti.simulate(schedule, machine("switch:8"), size="64 KiB").message_bytes
    assert sum(used.bytes for npu in range(8) for used in run.record.links(npu)) == sent


def test_a_ring_of_links_and_a_ring_of_flows_agree() -> None:
    """One packet per message on each link at a time: flows take the time of FIFO links."""
    size, chunk = Size.parse("8 KiB"), Size.parse("1 MiB")
    exact = Alone(rings=rings(8), size=size, chunk=chunk)
    flows = Alone(rings=(Dimension("all", 8),), platform=machine("ring:8"), size=size, chunk=chunk)
    configuration = CONFIGURATIONS["no_overlap"]
    assert flows.run(configuration).time == exact.run(configuration).time


def test_packets_and_flows_agree_on_a_ring() -> None:
    times = [
        replace(collective(where, "ring", "1 MiB"), message=Size.parse("64 KiB"))
        .run(CONFIGURATIONS["no_overlap"])
        .time.ps
        for where in (machine("torus:4x4"), machine("torus:4x4", contention=tutti.Packets()))
    ]
    assert times[1] == pytest.approx(times[0], rel=0.05)


def test_every_npu_gives_the_time_of_the_representative() -> None:
    """A schedule that does not state its symmetry simulates all NPUs, the default ring one."""
    alone = Alone(size=Size.parse("100 KB"), rings=rings(6))
    named = replace(alone, algorithms={"all_reduce": ("ring", "ring:backward")})
    assert named.run(CONFIGURATIONS["ace"]).record.npus == 1
    texts = [tutti.schedule(name, ranks=6).to_text() for name in ("ring", "ring:backward")]
    plain = tuple(tutti.Schedule.from_text(text) for text in texts)
    chosen = replace(alone, algorithms={"all_reduce": plain})
    for configuration in CONFIGURATIONS.values():
        one, all_ = alone.run(configuration), chosen.run(configuration)
        assert (one.time, one.record.npus, all_.record.npus) == (all_.time, 1, 6)


def test_auto_is_no_slower_than_any_algorithm() -> None:
    where, ace = machine("torus:4x4"), CONFIGURATIONS["ace"]
    best = collective(where, "auto").run(ace).time
    for algorithm in ("ring", "swing", "multi_tree", "recursive_halving_doubling"):
        assert best <= collective(where, algorithm).run(ace).time


@pytest.mark.parametrize("algorithm", ["ring", "swing", "double_binary_tree"])
def test_less_memory_bandwidth_is_never_faster(algorithm: str) -> None:
    alone, ace = collective(machine("torus:4x4"), algorithm), CONFIGURATIONS["ace"]
    rates = [TimePerByte.parse(f"{rate} GB/s") for rate in (512, 128, 32, 8)]
    times = [alone.run(replace(ace, memory=rate)).time.ps for rate in rates]
    assert times == sorted(times)


def test_steps_run_on_a_platform_with_groups() -> None:
    step = Step(
        model=build("transformer:64"),
        batch=8,
        rings=(Dimension("inner", 4), Dimension("outer", 4)),
        platform=machine("fat_tree:k=4,n=2"),
        parallelism=Parallelism(tensor=4),
        algorithms={"all_reduce": "swing"},
        iterations=1,
        chunk=Size.parse("1 MiB"),
        message=Size.parse("256 KiB"),
    )
    run = step.run(CONFIGURATIONS["comm_opt"])
    rings_ = replace(step, algorithms={}).run(CONFIGURATIONS["comm_opt"])
    assert run.record.npus == 16
    assert run.compute == rings_.compute
    assert run.total != rings_.total
    parts = run.record.breakdown()
    times = (parts.compute_ps, parts.overlap_ps, parts.exposed_ps, parts.idle_ps)
    assert sum(times) == run.total.ps


def test_errors_name_group_network_and_collective() -> None:
    ace, where = CONFIGURATIONS["ace"], machine("switch:6")
    with pytest.raises(AlgorithmError, match="does not fit recursive_halving_doubling"):
        collective(where, "recursive_halving_doubling:x").run(ace)
    with pytest.raises(WorkloadError, match="NPUs: expected 6, as in switch:6"):
        Alone(size=Size.parse("1 KiB"), rings=(Dimension("all", 4),), platform=where).run(ace)
    with pytest.raises(WorkloadError, match="the step has no all_gather"):
        Alone(size=Size.parse("1 KiB"), rings=rings(4), algorithms={"all_gather": "ring"}).run(ace)
    with pytest.raises(WorkloadError, match="neither flows nor packets"):
        collective(machine("switch:6", contention=tutti.platforms.Free()), "ring").run(ace)


@pytest.mark.parametrize(
    "algorithm", ["swing", "recursive_halving_doubling", "double_binary_tree", "ring", "bruck"]
)
def test_any_schedule_runs_behind_endpoints_on_a_torus(algorithm: str) -> None:
    """NPUs relay what is not for a neighbour: each packet crosses the links of its route."""
    size = Size.parse("64 KiB")
    collective = "all_gather" if algorithm == "bruck" else "all_reduce"
    schedule = tutti.schedule(algorithm, ranks=16, collective=collective)
    for name, configuration in CONFIGURATIONS.items():
        alone = Alone(
            size=size, rings=rings(4, 4), collective=collective, algorithms={collective: schedule}
        )
        run = alone.run(configuration)
        assert run.limit.time <= run.time, name
        sent = sum(used.bytes for npu in range(run.record.npus) for used in run.record.links(npu))
        assert sent >= tutti.simulate(schedule, machine("torus:4x4"), size=size).message_bytes


TRAINING = """
model = "vgg16"
batch = 4
iterations = 1
{network}
configurations = ["ace", "ideal"]
"""


def test_files_choose_platform_and_algorithms(tmp_path: Path) -> None:
    file = tmp_path / "training.toml"
    network = """
platform = "dgx_h100_cluster"
dimensions = [{ name = "gpu", nodes = 8 }, { name = "node", nodes = 32 }]
algorithms = { all_reduce = ["ring", "ring:backward"] }
"""
    file.write_text(TRAINING.format(network=network))
    step = load_training(file).step
    assert step.platform is not None
    assert step.algorithms == {"all_reduce": ("ring", "ring:backward")}
    assert [one.nodes for one in step.rings] == [8, 32]


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ("", "has no network"),
        ('platform = "dgx_h100_cluster"', "dimensions: is missing"),
        (
            'platform = "dgx_h100_cluster"\n[torus]\nrings = []',
            "is empty",
        ),
    ],
)
def test_files_without_a_network_are_refused(tmp_path: Path, network: str, message: str) -> None:
    file = tmp_path / "training.toml"
    file.write_text('model = "vgg16"\n' + network)
    with pytest.raises(ConfigError, match=message):
        load_training(file)
