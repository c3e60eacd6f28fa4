"""Defaults of router networks: routing by family, and the window of a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tutti
from called import call
from flit_networks import SHORT, mesh, network
from tutti.networks import flit as noc
from tutti.networks.flit import memory
from tutti.networks.flit.files.network_file import load_noc

if TYPE_CHECKING:
    from pathlib import Path

FILE = """
[topology]
build = "{build}"
links = [{{ rate = "16 GB/s", latency = "1 ns", length = "1 mm" }}]
[traffic]
{traffic}
[measure]
{measure}
"""
TRACE = "cycle,source,destination,flits\n0,0,5,4\n90,1,6,4\n"


def write(path: Path, build: str = "mesh:4x4", traffic: str = "rate = 0.1", **measure: int) -> Path:
    keys = "\n".join(f"{key} = {value}" for key, value in measure.items())
    file = path / "n.toml"
    file.write_text(FILE.format(build=build, traffic=traffic, measure=keys))
    return file


@pytest.mark.parametrize(
    ("build", "routing"),
    [
        ("mesh:4x4", "dimension_order"),
        ("torus:4x4", "dimension_order"),
        ("cmesh:2x2:2x2", "dimension_order"),
        ("flattened_butterfly:4x4", "dimension_order"),
        ("chiplet_mesh:chiplets=2x1,tiles=2x2", "dimension_order"),
        ("chiplet_mesh:chiplets=2x1,tiles=2x2,boundary=1", "up_down"),
        ("dragonfly:p=1,a=2,h=1", "minimal"),
        ("fat_tree:k=2,n=2", "nca"),
        ("ring:5", "shortest_path"),
    ],
)
def test_files_options_and_python_have_one_default_routing(
    build: str, routing: str, tmp_path: Path
) -> None:
    assert noc.Network(topology=mesh(build)).routing == routing
    assert load_noc(write(tmp_path, build)).network.routing == routing
    short = ["--set", "measure.warmup=10", "--set", "measure.measure=100", "-o", "out"]
    for given in (["n.toml"], ["--topology", build, "--rate", "0.1"]):
        done = call("noc", "run", *given, *short, cwd=tmp_path)
        assert f"topology.routing {routing}" in " ".join(done.stderr.split())
        assert routing in done.stdout


def test_an_output_that_is_given_is_no_default(tmp_path: Path) -> None:
    done = call("noc", "run", "--mesh", "2x2", "--rate", "0.1", "--no-report", "-o", "here",
                cwd=tmp_path)  # fmt: skip
    assert "router.buffer 8" in " ".join(done.stderr.split())
    assert "output out/noc" not in " ".join(done.stderr.split())


def test_a_file_with_a_routing_has_no_remark_on_it(tmp_path: Path) -> None:
    routed = "topology.routing=o1_turn"
    file = write(tmp_path, measure=100, warmup=10)
    done = call("noc", "run", file.name, "--set", routed, "-o", "out", cwd=tmp_path)
    assert "defaults" not in done.stderr


def test_graphs_with_unequal_latencies_are_remarked(tmp_path: Path) -> None:
    """A ring of four, of which one cable takes 9 cycles: 0 to 1 is faster over 3 and 2."""
    links = ",".join(
        f'{{"source":"n{a}","target":"n{b}","rate":"16 GB/s","latency":"{cycles} ns"}}'
        for one, other, cycles in ((0, 1, 9), (1, 2, 1), (2, 3, 1), (3, 0, 1))
        for a, b in ((one, other), (other, one))
    )
    nodes = ",".join(f'{{"id":"n{number}","kind":"npu"}}' for number in range(4))
    file = tmp_path / "g.json"
    file.write_text(
        f'{{"directed":true,"multigraph":false,"graph":{{}},"nodes":[{nodes}],"links":[{links}]}}'
    )
    graph = tutti.Topology.read(file)
    by_hops = noc.Network(topology=graph, deadlock="ignore")
    assert any("least_latency" in text for text in by_hops.remarks())
    fastest = noc.Network(topology=graph, routing="least_latency", deadlock="ignore")
    assert not any("least_latency" in text for text in fastest.remarks())
    trace = noc.Trace(text="cycle,source,destination,flits\n0,0,1,1\n")
    latencies = [noc.run(one, trace).latency.mean for one in (by_hops, fastest)]
    # 9 cycles against 3 links of 1 and two more routers of 3.
    assert latencies[0] - latencies[1] == 9 - (3 + 2 * 3)


def test_a_trace_runs_from_cycle_0_until_its_last_packet_arrives(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TRACE)
    file = write(tmp_path, traffic='trace = "t.csv"')
    plan = load_noc(file).plan
    assert (plan.warmup, plan.measure) == (0, 91)
    run = noc.run(network(), noc.Trace(text=TRACE))
    assert (run.ending, run.all.packets) == ("stable", 2)
    # Two hops, 3 cycles each and a link of 1, injection, and 3 more flits.
    assert run.makespan == 90 + run.all.latency_extremes[1]
    # The window has all flits, those that arrive after the last creation too.
    assert run.window == run.makespan + 1
    assert sum(sent.flits for sent in run.sent if sent.kind == "ejection") == 8
    assert run.accepted.mean == pytest.approx(8 / 16 / run.window)
    assert run.offered == run.accepted.mean
    options = ["--mesh", "4x4", "--set", "traffic.trace=t.csv", "-o", "out"]
    for given in ([file.name, "-o", "out"], options):
        assert "packets: 2" in " ".join(call("noc", "run", *given, cwd=tmp_path).stdout.split())


def test_a_window_that_is_given_is_kept(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TRACE)
    plan = load_noc(write(tmp_path, traffic='trace = "t.csv"', warmup=50, measure=100)).plan
    assert (plan.warmup, plan.measure) == (50, 100)


def test_a_run_without_packets_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TRACE)
    file = write(tmp_path, traffic='trace = "t.csv"', warmup=5000, measure=100)
    done = call("noc", "run", file.name, "-o", "out", cwd=tmp_path)
    assert done.returncode == 3
    assert "no packet arrived in the measurement window" in done.stderr
    assert "empty: no packet was created" in done.stdout
    run = noc.run(network(), noc.Traffic(rate=0), SHORT)
    assert (run.ending, run.is_stable) == ("empty", False)


@pytest.mark.parametrize(
    ("alias", "name"), [("neighbor", "neighbour"), ("bitcomp", "bit_complement")]
)
def test_names_of_booksim_select_patterns(alias: str, name: str) -> None:
    runs = [noc.run(network(), noc.Traffic(rate=0.1, pattern=one), SHORT) for one in (alias, name)]
    assert runs[0].latency == runs[1].latency


def test_xy_is_dimension_order() -> None:
    runs = [noc.run(network(routing=one), noc.Traffic(rate=0.1), SHORT)
            for one in ("xy", "dimension_order")]  # fmt: skip
    assert runs[0].latency == runs[1].latency


def test_a_notation_has_links_of_each_class(tmp_path: Path) -> None:
    package = "chiplet_mesh:chiplets=2x1,tiles=2x2"
    short = ["--rate", "0.1", "--set", "measure.measure=100", "--set", "measure.warmup=10"]
    given = f"{package},rate=16GB/s,latency=1ns,links[1].latency=4ns"
    done = call("noc", "run", "--topology", given, *short, "-o", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "out" / "channels.csv").read_text().splitlines()
    names = lines[0].split(",")
    rows = [dict(zip(names, line.split(","), strict=True)) for line in lines[1:]]
    slow = {(row["source"], row["target"]) for row in rows if row["latency"] == "4"}
    assert slow == {("npu1", "npu4"), ("npu4", "npu1"), ("npu3", "npu6"), ("npu6", "npu3")}
    shared = ["--topology", f"{package},rate=16GB/s,latency=1ns", *short]
    change = ["--set", "topology.links[1].latency=4ns", "-o", "changed"]
    assert call("noc", "run", *shared, *change, cwd=tmp_path).returncode == 0
    assert (tmp_path / "changed" / "channels.csv").read_text().splitlines() == lines
    beyond = call("noc", "run", *shared, "--set", "topology.links[2].rate=1", cwd=tmp_path)
    assert "topology.links has 2 values, and no index 2" in beyond.stderr
    for key in ("links[2].latency=4ns", "links[1].colour=4"):
        done = call("noc", "run", "--topology", f"{package},{key}", *short, cwd=tmp_path)
        assert "links[0]: on-chip, links[1]: die-to-die" in done.stderr


def test_large_networks_have_a_map_of_pixels(tmp_path: Path) -> None:
    given = ["--mesh", "24x24", "--rate", "0.02", "--set", "measure.measure=100",
             "--set", "measure.warmup=10", "-o", "out"]  # fmt: skip
    assert call("noc", "run", *given, cwd=tmp_path).returncode == 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert "A pixel per vertex, in its column and row" in page


def test_networks_without_switches_have_a_drawing(tmp_path: Path) -> None:
    given = ["--topology", "flattened_butterfly:4x4", "--rate", "0.1", "-o", "out",
             "--set", "measure.measure=100", "--set", "measure.warmup=10"]  # fmt: skip
    assert call("noc", "run", *given, cwd=tmp_path).returncode == 0


def test_networks_beyond_the_free_memory_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:        2048 kB\nMemAvailable:    1024 kB\n")
    assert memory.free_bytes(meminfo) == 1 << 20
    assert memory.free_bytes(tmp_path / "none") > 1 << 30
    monkeypatch.setattr(memory, "free_bytes", lambda: 10**6)
    assert noc.run(network("mesh:4x4"), noc.Traffic(rate=0.1), SHORT).is_stable
    done = call("noc", "run", "--mesh", "32x32", "--rate", "0.1", "--no-files", cwd=tmp_path)
    assert done.returncode == 2
    assert "topology: a run of 1,024 nodes with 4 VCs of 8 flits needs about 0 GB" in done.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("router.speculation=2", "router.speculation: is neither true, false nor a table"),
        ("measure.measure=5", "`measure` is 5: expected 20 cycles (one for each of the `batches`)"),
        ("flit=0B", "flit: a flit has no bytes"),
        ("traffic.trace=", "traffic.trace: is empty"),
        ("topology.routing=paths", "`paths` cannot be read: expected paths:NODE>NODE..., such as"),
        ("traffic.pattern=hotspot({0,15},{1,3})", "cannot be read: expected `hotspot:"),
        ('clocks=[{at=["npu99"],period="2 ns"}]', "clocks[0]: no router is named `npu99`"),
        ('clocks=[{at=["npu4","npu4"],period="2 ns"}]', "clocks[0]: `at` names `npu4` twice"),
    ],
)
def test_mistakes_name_key_and_expectation(change: str, message: str, tmp_path: Path) -> None:
    rate = [] if "trace" in change else ["--rate", "0.1"]
    given = ["--mesh", "4x4", *rate, "--set", change, "--no-files"]
    done = call("noc", "run", *given, cwd=tmp_path)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
