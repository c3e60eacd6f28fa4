"""Endpoints as graphs of servers, compared with the built-in models."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training_steps import rings, small
from tutti.base.errors import ConfigError, SimulationError
from tutti.base.units import Size, Time, TimePerByte
from tutti.training.collective import Alone
from tutti.training.endpoint import AceSettings, Configuration, Npu, configurations
from tutti.training.errors import EndpointError
from tutti.training.files.endpoint_text import endpoint_text
from tutti.training.files.step_file import load_training, resolve_training
from tutti.training.graph import EndpointGraph, GraphServer, Visit, Visits, graph_of

if TYPE_CHECKING:
    from tutti.training.results import TrainingResult

CONFIGURATIONS = configurations()
EXAMPLE = Path("examples/29_own_endpoint/training.toml")


def same(first: TrainingResult, second: TrainingResult) -> None:
    """Checks that two runs are equal to the picosecond, in all that they report."""
    assert first.total == second.total
    for part in ("breakdown", "servers", "links", "stalls", "iterations", "spans"):
        assert getattr(first.record, part)() == getattr(second.record, part)(), part


@pytest.mark.parametrize("name", list(CONFIGURATIONS))
@pytest.mark.parametrize("every", [False, True])
def test_built_in_endpoints_are_graphs(name: str, *, every: bool) -> None:
    step = small(every_npu=every)
    same(step.run(CONFIGURATIONS[name]), step.run(graph_of(CONFIGURATIONS[name], step.npu)))


def variants() -> st.SearchStrategy[Configuration]:
    memory = st.sampled_from(["32 GB/s", "128 GB/s", "450 GB/s"]).map(TimePerByte.parse)
    ace = st.builds(
        AceSettings,
        banks=st.integers(1, 8),
        alus=st.integers(1, 4),
        fsms=st.integers(4, 24),
        loads=st.integers(1, 4),
        port=st.integers(1, 32),
        handover=st.sampled_from(["ahead", "at_end"]),
        division=st.sampled_from(["by_time", "evenly"]),
        charge_writes=st.booleans(),
    )
    engine = st.builds(
        Configuration, name=st.just("e"), kind=st.just("ace"), memory=memory, ace=ace
    )
    kernels = st.builds(
        Configuration,
        name=st.just("e"),
        kind=st.just("baseline"),
        memory=memory,
        sms=st.integers(1, 8),
        fused=st.booleans(),
        charge_writes=st.booleans(),
    )
    return st.one_of(engine, kernels)


@settings(max_examples=25)
@given(configuration=variants(), collective=st.sampled_from(["all_reduce", "all_to_all"]))
def test_variants_of_built_in_endpoints_are_graphs(
    configuration: Configuration, collective: str
) -> None:
    size = Size.parse("300 KB")
    alone = Alone(size=size, rings=rings(4, 2, 2), collective=collective, efficiency=0.94)
    graph = graph_of(configuration, Npu())
    assert alone.run(graph).time == alone.run(configuration).time
    assert alone.run(graph).stalls == alone.run(configuration).stalls


def graph(*servers: GraphServer, **changes: object) -> Configuration:
    """A graph whose sends visit all servers, and whose receives visit none."""
    path = tuple(server.name for server in servers)
    names = ("send", "send_reduced", "reduce_send", "reduce_store_send", "store_send", "relay")
    visits = Visits(**dict.fromkeys(names, path), reduce_store=(), store=())
    given = EndpointGraph(servers=servers, visits=visits, **changes)  # type: ignore[arg-type]
    return Configuration(name="graph", kind="graph", graph=given)


def test_a_server_adds_its_service_and_its_latency() -> None:
    """A chunk of one packet per step on a ring of 4: 3 + 3 steps, each with a visit."""
    alone = Alone(size=Size.parse("1 KiB"), rings=rings(4, 1, 1))
    bare = alone.run(graph()).time.ps
    server = GraphServer(
        name="dma",
        rate=TimePerByte.parse("1 GB/s"),
        per_packet=Time.parse("5 ns"),
        latency=Time.parse("70 ns"),
    )
    # 256 B at 1 GB/s take 256 ns.
    assert alone.run(graph(server)).time.ps == bare + 6 * (256_000 + 5_000 + 70_000)


def test_units_serve_in_parallel() -> None:
    """Many packets wait for one unit, and four units serve them four times as fast."""
    alone = Alone(size=Size.parse("1 MiB"), rings=rings(4, 1, 1))
    slow = GraphServer(name="dma", per_packet=Time.parse("2 us"))
    one, four = (alone.run(graph(replace(slow, units=units))) for units in (1, 4))
    assert one.time.ps == pytest.approx(4 * four.time.ps, rel=0.02)
    assert one.limit.time <= one.time
    assert four.limit.time <= four.time


def test_a_graph_may_have_a_work_conserving_reservation() -> None:
    step = small()
    shared = replace(CONFIGURATIONS["ace"], reservation="work_conserving")
    same(step.run(shared), step.run(graph_of(shared, step.npu)))


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"memory": "nowhere"}, "memory names the server `nowhere`: expected one of dma"),
        ({"servers": (GraphServer(name="dma"),) * 2}, "two servers have the name `dma`"),
        ({"servers": ()}, "visits.send names the server `dma`: expected one of none"),
        ({"chunks": 3, "scratchpad": AceSettings()}, "have no effect"),
    ],
)
def test_invalid_graphs_are_refused(changed: dict[str, object], problem: str) -> None:
    given = graph(GraphServer(name="dma"))
    assert given.graph is not None
    wrong = replace(given, graph=replace(given.graph, **changed))  # type: ignore[arg-type]
    with pytest.raises(EndpointError, match=problem):
        small().run(wrong)


def test_memory_servers_have_the_reserved_rate_and_one_unit() -> None:
    given = graph(GraphServer(name="dma", rate=TimePerByte.parse("64 GB/s"), units=2), memory="dma")
    with pytest.raises(EndpointError, match="has 2 units"):
        small().run(given)
    with pytest.raises(EndpointError, match="reserves 32 GB/s, but its memory server"):
        small().run(replace(given, memory=TimePerByte.parse("32 GB/s")))
    with pytest.raises(EndpointError, match="the model graph, and no graph"):
        small().run(replace(given, graph=None))
    with pytest.raises(EndpointError, match="the model ace, and a graph"):
        small().run(replace(given, kind="ace"))


def test_npus_that_start_different_collectives_are_named() -> None:
    """The roots of a tree handle more; a small limit of chunks lets them fall behind."""
    graph = graph_of(CONFIGURATIONS["comm_opt"], Npu())
    assert graph.graph is not None
    narrow = replace(graph, graph=replace(graph.graph, chunks=1))
    step = small(algorithms={"all_reduce": "binomial"})
    with pytest.raises(SimulationError, match="NPU 4 of its group chunks of collective") as stuck:
        step.run(narrow)
    assert stuck.value.kind == "other_chunks"
    assert replace(step, order="fifo").run(narrow).total > step.run(graph).total


def test_files_describe_graphs() -> None:
    training = load_training(EXAMPLE)
    cores = training.configurations[1].graph
    assert cores is not None
    assert cores.visits.store_send == (Visit(server="writes", aside=True), "dma")
    change = 'configurations[1].graph.visits.send=["nope"]'
    with pytest.raises(ConfigError, match="names the server `nope`"):
        load_training(EXAMPLE, [change])


@pytest.mark.parametrize("name", list(CONFIGURATIONS))
def test_printed_endpoints_are_the_same_in_files(name: str, tmp_path: Path) -> None:
    built_in = graph_of(CONFIGURATIONS[name], Npu())
    file = tmp_path / "training.toml"
    head = EXAMPLE.read_text("utf-8").partition("[[configurations]]")[0]
    file.write_text(head + endpoint_text(built_in), "utf-8")
    assert load_training(file).configurations == (built_in,)


@settings(max_examples=20)
@given(variants())
def test_printed_graphs_are_exact(configuration: Configuration) -> None:
    graph = graph_of(configuration, Npu()).graph
    assert graph is not None
    only = Configuration(name="e", kind="graph", memory=graph.memory_rate, graph=graph)
    head = EXAMPLE.read_text("utf-8").partition("[[configurations]]")[0]
    tables = tomllib.loads(head + endpoint_text(only))
    assert resolve_training(tables, source="training.toml").configurations == (only,)
