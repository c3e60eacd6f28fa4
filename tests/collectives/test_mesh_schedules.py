"""Schedules over meshes whose routers fork and combine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tutti
from called import call
from tutti.base.errors import ConfigError, SimulationError
from tutti.collectives.files.resolve import load_experiment
from tutti.collectives.view.perfetto import write_trace
from tutti.energy.errors import EnergyError
from tutti.energy.technology import Technology
from tutti.networks.errors import NocError
from tutti.networks.mesh import SmartMesh
from tutti.networks.mesh.energy import mesh_energy

if TYPE_CHECKING:
    from pathlib import Path

ENDS = tutti.LogGP(L="0 ns", o="0 ns", g="0 ns", G="0.001 ns/B")


def machine(**mesh: object) -> tutti.Platform:
    made = SmartMesh(**{"design": "sfo_greedy", "fan_in": "complete", **mesh})  # type: ignore[arg-type]
    return tutti.Platform(name="tiles", model=ENDS, contention=tutti.MeshFlits(mesh=made))


def run(algorithm: str, size: str, platform: tutti.Platform, ranks: int = 64) -> tutti.Run:
    schedule = tutti.schedule(algorithm, collective="all_reduce", ranks=ranks)
    return tutti.simulate(schedule, platform, size=size)


def test_flit_takes_four_cycles_per_direction_and_one_between() -> None:
    found = run("in_network", "16 B", machine())
    # 15 ps for 16 B at the endpoints, once: data that arrives in a cycle continues in the next.
    assert found.completion_ps == 9_000 + 15
    counts = found.mesh_counts
    assert (counts["injected"], counts["ejected"], counts["link_hops"]) == (64, 64, 126)
    assert counts["merged"] == 62
    assert counts["beyond"] == 0
    assert found.platform.network == "loggp+mesh"


def test_folds_of_a_combine_cost_nothing_where_routers_combine() -> None:
    ends = ENDS.model_copy(update={"gamma": tutti.TimePerByte.parse("1 ns/B")})
    free = machine().model_copy(update={"model": ends})
    assert run("in_network", "16 B", free).completion_ps == 9_015
    alone = machine(fan_in="unicasts").model_copy(update={"model": ends})
    assert run("in_network", "16 B", alone).completion_ps > 63 * 16 * 1000


@pytest.mark.parametrize("algorithm", ["ring", "multi_tree:mesh:8x8", "in_network:all"])
def test_no_run_is_faster_than_its_bound(algorithm: str) -> None:
    found = run(algorithm, "4 KiB", machine())
    # 256 flits, a cycle each.
    assert found.bound.bandwidth_ps == 256_000
    assert found.bound.at_least_ps <= found.completion_ps
    assert found.closed_form_ps is None


def test_a_mesh_without_collectives_has_the_bound_of_ordinary_messages() -> None:
    found = run("ring", "4 KiB", machine(design="smart_1d", fan_in="unicasts"))
    assert found.bound.at_least_ps > 256_000
    assert found.bound.at_least_ps <= found.completion_ps


def test_endpoints_cost_what_the_model_specifies() -> None:
    ends = tutti.LogGP(L="0 ns", o="5 ns", g="0 ns", G="0 ns/B")
    platform = machine().model_copy(update={"model": ends})
    # Sent at 5, 4 cycles, received in 5: 14; sent at 19, arrives at 23, received at 28.
    assert run("in_network", "16 B", platform).completion_ps == 28_000


def test_a_multicast_is_one_send_and_many_deliveries() -> None:
    ends = tutti.LogGP(L="0 ns", o="5 ns", g="0 ns", G="0 ns/B")
    platform = machine(fan_in="unicasts").model_copy(update={"model": ends})
    found = run("in_network", "16 B", platform)
    # 63 contribute and the root multicasts; the root receives 63, and 63 receive the multicast.
    assert (found.messages, found.message_bytes) == (64, 64 * 16)
    assert (found.delivered, found.delivered_bytes) == (126, 126 * 16)
    sends = found.timeline.filter(found.timeline["kind"] == "send")
    assert sends.height == 64
    assert sends.filter(sends["peer"].is_null())["rank"].to_list() == [0]
    assert found.messages_frame.height == 126
    # The activities of a rank fit into its time.
    spent = (found.timeline["end_ps"] - found.timeline["start_ps"]).sum()
    assert spent == sum(found.finish_ps)


def test_a_combine_is_many_sends_and_one_delivery() -> None:
    found = run("in_network", "16 B", machine())
    assert (found.messages, found.delivered, found.delivered_bytes) == (64, 64, 1024)
    ring = run("ring", "1 KiB", machine())
    assert ring.messages == ring.delivered == 2 * 63 * 64


def test_trace_links_a_multicast_to_all_receivers(tmp_path: Path) -> None:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

    ends = tutti.LogGP(L="0 ns", o="5 ns", g="0 ns", G="0 ns/B")
    found = run("in_network", "16 B", machine().model_copy(update={"model": ends}))
    path = write_trace(tmp_path / "run.pftrace", found.timeline, found.messages_frame)
    trace = Trace()
    trace.ParseFromString(path.read_bytes())
    events = [packet.track_event for packet in trace.packet if packet.HasField("track_event")]
    multicast = next(event for event in events if event.name == "multicast")
    assert len(set(multicast.flow_ids)) == 63
    taken = {flow for event in events for flow in event.terminating_flow_ids}
    assert set(multicast.flow_ids) <= taken


def test_run_without_a_mesh_has_no_mesh_counts() -> None:
    platform = tutti.Platform(name="any", model=ENDS)
    with pytest.raises(EnergyError, match="no mesh"):
        _ = run("ring", "16 B", platform, ranks=4).mesh_counts


def test_more_ranks_than_nodes_are_refused() -> None:
    with pytest.raises(
        tutti.topologies.errors.TopologyError, match="65 ranks are more than"
    ) as caught:
        run("ring", "16 B", machine(), ranks=65)
    assert "use fewer ranks" in caught.value.hint


def test_invalid_meshes_are_refused() -> None:
    mesh = SmartMesh(design="sfo_greedy", reducer=False)
    with pytest.raises(ConfigError, match="reducer"):
        tutti.Platform(name="x", model=ENDS, contention=tutti.MeshFlits(mesh=mesh))
    with pytest.raises(ConfigError, match="flits of a packet"):
        tutti.Platform(name="x", model=ENDS, contention=tutti.MeshFlits(mesh=SmartMesh(), packet=2))
    graph = tutti.Topology.build("mesh:4x4", rate="16 GB/s", latency="1 ns").routes()
    with pytest.raises(ConfigError, match="both a mesh and another network"):
        tutti.Platform(
            name="x", model=ENDS, contention=tutti.MeshFlits(mesh=SmartMesh()), routes=graph
        )


EXPERIMENT = """
collective = "all_reduce"
algorithms = ["in_network"]
ranks = 16
sizes = "16 B"

[platform]
name = "tiles"

[platform.models.ends]
kind = "loggp"
L = "0 ns"
o = "0 ns"
g = "0 ns"
G = "0.001 ns/B"

[platform.mesh]
design = "sfo_greedy"
columns = 4
rows = 4
fan_in = "complete"
"""


def load(tmp_path: Path, text: str) -> tutti.Platform:
    file = tmp_path / "experiment.toml"
    file.write_text(text, "utf-8")
    return load_experiment(file).machine()


def test_a_file_names_a_mesh(tmp_path: Path) -> None:
    platform = load(tmp_path, EXPERIMENT + 'flit = "8 B"\ncycle = "2 ns"\n')
    assert isinstance(platform.contention, tutti.MeshFlits)
    assert (platform.contention.flit.bytes, platform.contention.cycle.ps) == (8, 2000)
    assert platform.contention.carrying.settings["reducer"] is True
    # Two flits: the second of each a cycle later.
    assert run("in_network", "16 B", platform, ranks=16).completion_ps // 2000 >= 10


@pytest.mark.parametrize(
    ("line", "key", "problem"),
    [
        ('flit = "0 B"', "mesh.flit", "expected at least 1 B"),
        ("packet = 2", "mesh.packet", "1 to 1"),
        ("packet = 2", "hint: raise `depth`", "which a VC holds"),
        ("reducer = false", "mesh.reducer", "reducer = true"),
        ("hpc_max = 12", "mesh.hpc_max: 12 hops per cycle", 'fan_in = "unicasts"'),
    ],
)
def test_mistakes_in_a_file_name_their_key(
    tmp_path: Path, line: str, key: str, problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        load(tmp_path, EXPERIMENT + line + "\n")
    assert key in str(caught.value)


def test_mesh_and_topology_together_are_refused(tmp_path: Path) -> None:
    links = 'links = [{ rate = "1 GB/s", latency = "1 ns" }]'
    more = f'\n[platform.topology]\nbuild = "mesh:4x4"\n{links}\n'
    with pytest.raises(ConfigError, match="either `topology` or `mesh`"):
        load(tmp_path, EXPERIMENT + more)


def test_schedules_by_hand_multicast_and_combine() -> None:
    build = tutti.ScheduleBuilder("all_reduce", ranks=3, name="root")
    build.rank(0).combine(0, [(0, None), (1, 1), (2, 2)]).multicast([1, 2])
    for rank in (1, 2):
        build.rank(rank).contribute(0).step().recv(0)
    schedule = build.build()
    proof = schedule.verify()
    assert (proof.multicasts, proof.combines, proof.messages) == (1, 1, 4)
    assert "unless the network combines" in str(proof)
    combine, multicast = schedule.ops(0, 0)[0], schedule.ops(0, 1)[0]
    assert (combine.kind, combine.peers, combine.operands) == ("combine", [1, 2], [0, 1, 2])
    assert (multicast.kind, multicast.peers, multicast.peer) == ("multicast", [1, 2], None)
    assert schedule.ops(1, 0)[0].kind == "contribute"
    again = tutti.Schedule.from_text(schedule.to_text())
    assert again.to_text() == schedule.to_text()
    assert repr(combine) == "combine data[0] = data + s1 from 1 + s2 from 2"


def test_contribution_without_a_combine_is_refused() -> None:
    build = tutti.ScheduleBuilder("broadcast", ranks=2, root=1)
    build.rank(1).contribute(0)
    build.rank(0).recv(1)
    with pytest.raises(
        tutti.schedules.errors.VerificationError, match="takes the message with a recv"
    ):
        build.build().verify()


def test_deadlocks_are_reported() -> None:
    build = tutti.ScheduleBuilder("barrier", ranks=2)
    build.rank(0).recv(1, slot=1).step().send(1)
    build.rank(1).recv(0, slot=1).step().send(0)
    platform = machine(columns=2, rows=2)
    with pytest.raises(SimulationError):
        tutti.simulate(build.build(), platform, size="0 B", verify=False)


def test_energy_is_that_of_the_event_counts() -> None:
    chip = Technology(router="smart_45nm", link="smart_45nm")
    mesh = SmartMesh(design="sfo_greedy", fan_in="complete")
    given = tutti.MeshFlits(mesh=mesh, technology=chip, tile="2 mm")
    found = run("in_network", "256 B", tutti.Platform(name="t", model=ENDS, contention=given))
    counted = mesh_energy(found.mesh_counts, given.carrying, chip, tile="2 mm")
    assert found.energy() == counted
    ring = run("ring", "256 B", tutti.Platform(name="t", model=ENDS, contention=given))
    assert ring.energy().total.nominal > found.energy().total.nominal
    with pytest.raises(EnergyError, match="the technology of the routers and links of the mesh"):
        run("in_network", "256 B", machine()).energy()


def test_run_reports_the_energy_of_a_mesh(tmp_path: Path) -> None:
    text = """
algorithms = ["in_network"]
collective = "all_reduce"
ranks = 16
sizes = "256 B"
[platform]
name = "tiles"
[platform.models.network]
kind = "loggp"
L = "0 ns"
o = "0 ns"
g = "0 ns"
G = "0.001 ns/B"
[platform.mesh]
design = "sfo_greedy"
columns = 4
rows = 4
fan_in = "complete"
[platform.mesh.energy]
router = "smart_45nm"
link = "smart_45nm"
"""
    (tmp_path / "e.toml").write_text(text)
    done = call("run", "e.toml", "-o", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "power:" in done.stdout
    assert "links" in done.stdout
    assert (tmp_path / "out" / "energy.parquet").exists()
    (tmp_path / "e.toml").write_text(text.replace('link = "smart_45nm"', 'link = "x"'))
    assert "mesh.energy" in call("run", "e.toml", "-o", "out", cwd=tmp_path).stderr


def test_large_meshes_have_a_table_entry_per_node() -> None:
    mesh = SmartMesh(design="sfo_greedy", columns=16, rows=16, fan_in="complete")
    assert mesh.settings["art_entries"] == 256
    assert SmartMesh(design="sfo_greedy", fan_in="complete").settings["art_entries"] == 64
    with pytest.raises(NocError, match="`art_entries` is 64"):
        SmartMesh(design="sfo_greedy", columns=16, rows=16, fan_in="complete", art_entries=64)
