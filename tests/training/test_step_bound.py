"""The lower bound of a training step: no algorithm is faster, and it is monotonic."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tutti
from tutti.base.errors import TuttiError
from tutti.base.units import Size, Time, TimePerByte
from tutti.formats.chakra.reader import Attribute, ChakraTrace, Node
from tutti.schedules.ir import candidates
from tutti.training.endpoint import Ring, configurations
from tutti.training.fabric import Dimension
from tutti.training.step import Step
from tutti.workloads import Parallelism, build
from tutti.workloads.model import Model, linear

if TYPE_CHECKING:
    from collections.abc import Callable

CONFIGURATIONS = configurations()
MODEL = tutti.PipeliningPostal(alpha_p="0 ns", alpha_r="1 ns")
SHAPES = [(4,), (5,), (6,), (8,), (2, 2), (3, 2), (2, 4), (4, 4), (2, 2, 2)]
RATES = ["200 GB/s", "100 GB/s", "25 GB/s"]
LATENCIES = ["1 ns", "72 ns", "1 us"]


def layers(count: int, width: int) -> Model:
    made = tuple(linear(f"l{at}", width, width, first=at == 0) for at in range(count))
    return Model(name="small", source="made up", layers=made, samples="rows")


def on_torus(sizes: tuple[int, ...], rates: list[str], latencies: list[str]) -> dict[str, Any]:
    rings = zip(sizes, rates, latencies, strict=False)
    return {
        "rings": tuple(
            Ring(f"d{at}", nodes, TimePerByte.parse(rate), Time.parse(latency))
            for at, (nodes, rate, latency) in enumerate(rings)
        )
    }


def on_platform(
    sizes: tuple[int, ...], family: str, rate: str, latency: str, **more: Any
) -> dict[str, Any]:
    shape = "x".join(map(str, sizes))
    npus = int(tutti.Topology.build(f"torus:{shape}", rate=rate, latency=latency).ranks)
    notations = {"torus": f"torus:{shape}", "switch": f"switch:{npus}", "ring": f"ring:{npus}"}
    notation = notations.get(family, family)
    topology = tutti.Topology.build(notation, rate=rate, latency=latency)
    routes = topology.routes("shortest_path")
    return {
        "platform": tutti.Platform(name="t", model=MODEL, routes=routes, **more),
        "rings": tuple(Dimension(f"d{at}", nodes) for at, nodes in enumerate(sizes)),
    }


@st.composite
def networks(draw: st.DrawFn) -> dict[str, Any]:
    sizes = draw(st.sampled_from(SHAPES))
    count = len(sizes)
    pick = st.lists(st.sampled_from(RATES), min_size=count, max_size=count)
    late = st.lists(st.sampled_from(LATENCIES), min_size=count, max_size=count)
    rates, latencies = draw(pick), draw(late)
    if draw(st.booleans()):
        return on_torus(sizes, rates, latencies)
    family = draw(st.sampled_from(["torus", "switch", "ring"]))
    more = draw(st.sampled_from([{}, {"contention": tutti.Packets()}]))
    return on_platform(sizes, family, rates[0], latencies[0], **more)


@st.composite
def parallelisms(draw: st.DrawFn, sizes: list[int]) -> Parallelism:
    zeros: list[Literal[0, 1, 3]] = [0, 1, 3]
    zero = draw(st.sampled_from(zeros))
    orders: list[Literal["1f1b", "gpipe"]] = ["1f1b", "gpipe"]
    order = draw(st.sampled_from(orders))
    if len(sizes) == 1:
        return Parallelism(zero=zero)
    return draw(
        st.sampled_from(
            [
                Parallelism(zero=zero),
                Parallelism(zero=zero, tensor=sizes[0]),
                Parallelism(pipeline=sizes[-1], micro_batches=sizes[-1], schedule=order),
            ]
        )
    )


@st.composite
def steps(draw: st.DrawFn) -> Step:
    network = draw(networks())
    is_small = draw(st.booleans())
    model = layers(draw(st.integers(1, 4)), 128) if is_small else build("transformer:32")
    division = draw(parallelisms([ring.nodes for ring in network["rings"]]))
    size = Size.parse("16 KiB" if is_small else "4 MiB")
    return Step(
        model=model,
        batch=draw(st.sampled_from([8, 48])),
        iterations=draw(st.integers(1, 3)),
        parallelism=Parallelism(zero=division.zero) if is_small else division,
        bucket=draw(st.sampled_from([None, Size.parse("64 KiB")])),
        chunk=size,
        message=size,
        **network,
    )


@settings(max_examples=60)
@given(step=steps(), name=st.sampled_from(["no_overlap", "comp_opt", "comm_opt"]), data=st.data())
def test_no_algorithm_beats_the_bound(step: Step, name: str, data: st.DataObject) -> None:
    configuration = CONFIGURATIONS[name]
    if step.model.name == "small":
        configuration = CONFIGURATIONS[data.draw(st.sampled_from([name, "ace", "ideal"]))]
    network = step.network
    routes = step.platform.routes if step.platform else None
    algorithms = {}
    for collective, mask in network.largest(step.programs(configuration)[0].transfers):
        found = candidates(collective, network.group_size(mask), routes=routes)
        algorithms[network.key(collective, mask)] = data.draw(st.sampled_from(found))
    try:
        run = replace(step, algorithms=algorithms).run(configuration)
    except TuttiError:
        assume(False)
    assert 0 < step.bound(configuration).time.ps <= run.total.ps
    assert run.bound == step.bound(configuration)


@pytest.mark.parametrize("name", list(CONFIGURATIONS))
@pytest.mark.parametrize("model", ["small", "dlrm_small"])
def test_the_default_does_not_beat_the_bound(model: str, name: str) -> None:
    made = layers(4, 512) if model == "small" else build(model)
    step = Step(model=made, batch=64, **on_torus((4, 2, 2), ["200 GB/s"] * 3, ["72 ns"] * 3))
    run = step.run(CONFIGURATIONS[name])
    assert run.bound.time.ps <= run.total.ps
    assert 0.2 < run.of_bound <= 1


def test_a_step_without_communication_takes_its_bound() -> None:
    """The gradients of the last layer take no time compared with its computation."""
    step = Step(
        model=layers(4, 1024),
        batch=100_000,
        iterations=3,
        **on_torus((4,), ["200 GB/s"], ["1 ns"]),
    )
    run = step.run(CONFIGURATIONS["ideal"])
    assert run.of_bound > 0.99
    assert run.bound.by == "critical path" or run.bound.by.startswith("links")


def test_a_large_collective_is_bounded_by_links_or_memory() -> None:
    step = Step(
        model=layers(1, 4096),
        batch=1,
        iterations=1,
        **on_torus((4, 4), ["25 GB/s"] * 2, ["100 ns"] * 2),
    )
    assert step.bound(CONFIGURATIONS["ideal"]).by == "links of d0 and d1"
    slow = replace(CONFIGURATIONS["comp_opt"], memory=TimePerByte.parse("1 GB/s"))
    assert step.bound(slow).by == "memory reads"


def grown(changes: Callable[[int], dict[str, Any]], name: str) -> list[int]:
    base = Step(
        model=build("transformer:64"),
        batch=8,
        parallelism=Parallelism(tensor=2, zero=1),
        **on_torus((2, 4), ["100 GB/s"] * 2, ["72 ns"] * 2),
    )
    steps_ = (replace(base, **changes(at)) for at in range(4))
    return [step.bound(CONFIGURATIONS[name]).time.ps for step in steps_]


@pytest.mark.parametrize("name", list(CONFIGURATIONS))
@pytest.mark.parametrize("family", ["rings", "switch", "torus"])
def test_worse_networks_never_lower_the_bound(family: str, name: str) -> None:
    def network(rate: str, latency: str) -> dict[str, Any]:
        if family == "rings":
            return on_torus((2, 4), [rate] * 2, [latency] * 2)
        return on_platform((2, 4), family, rate, latency)

    rates, latencies = ["200 GB/s", "100 GB/s", "25 GB/s", "1 GB/s"], [*LATENCIES, "1 ms"]
    slower = grown(lambda at: network(rates[at], "72 ns"), name)
    later = grown(lambda at: network("100 GB/s", latencies[at]), name)
    assert slower == sorted(slower)
    assert later == sorted(later)
    assert slower[0] < slower[-1]
    assert later[0] < later[-1]


@pytest.mark.parametrize("name", list(CONFIGURATIONS))
def test_larger_sizes_never_lower_the_bound(name: str) -> None:
    bytes_ = grown(lambda at: {"element": 2 << at}, name)
    batches = grown(lambda at: {"batch": 8 << at}, name)
    assert bytes_ == sorted(bytes_)
    assert batches == sorted(batches)


def test_more_iterations_raise_the_bound() -> None:
    times = grown(lambda at: {"iterations": 1 + at}, "ace")
    assert times == sorted(times)
    assert len(set(times)) == 4


def test_buckets_are_bounded_like_their_layers() -> None:
    """Without overlap, gradients share one bucket, whatever its size."""
    ring = on_torus((4,), ["25 GB/s"], ["72 ns"])
    step = Step(model=layers(4, 256), batch=4, **ring)
    alone = step.bound(CONFIGURATIONS["no_overlap"])
    bucket = replace(step, bucket=Size.parse("1 MiB")).bound(CONFIGURATIONS["no_overlap"])
    assert alone == bucket


@pytest.mark.parametrize("differ", [False, True])
def test_traces_are_bounded(differ: bool) -> None:
    """A trace computes 3 us, and all-reduces 1 MB after the first of them."""
    ring = on_torus((4,), ["25 GB/s"], ["72 ns"])

    def trace(extra: int) -> ChakraTrace:
        number = {
            name: Attribute("int64", value)
            for name, value in (("comm_type", 0), ("comm_size", 1_000_000))
        }
        nodes = (
            Node(id=1, name="a", type="COMP", duration_us=1 + extra),
            Node(id=2, name="b", type="COMM_COLL", data_deps=(1,), attributes=number),
            Node(id=3, name="c", type="COMP", duration_us=2, data_deps=(1,)),
        )
        return ChakraTrace(nodes=nodes, source="made up")

    traces = tuple(trace(npu if differ else 0) for npu in range(4))
    step = Step(model=layers(1, 8), batch=1, traces=traces, **ring)
    run = step.run(CONFIGURATIONS["ideal"])
    # 6 messages of 250 kB on two links, from 1 us on; an NPU that computes longer may start late.
    assert run.bound.parts["links of d0"].ps == (30_000_000 if differ else 31_000_000)
    assert run.bound.time.ps <= run.total.ps
