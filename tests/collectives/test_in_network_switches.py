"""Switches that multicast and reduce, level by level: flows, packets, bounds and training steps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import tutti
from tutti.base.errors import SimulationError
from tutti.platforms import platform
from tutti.platforms.files.builder import machine
from tutti.platforms.files.presets import find_platform
from tutti.topologies.errors import TopologyError
from tutti.training.endpoint import configurations
from tutti.training.fabric import Dimension
from tutti.training.step import Step
from tutti.workloads.model import Model, linear

if TYPE_CHECKING:
    from pathlib import Path

IDEAL = configurations()["ideal"]
ENDS = tutti.PipeliningPostal(alpha_p="0 ns", alpha_r="1 ns")
NVSWITCH = ("host*.switch",)
ALL = (*NVSWITCH, "pod*.leaf*", "spine*")
NVLS_TREE = "hierarchical:4x4:in_network/ring/in_network"
SHARP = "hierarchical:4x4:in_network/in_network/in_network"


def pod(**given: Any) -> tutti.Platform:
    """Four hosts of four GPUs, with a rail per GPU."""
    links = [
        {"rate": "400 GB/s", "latency": "50 ns"},
        {"rate": "50 GB/s", "latency": "1 us"},
        {"rate": "50 GB/s", "latency": "1 us"},
    ]
    rails = tutti.Topology.build("rail_optimized:npus=4,hosts=4,spines=1", links=links)
    return tutti.Platform(name="pod", model=ENDS, routes=rails.routes("ecmp"), **given)


def flow(switches: bool | tuple[str, ...]) -> tutti.FlowLevel:
    return tutti.FlowLevel(multicast=switches, reduce=switches)


def simulated(notation: str, where: tutti.Platform, size: str = "64 MB") -> tutti.Run:
    assert where.routes is not None
    schedule = tutti.schedule(notation, ranks=where.routes.topology.ranks)
    run = tutti.simulate(schedule, where, size=size)
    assert run.bound.at_least_ps <= run.completion_ps
    return run


def sent_to(run: tutti.Run, vertex: str) -> int:
    """Returns the bytes of the busiest link to a vertex."""
    return int(max(run.links.filter(target=vertex)["bytes"].to_list()))


def test_nvls_inside_hosts_and_a_ring_between_them() -> None:
    """A GPU reduces and multicasts a quarter of 64 MB, which it reduces along its rail."""
    plain, nvls = (simulated(NVLS_TREE, pod(contention=flow(one))) for one in (False, NVSWITCH))
    # 2 x 3/4 of the payload without multicast and reduction; with them, three quarters up as
    # contributions and one quarter as the multicast.
    assert sent_to(plain, "host0.switch") == 96_000_000
    assert sent_to(nvls, "host0.switch") == 64_000_000
    assert sent_to(nvls, "pod0.leaf0") == sent_to(plain, "pod0.leaf0") == 24_000_000
    assert nvls.completion_ps < plain.completion_ps
    # NVSwitches do not lower the bound between hosts: 2 x 3 times 64 MB over 16 rails.
    assert nvls.bound.links_ps == 480_000_000


def test_leaf_switches_reduce_between_hosts() -> None:
    """The root of a rail multicasts its 16 MB once, instead of to 3 others."""
    nvls, sharp = (simulated(SHARP, pod(contention=flow(one))) for one in (NVSWITCH, ALL))
    assert sent_to(nvls, "pod0.leaf0") == 48_000_000
    assert sent_to(sharp, "pod0.leaf0") == 16_000_000
    assert sharp.completion_ps < nvls.completion_ps
    # Switches that reduce lower the bound between hosts: 64 MB over 4 rails.
    assert sharp.bound.links_ps == 320_000_000


@pytest.mark.parametrize("switches", [NVSWITCH, ALL])
@pytest.mark.parametrize("notation", [NVLS_TREE, SHARP])
def test_packets_agree_with_flows(notation: str, switches: tuple[str, ...]) -> None:
    packets = tutti.Packets(size="4 KiB", buffer="1 MiB", multicast=switches, reduce=switches)
    by_packets = simulated(notation, pod(contention=packets), "4 MB")
    by_flows = simulated(notation, pod(contention=flow(switches)), "4 MB")
    assert by_packets.completion_ps == pytest.approx(by_flows.completion_ps, rel=0.06)


def test_unknown_switches_are_refused_with_the_levels() -> None:
    where = pod(contention=flow(("leaf*",)))
    with pytest.raises(
        TopologyError, match=r"no switch `leaf\*`.*host\*\.switch, pod\*\.leaf\*, spi"
    ):
        simulated("in_network", where)


def test_dgx_h100_has_nvls(tmp_path: Path) -> None:
    """The bound of 8 GPUs is the payload once in each direction, and NVLS is faster than a ring."""
    node = platform("dgx_h100")
    assert node.is_in_network
    times = [simulated(one, node, "1 GiB") for one in ("ring", "in_network:all,segments=8")]
    assert times[1].completion_ps < times[0].completion_ps
    # Without it, two times 7/8 of the payload.
    found = find_platform("dgx_h100", folder=tmp_path)
    assert found.topology is not None
    bare = found.topology.model_copy(update={"multicast": False, "reduce": False})
    without = machine(found.model_copy(update={"topology": bare}), "nccl", source="t")
    ratio = simulated("ring", without, "1 GiB").bound.links_ps / times[0].bound.links_ps
    assert ratio == pytest.approx(7 / 4, rel=0.01)


def one_layer(where: tutti.Platform, algorithm: str, **given: Any) -> Step:
    assert where.routes is not None
    layers = (linear("l", 4096, 4096, first=True),)
    model = Model(name="one", source="made up", layers=layers, samples="rows")
    return Step(
        model=model,
        batch=8,
        platform=where,
        rings=(Dimension("data", where.routes.topology.ranks),),
        algorithms={"all_reduce": algorithm},
        iterations=1,
        **{"detail": "flows", **given},
    )


@pytest.mark.parametrize("detail", ["flows", "isolated"])
def test_a_step_reduces_its_gradients_in_the_switch(detail: str) -> None:
    node = platform("dgx_h100")
    ring, nvls = (
        one_layer(node, one, detail=detail).run(IDEAL)
        for one in ("ring", "in_network:all,segments=4")
    )
    assert nvls.bound.time <= nvls.total < ring.total


def test_a_step_sends_single_messages_where_no_switch_multicasts() -> None:
    plain, nvls = (
        one_layer(pod(contention=flow(one)), "in_network").run(IDEAL) for one in (False, ALL)
    )
    assert nvls.total < plain.total


def test_endpoints_refuse_marks_that_switches_would_use() -> None:
    step = one_layer(platform("dgx_h100"), "in_network:all", detail="packets")
    with pytest.raises(SimulationError, match='expected `detail = "flows"`'):
        step.run(IDEAL)
    assert replace(step, algorithms={"all_reduce": "ring"}).run(IDEAL).total.ps > 0
