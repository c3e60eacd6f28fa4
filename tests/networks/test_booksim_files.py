"""Latencies of BookSim 2, and files that a configuration names: networks, matrices and traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tutti.base.errors import ConfigError
from tutti.formats.booksim.network import load
from tutti.formats.converted import ConvertedNoc, write
from tutti.networks import flit as noc
from tutti.networks.flit.files.network_file import load_noc

if TYPE_CHECKING:
    from pathlib import Path

MESH = "topology = mesh; k = 2; n = 2; routing_function = dor; num_vcs = 2; sample_period = 2000;"
ANYNET = """topology = anynet; network_file = net; routing_function = min;
num_vcs = 4; vc_buf_size = 32; traffic = uniform; injection_rate = 0.01; packet_size = 1;
sample_period = 3000;
"""


def converted(folder: Path, text: str, **files: str) -> ConvertedNoc:
    for name, content in files.items():
        (folder / name).write_text(content)
    (folder / "it.cfg").write_text(text)
    return load(folder / "it.cfg")


def run(found: ConvertedNoc) -> noc.NocRun:
    return noc.run(found.noc.network, found.noc.traffic, found.noc.plan)


DRAGONFLY = """topology = dragonflynew; k = 2; n = 1; routing_function = min;
num_vcs = 3; vc_buf_size = 64; traffic = uniform; injection_rate = 0.2; packet_size = 1;
sample_period = 2000;
"""
SPED_UP = """topology = mesh; k = 8; n = 2; routing_function = dor; num_vcs = 4; vc_buf_size = 8;
vc_allocator = separable_input_first; sw_allocator = separable_input_first;
routing_delay = 0; credit_delay = 1; traffic = uniform; injection_rate = 0.3; packet_size = 1;
sample_period = 3000; warmup_periods = 1;
"""
TORUS = """topology = torus; k = 8; n = 2; routing_function = min_adapt; num_vcs = 5;
vc_allocator = separable_input_first; sw_allocator = separable_input_first;
routing_delay = 1; credit_delay = 1; traffic = uniform; injection_rate = 0.15; packet_size = 2;
sample_period = 3000; warmup_periods = 1;
"""


@pytest.mark.parametrize(
    ("text", "latency"),
    [
        (DRAGONFLY, 122.67),
        (DRAGONFLY + "num_vcs = 2;", 122.88),
        (DRAGONFLY + "num_vcs = 6;", 122.50),
        (DRAGONFLY + "internal_speedup = 1.7;", 115.96),
        (SPED_UP + "internal_speedup = 1.25;", 27.56),
        (SPED_UP + "internal_speedup = 1.7;", 22.11),
        (TORUS, 35.20),
    ],
)
def test_spare_vcs_and_fractional_speedups_have_latencies_of_booksim(
    text: str, latency: float, tmp_path: Path
) -> None:
    """Mean packet latencies of BookSim 28f4329, in cycles."""
    measured = run(converted(tmp_path, text))
    assert measured.latency is not None
    assert measured.latency.mean == pytest.approx(latency, rel=0.01)


def test_a_key_with_several_values_is_remarked(tmp_path: Path) -> None:
    text = f"{MESH} injection_rate = 0.1; injection_rate = 0.2; num_vcs = 2;"
    remarks = converted(tmp_path, text).remarks
    assert [line for line in remarks if "values" in line] == [
        "`injection_rate` is 0.2, the last of 2 values, as in BookSim"
    ]
    (tmp_path / "once.cfg").write_text(MESH)
    changed = load(tmp_path / "once.cfg", ["num_vcs=4"])
    assert not [line for line in changed.remarks if "values" in line]


# --- weighted networks ----------------------------------------------------------------------------


def test_packets_take_the_fewest_cycles(tmp_path: Path) -> None:
    """booksim/booksim2#31: router 0 reaches 2 over 1 in 4 cycles, and directly in 20.

    Of 9 pairs, 3 pass one router, 4 pass two and 2 pass three, in 7, 13 and 19 cycles: 1.89 hops
    and 12.33 cycles. BookSim 28f4329 measures 12.19 cycles and 1.86 hops of about 270 packets, with
    a standard error of 0.28 cycles.
    """
    triangle = (
        "router 0 node 0 router 1 2 router 2 20\n"
        "router 1 node 1 router 0 2 router 2 2\n"
        "router 2 node 2 router 0 20 router 1 2\n"
    )
    found = converted(tmp_path, ANYNET.replace("3000", "200000"), net=triangle)
    measured = run(found)
    assert measured.latency is not None
    assert measured.latency.mean == pytest.approx(111 / 9, rel=0.01)
    assert measured.hops.mean == pytest.approx(17 / 9, rel=0.01)
    assert found.remarks == ()


def test_equal_paths_are_those_of_booksim(tmp_path: Path) -> None:
    """Of two paths of 4 cycles from router 0 to 3, BookSim takes the one that it settles first.

    Router 2 is nearer to 0 than 1 is, so the path over it is found first. In the other direction,
    1 is nearer to 3.
    """
    square = (
        "router 0 node 0 router 1 3 router 2 1\nrouter 1 node 1 router 0 2 router 3 1\n"
        "router 2 node 2 router 0 1 router 3 3\nrouter 3 node 3 router 1 2 router 2 3\n"
    )
    network = converted(tmp_path, ANYNET, net=square).noc.network
    lines = ["cycle,source,destination,flits", "0,0,3,1", "100,3,0,1"]
    plan = noc.MeasurementPlan(warmup=0, measure=200, batches=2, sample=0)
    links = noc.run(network, noc.Trace(text="\n".join(lines)), plan).channels
    used = {(a, b) for a, b, flits in links.select("source", "target", "flits").rows() if flits}
    assert {("router0", "router2"), ("router2", "router3")} <= used
    assert {("router3", "router1"), ("router1", "router0")} <= used


# --- matrices -------------------------------------------------------------------------------------


def test_a_matrix_selects_destinations(tmp_path: Path) -> None:
    text = MESH + "traffic = matrix({m}); injection_rate = 0.2;"
    found = converted(tmp_path, text, m="0 3 1 0  # weights\n0 0 0 0\n0 0 0 0.5\n1 0 0 0\n")
    (traffic,) = found.noc.scalable
    assert traffic.pattern == "matrix:0,3,1,0;0,0,0,0;0,0,0,1;1,0,0,0"
    assert len(found.remarks) == 2
    assert "1 node of 4 send nothing" in found.remarks[0]
    assert "its sum has no effect" in found.remarks[1]
    links = run(found).channels
    flits = {(a, b): n for a, b, n in links.select("source", "target", "flits").rows() if a != b}
    # Three of four packets of node 0 go to node 1, and none to node 3.
    assert flits["npu0", "npu1"] == pytest.approx(3 * flits["npu0", "npu2"], rel=0.2)
    assert flits["npu1", "npu3"] == 0


def test_a_written_matrix_gives_the_same_run(tmp_path: Path) -> None:
    text = MESH + "traffic = matrix(m.txt); injection_rate = 0.2;"
    found = converted(tmp_path, text, **{"m.txt": "0 1 1 1\n1 0 1 1\n1 1 0 1\n1 1 1 0\n"})
    (tmp_path / "out").mkdir()
    paths = write(tmp_path / "out" / "it.toml", found)
    assert [path.name for path in paths] == ["it.toml", "m.txt"]
    again = load_noc(paths[0])
    assert noc.run(again.network, again.traffic, again.plan).latency == run(found).latency
    assert found.remarks == ()


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ("0 1\n1 0\n", "m: the matrix has 2 rows, and the network has 4 nodes"),
        ("0 1 1\n1 0\n", "m:1: the row has 3 numbers, and the matrix has 2 rows"),
        ("0 1\nx 0\n", 'm:2: invalid weight\ngiven: "x"'),
        ("0 1\n-1 0\n", "m:2: invalid weight"),
        ("0 1\n1e999 0\n", "m:2: invalid weight"),
        ("0 1\n1 1\n", "m: node 1 sends packets to itself"),
        ("0 0\n0 0\n", "m: no number is above 0"),
        ("# nothing\n", "m: no number is above 0"),
    ],
)
def test_matrices_that_do_not_fit_are_refused(matrix: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        converted(tmp_path, MESH + "traffic = matrix(m);", m=matrix)
    assert message in str(caught.value)


def test_a_matrix_replaces_the_pattern_of_a_network_file(tmp_path: Path) -> None:
    text = """[topology]
build = "mesh:2x1"
links = [{ rate = "16 GB/s", latency = "1 ns" }]
routing = "dimension_order"
[traffic]
matrix = "m"
rate = 0.1
"""
    (tmp_path / "m").write_text("1 3\n0.25 0\n")
    (tmp_path / "it.toml").write_text(text)
    (traffic,) = load_noc(tmp_path / "it.toml").scalable
    assert traffic.pattern == "matrix:1,3;1,0"
    (tmp_path / "it.toml").write_text(text + 'pattern = "uniform"\n')
    with pytest.raises(ConfigError, match="`pattern` conflicts with `matrix`"):
        load_noc(tmp_path / "it.toml")


# --- traces ---------------------------------------------------------------------------------------

TRACE = "# cycle src class dst flits\n0 0 0 3 2\n% other\n40 1 0 2 1\n7 3 1 3 1\n\n5 2 1 0 4\n"


def test_packets_of_a_trace(tmp_path: Path) -> None:
    """Three packets without contention; a packet of a node to itself is not created."""
    text = MESH + "traffic = trace(t.txt); injection_rate = 0.3; routing_delay = 0;"
    found = converted(tmp_path, text, **{"t.txt": TRACE})
    assert isinstance(found.noc.traffic, noc.Trace)
    assert found.noc.traffic.text.splitlines()[1:] == ["0,0,3,2", "40,1,2,1", "5,2,0,4"]
    assert "1 packet from a node to itself: not sent" in found.remarks
    assert "the class of packets has no effect, as in the fork of BookSim" in found.remarks
    assert found.not_honoured == ("injection_rate", "sample_period")
    measured = run(found)
    assert measured.hops.mean == pytest.approx((3 + 3 + 2) / 3)
    # 2 + 4 per router; each further flit takes a cycle.
    assert measured.all.latency_extremes == (13, 15)


def test_a_written_trace_gives_the_same_run(tmp_path: Path) -> None:
    found = converted(tmp_path, MESH + "traffic = trace(t.csv);", **{"t.csv": TRACE})
    paths = write(tmp_path / "it.toml", found)
    assert [path.name for path in paths] == ["it.toml", "t.trace.csv"]
    assert (tmp_path / "t.csv").read_text() == TRACE
    again = load_noc(paths[0])
    assert noc.run(again.network, again.traffic, again.plan).latency == run(found).latency


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        ("0 1 2 3\n", "t:1: the line has 4 fields"),
        ("0,1,2,3\n", "t:1: the line has 1 field"),
        ("#\n0 1 0 2 x\n", "t:2: the line has a field that is not a number"),
        ("0 1 0 2 0\n", "t:1: a number is out of range"),
        ("0 1 0 9 1\n", "t:1: destination 9 does not exist: the last of 4 nodes is 3"),
        ("#\n1 1 0 1 1\n0 4 0 1 1\n", "t:3: source 4 does not exist"),
        ("999999999999999 1 0 2 1\n", "t:1: cycle 999999999999999 is too late"),
        ("3 1 0 1 4\n", "t: the trace has no packets"),
    ],
)
def test_traces_that_do_not_fit_are_refused(trace: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        converted(tmp_path, MESH + "traffic = trace(t);", t=trace)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("traffic = matrix;", "traffic"),
        ("traffic = trace();", "traffic"),
        ("traffic = trace({a,b});", "traffic"),
        ("traffic = trace(t); classes = 2;", "classes"),
    ],
)
def test_a_pattern_of_a_file_needs_one_file(text: str, key: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        converted(tmp_path, MESH + text, t=TRACE)
    assert caught.value.fields["key"] == key
