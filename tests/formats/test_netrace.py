"""Traces of netrace, and their replay with dependencies."""

from __future__ import annotations

import bz2
import struct
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from tutti.base.errors import ConfigError, ExitCode
from tutti.cli.app import app
from tutti.formats.netrace import convert
from tutti.networks import flit as noc
from tutti.networks.errors import TrafficError
from tutti.topologies import Topology

if TYPE_CHECKING:
    from pathlib import Path

HEAD = struct.pack("<If30sBxQQII8x", 0x484A5455, 1.0, b"made", 16, 1000, 4, 5, 2)
NOTES = b"note\0"


def packed(cycle: int, number: int, kind: int, source: int, destination: int, *later: int) -> bytes:
    fixed = struct.pack("<QIIBBBBB", cycle, number, 64, kind, source, destination, 0, len(later))
    return fixed + struct.pack(f"<{len(later)}I", *later)


READ = packed(100, 1, 1, 0, 15, 2)
REPLY = packed(101, 2, 2, 15, 0, 3, 9)
NEXT = packed(102, 3, 4, 0, 1)
ALONE = packed(900, 4, 1, 0, 2)
PACKETS = READ + REPLY + NEXT + ALONE
REGIONS = struct.pack("<6Q", 0, 500, 3, len(READ + REPLY + NEXT), 500, 1)


def written(folder: Path, body: bytes = HEAD + NOTES + REGIONS + PACKETS) -> Path:
    path = folder / "t.tra.bz2"
    path.write_bytes(bz2.compress(body))
    return path


def test_packets_wait_for_those_that_list_them(tmp_path: Path) -> None:
    found = convert(written(tmp_path), flit_bytes=16, delay=5, classes=2)
    assert (found.benchmark, found.nodes, found.packets) == ("made", 16, 4)
    assert (found.is_cut, found.unknown) == (False, 1)
    assert found.text.splitlines() == [
        "cycle,source,destination,flits,class,id,after,delay",
        "0,0,15,1,0,1,,0", "1,15,0,5,1,2,1,5", "2,0,1,5,0,3,2,5", "800,0,2,1,0,4,,0",
    ]  # fmt: skip
    other = convert(written(tmp_path), flit_bytes=64, region=1)
    assert other.text.splitlines()[1:] == ["0,0,2,1,0,4,,0"]
    assert convert(written(tmp_path), flit_bytes=64, packets=2).is_cut
    plain = tmp_path / "plain.tra"
    plain.write_bytes(HEAD + NOTES + REGIONS + PACKETS)
    assert convert(plain, flit_bytes=16, delay=5, classes=2) == found


def test_a_replay_honours_dependencies(tmp_path: Path) -> None:
    """Packet 4 waits for no other, but is announced before 3, which leaves first."""
    text = convert(written(tmp_path), flit_bytes=16, delay=5).text
    mesh = Topology.build("mesh:4x4", rate="16 GB/s", latency="1 ns")
    network = noc.Network(topology=mesh, flit="16 B", router=noc.Router(vcs=4, buffer=8))

    def alone(source: int, destination: int, flits: int) -> int:
        line = f"cycle,source,destination,flits\n0,{source},{destination},{flits}"
        makespan = noc.run(network, noc.Trace(text=line)).makespan
        assert makespan is not None
        return makespan

    steps = [alone(0, 15, 1), alone(15, 0, 5), alone(0, 1, 5)]
    run = noc.run(network, noc.Trace(text=text))
    assert run.ending == "stable"
    assert run.all.packets == 4
    assert run.makespan == 800 + alone(0, 2, 1)
    assert run.all.latency_extremes[1] == max(steps)
    # Without the last packet, the chain is the sum of its steps: a cycle to turn, and the delay.
    chain = "\n".join(text.splitlines()[:4])
    run = noc.run(network, noc.Trace(text=chain))
    assert run.makespan == sum(steps) + 2 * (1 + 5)
    assert run.window == run.makespan + 1
    assert run.all.latency_extremes[1] == max(steps)


def test_a_file_replays_a_trace(tmp_path: Path) -> None:
    arguments = ["noc", "from-netrace", str(written(tmp_path)), "-o", str(tmp_path / "t.csv")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "1 dependencies name packets outside" in " ".join(done.stderr.split())
    run = ["noc", "run", "--mesh", "4x4", "--set", f"traffic.trace={tmp_path / 't.csv'}"]
    done = CliRunner().invoke(app, [*run, "--no-report", "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "makespan" in done.stdout


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("0,0,1,1,5,6\n0,0,1,1,6,7\n0,0,1,1,7,6", "line 3 .* packet 6 waits for itself"),
        ("0,0,1,1,5,9", "line 2 .* names packet 9, which is not listed"),
    ],
)
def test_dependencies_that_cannot_be_met_are_refused(lines: str, message: str) -> None:
    mesh = Topology.build("mesh:2x2", rate="16 GB/s", latency="1 ns")
    trace = noc.Trace(text=f"cycle,source,destination,flits,id,after\n{lines}")
    with pytest.raises(TrafficError, match=message):
        noc.run(noc.Network(topology=mesh), trace)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "is not a trace of netrace"),
        (HEAD.replace(b"UTJH", b"UTJX"), "is not a trace of netrace"),
        (HEAD[:4] + struct.pack("<f", 2.0) + HEAD[8:], "has version 2"),
        (HEAD + NOTES, "ends within its header"),
        (HEAD + NOTES + REGIONS, "has no packets"),
        (HEAD + NOTES + REGIONS + READ[:9], "ends within a packet"),
        (HEAD + NOTES + REGIONS + READ[:-1], "ends within a packet"),
        (HEAD + NOTES + REGIONS + packed(0, 1, 7, 0, 1), "invalid type 7"),
        (HEAD + NOTES + REGIONS + packed(0, 1, 1, 0, 16), "names node 16"),
        (HEAD + NOTES + REGIONS + READ + READ, "packet 1 appears twice"),
    ],
)
def test_damaged_traces_are_refused(body: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        convert(written(tmp_path, body), flit_bytes=16)


def test_files_that_are_no_bzip2_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    for data, message in [
        (path.read_bytes()[:-9], "truncated"),
        (b"BZh9" + bytes(40), "damaged"),
    ]:
        path.write_bytes(data)
        with pytest.raises(ConfigError, match=message):
            convert(path, flit_bytes=16)
    for option in ("--region=3", "--flit=0B", "--flit=wide"):
        done = CliRunner().invoke(app, ["noc", "from-netrace", "none", option])
        assert done.exit_code == ExitCode.MISTAKE
    with pytest.raises(ConfigError, match="there is no region 2"):
        convert(written(tmp_path), flit_bytes=16, region=2)
