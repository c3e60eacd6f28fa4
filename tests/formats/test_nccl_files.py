"""Files that NCCL writes: topologies, channel graphs, debug logs, Inspector output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutti.base.errors import ConfigError, TuttiError
from tutti.base.units import Size, TimePerByte
from tutti.formats.measurements import parse_log
from tutti.formats.nccl import (
    parse_debug_log,
    parse_inspector,
    platform_from_topology,
    read_graphs,
    read_topology,
)
from tutti.platforms.files.presets import load_platform

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "23_nccl_doctor"
NODE = EXAMPLE / "topology.xml"
_GIGABYTE = Size(bytes=10**9)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "file.xml"
    path.write_text(text)
    return path


# --- topologies -----------------------------------------------------------------------------------


def test_a_topology_has_gpus_by_rank_and_ports_by_device() -> None:
    found = read_topology(NODE)
    assert (found.writer, len(found.cpus), found.omitted) == ("NCCL", 2, ())
    assert [gpu.rank for _, _, gpu in found.gpus] == list(range(8))
    assert [port.name for _, _, port in found.ports] == [f"mlx5_{one}" for one in range(8)]
    _, device, gpu = found.gpus[0]
    assert (device.bus, device.gt_per_s, device.width) == ("0000:19:00.0", 32.0, 16)
    assert [(one.to, one.count) for one in gpu.links] == [("nvswitch", n) for n in (4, 5, 5, 4)]


def test_a_platform_has_nvlink_pci_and_network_links() -> None:
    found = platform_from_topology(read_topology(NODE), nodes=2)
    topology = found.topology
    assert topology.ranks == 16
    routes = found.platform.routes
    assert routes is not None
    inside = routes.path(0, 1)
    assert {str(one.rate) for one in inside} == {"450 GB/s"}
    outside = routes.path(0, 13)
    # GPU 5 of the second node is behind a NIC whose PCI link has 8 lanes: 8 x 256/65 GB/s.
    slowest = max(float(one.rate.of(_GIGABYTE).ps) for one in outside)
    assert slowest == pytest.approx(1e12 / (8 * 256 / 65), rel=1e-6)
    assert any("NVLink 4" in line for line in found.sources)


def test_rates_of_nccl_are_those_of_its_search() -> None:
    found = platform_from_topology(read_topology(NODE), rates="nccl")
    assert found.fastest.gb_per_s == pytest.approx(18 * 20.6)
    assert "SM90_NVLINK_BW" in found.fastest.source


def test_a_platform_file_is_read_back(tmp_path: Path) -> None:
    found = platform_from_topology(read_topology(NODE))
    path, graph = found.write(tmp_path / "node.toml")
    read = load_platform(path)
    assert read.topology is not None
    assert read.topology.file == str(graph)
    with pytest.raises(ConfigError, match="unknown file ending"):
        found.write(tmp_path / "node.json")


GPUS = """<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49">
    <pci busid="0000:01:00.0" class="0x030200" link_speed="{speed}" link_width="16">
      <gpu dev="0" sm="80" rank="0" gdr="1">{links}</gpu>
    </pci>
    <pci busid="0000:02:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
      <gpu dev="1" sm="80" rank="1" gdr="1"><nvlink target="0000:01:00.0" count="4"
        tclass="0x030200"/></gpu>
    </pci>
  </cpu>
</system>
"""
LINK = '<nvlink target="0000:02:00.0" count="4" tclass="0x030200"/>'


def test_direct_links_and_pci_links(tmp_path: Path) -> None:
    text = GPUS.format(speed="16.0 GT/s PCIe", links=LINK)
    found = platform_from_topology(read_topology(written(tmp_path, text)))
    routes = found.platform.routes
    assert routes is not None
    (link,) = routes.path(0, 1)
    assert link.rate == TimePerByte.of_any("100 GB/s")


def test_unknown_parts_are_left_out_with_line_and_reason(tmp_path: Path) -> None:
    text = GPUS.format(
        speed="99 GT/x", links='<nvlink target="0000:02:00.0" count="4" tclass="0x999999"/><new/>'
    )
    found = read_topology(written(tmp_path, text))
    assert [(one.line, one.reason.split(":")[0]) for one in found.omitted] == [
        (3, 'unknown link speed "99 GT/x"'),
        (4, 'nvlink to a device of unknown class "0x999999"'),
        (4, "unknown element <new> in <gpu>"),
    ]


def test_amd_gpus_have_xgmi_links(tmp_path: Path) -> None:
    text = GPUS.format(speed="", links='<xgmi target="0000:02:00.0" count="1" tclass="0x038000"/>')
    text = text.replace('version="1"', 'version="2"').replace('"0x030200"/>', '"0x038000"/>')
    text = text.replace("0x038000", "0x030000").replace('sm="80"', 'sm="94" gcn="gfx942"')
    found = read_topology(written(tmp_path, text))
    assert found.writer == "RCCL"
    links = platform_from_topology(found).topology.links
    assert TimePerByte.of_any("48 GB/s") in {one.rate for one in links}


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><system version="1">&b;</system>'


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (BOMB, ("line 1", "document type")),
        ("", ("line 1", "not XML")),
        ("<system version='1'>\n<cpu numaid='0'>\n", ("line 3", "<cpu> of line 2 is not closed")),
        ("<graphs version='1'/>", ("line 1", "<graphs>", "starts with <system>")),
        ("<system version='7'/>", ("line 1", "`version`", "1 (NCCL) or 2 (RCCL)")),
        ("<system/>", ("line 1", "lacks the attribute `version`")),
        ("<system version='1'/>", ("has no GPU",)),
        (GPUS.format(speed="", links=LINK).replace('count="4"', 'count="x"'), ("line 4", "count")),
        (GPUS.format(speed="", links=LINK).replace('rank="1"', 'rank="0"'), ("line 7", "twice")),
        (GPUS.format(speed="", links=LINK).replace("0000:01:00.0", "bus"), ("line 3", "busid")),
        ("<a>" * 70, ("nested more than 64",)),
    ],
)
def test_damaged_topologies_name_file_line_and_expectation(
    tmp_path: Path, text: str, parts: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigError, match=r"file\.xml") as caught:
        read_topology(written(tmp_path, text))
    message = f"{caught.value}\n{caught.value.hint}"
    assert all(part in message for part in parts), message
    assert "expected: " in message


def test_nodes_need_nics(tmp_path: Path) -> None:
    found = read_topology(written(tmp_path, GPUS.format(speed="", links=LINK)))
    with pytest.raises(ConfigError, match="no port of a NIC"):
        platform_from_topology(found, nodes=2)


# --- channel graphs -------------------------------------------------------------------------------

GRAPHS = """<graphs version="1">
  <graph id="0" pattern="4" crossnic="0" nchannels="2" speedintra="24" speedinter="20.5"
         latencyinter="0" typeintra="NVL" typeinter="PXB" samechannels="1">
    <channel><net dev="0"/><gpu dev="0" rank="0"/><gpu dev="1" rank="1"/><net dev="0"/></channel>
    <channel><net dev="72057594037927937"/><gpu dev="1"/><gpu dev="0"/><net dev="1"/></channel>
  </graph>
</graphs>
"""


def test_graphs_have_channels_rates_and_paths(tmp_path: Path) -> None:
    (found,) = read_graphs(written(tmp_path, GRAPHS))
    assert (found.pattern, found.count, found.inter_bytes_per_s) == ("ring", 2, 20.5e9)
    assert [(one.ranks, one.nics) for one in found.channels] == [((0, 1), (0, 0)), ((1, 0), (1, 1))]


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (("nchannels=\"2\"", "nchannels=\"3\""), "states 3 channels and has 2"),
        (("pattern=\"4\"", "pattern=\"9\""), "4 (ring)"),
        (("speedintra=\"24\"", "speedintra=\"-1\""), "a number, 0 or more"),
        (("</graphs>", ""), "not closed"),
    ],
)  # fmt: skip
def test_damaged_graphs_are_refused(tmp_path: Path, change: tuple[str, str], part: str) -> None:
    with pytest.raises(ConfigError, match=r"file\.xml, line") as caught:
        read_graphs(written(tmp_path, GRAPHS.replace(*change)))
    assert part in f"{caught.value}\n{caught.value.hint}"


# --- debug logs -----------------------------------------------------------------------------------

DEBUG = """NCCL version 2.21.5+cuda12.4
@NCCL_ALGO set by environment to Ring.
@Using network IB
@Pattern 4, crossNic 0, nChannels 2, bw 24.000000/20.500000, type NVL/PXB, sameChannels 1
@comm 0x55 rank 0 nRanks 4 nNodes 2 localRanks 2 localRank 0 MNNVL 0
@Channel 00/0 : 0[0] -> 2[0] [send] via NET/IB/0/GDRDMA
@Channel 01/0 : 0[0] -> 2[0] [send] via NET/IB/1(3)
@NVLS multicast support is not available on dev 0 (NVLS_NCHANNELS 0)
@2 coll channels, 0 collnet channels, 0 nvls channels, 2 p2p channels
@ncclCommInitRank comm 0x55 rank 0 nranks 4 cudaDev 0 nvmlDev 0 busId 1000 - Init COMPLETE
[1,0]<stdout>:n2:12:34 [1] NCCL INFO comm 0x5 rank 3 nranks 4 cudaDev 1 busId 2 - Init COMPLETE
@AllReduce: 4096 Bytes -> Algo 1 proto 2 time 34.69
@8192 Bytes -> Algo 0 proto 0 time 20.5
@AllGather: 64 Bytes -> Algo RING proto LL128 channel{Lo..Hi}={0..3}
@AllReduce: 4096 Bytes -> Algo MAGIC proto LL channel{Lo..Hi}={0..3}
@AllReduce: 12 Bytes -> Algo RING proto LL@Using network IB
NCCL INFO without a prefix
node-1:12:34 [0] transport/net_ib.cc:99 NCCL WARN NET/IB: completion with status=12
@AllReduce: 4096 Bytes -> Algo RING proto L""".replace("@", "node-1:12:34 [0] NCCL INFO ")


def test_a_debug_log_states_ranks_channels_networks_and_choices() -> None:
    found = parse_debug_log(DEBUG, source="job.log")
    assert found.version == "NCCL 2.21.5+cuda12.4"
    assert (found.nodes, dict(found.channels), found.missing) == ({4: 2}, {2: 1}, {4: [1, 2]})
    assert (dict(found.networks), dict(found.devices)) == ({"IB": 1}, {"IB/0": 1, "IB/1": 1})
    assert (dict(found.direct), found.environment) == ({"IB/0": 1}, {"NCCL_ALGO": "Ring"})
    assert found.nvls == {("node-1", 0): False}
    assert found.graphs["ring"].inter_bytes_per_s == 20.5e9
    kept = [(one.collective, one.size_bytes, one.algorithm, one.protocol, one.channels)
            for one in found.choices]  # fmt: skip
    assert kept == [
        ("all_reduce", 4096, "ring", "simple", None),
        (None, 8192, "tree", "ll", None),
        ("all_gather", 64, "ring", "ll128", 4),
    ]
    assert found.warnings == [(18, "NET/IB: completion with status=12")]
    assert [line for line, _ in found.omitted] == [15, 16, 17, 19]
    assert "may be truncated" in found.omitted[-1][1]


def test_mixed_versions_are_named_with_their_lines() -> None:
    text = f"{DEBUG}\nnode-2:1:2 [0] NCCL INFO NCCL version 2.20.3+cuda12.4\n"
    found = parse_debug_log(text, source="job.log")
    with pytest.raises(ConfigError, match=r"job\.log: mixes versions") as caught:
        _ = found.version
    assert "2.21.5+cuda12.4 (line 1), NCCL 2.20.3+cuda12.4 (line 20)" in str(caught.value)


def test_other_logs_are_refused() -> None:
    with pytest.raises(ConfigError, match="no record of NCCL") as caught:
        parse_debug_log("all is well\n", source="job.log")
    assert "NCCL_DEBUG=INFO" in str(caught.value)


# --- Inspector ------------------------------------------------------------------------------------


def inspected(**changes: object) -> str:
    one = {
        "coll": "AllGather",
        "coll_sn": 7,
        "coll_msg_size_bytes": 1024,
        "coll_exec_time_us": 50,
        "coll_timing_source": "kernel_gpu",
        "coll_algobw_gbs": 0.08,
    }
    return json.dumps({
        "header": {"id": "0x7f", "rank": 2, "n_ranks": 4, "nnodes": 1},
        "metadata": {"inspector_output_format_version": "v4.0", "hostname": "node-1", "pid": 1},
        "coll_perf": one | changes,
    })  # fmt: skip


def test_inspector_sizes_are_the_sum_of_all_shards() -> None:
    peer = inspected().replace("coll", "p2p").replace('"AllGather"', '"Send"')
    peer = peer.replace('"p2p_sn": 7', '"p2p_sn": 7, "p2p_peer": 3')
    found = parse_inspector(f"{inspected()}\n{peer}\n{inspected()[:99]}", source="rank2.log")
    row, sent = found.rows.iter_rows(named=True)
    assert (row["collective"], row["size_bytes"], row["rank"]) == ("all_gather", 4096, 2)
    assert (sent["collective"], sent["size_bytes"], sent["peer"]) == ("send", 1024, 3)
    ((line, reason),) = found.omitted
    assert line == 3
    assert "not JSON" in reason


def test_unknown_operations_of_the_inspector_are_left_out() -> None:
    found = parse_inspector(f"{inspected()}\n{inspected(coll='Magic')}\n", source="x")
    assert found.omitted == [(2, "unknown operation Magic")]
    with pytest.raises(ConfigError, match="has no operation"):
        parse_inspector("{}\n", source="x")


# --- nccl-tests ----------------------------------------------------------------------------------

SMALL = """# Collective test starting: all_reduce_perf
#  Rank  0 Group  0 Pid 1 on n1 device  0 [0000:07:00] NVIDIA A100
#  Rank  1 Group  0 Pid 2 on n2 device  0 [0000:07:00] NVIDIA A100
#   size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong
       8      2  float   sum    -1 36.47   0.00   0.00      0 34.74   0.00   0.00      0
"""


def test_sizes_with_a_bandwidth_rounded_to_zero_are_kept() -> None:
    found = parse_log(SMALL, source="job.log")
    assert found.rows["time_us"].to_list() == [36.47, 34.74]
    assert found.rows["bytes_per_s"].to_list() == [None, None]
    assert found.omitted.is_empty()


# --- damaged files --------------------------------------------------------------------------------


def read_file(read: Callable[[Path], object], path: Path, data: bytes) -> None:
    path.write_bytes(data)
    read(path)


def _topology(path: Path) -> None:
    found = read_topology(path)
    platform_from_topology(found).topology  # noqa: B018 - builds the graph


READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "topology": (GPUS.format(speed="16 GT/s", links=LINK), _topology),
    "node": (NODE.read_text("utf-8"), _topology),
    "graphs": (GRAPHS, read_graphs),
    "debug": (DEBUG, lambda path: parse_debug_log(path.read_text("utf-8", "replace"), source="x")),
    "inspector": (
        inspected(),
        lambda path: parse_inspector(path.read_text("utf-8", "replace"), source="x"),
    ),
}
PIECES = st.sampled_from(
    ["", "<", ">", '"', "&a;", "\x00", "-1", "9" * 30, "1e99", "nan", "0x", "\n", "</gpu>", "é"]
)
CHANGES = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), PIECES), min_size=1, max_size=6)


@pytest.mark.parametrize("kind", READERS)
def test_damaged_files_raise_errors_of_tutti_only(kind: str, tmp_path: Path) -> None:
    text, read = READERS[kind]

    @settings(max_examples=30, derandomize=True)
    @given(CHANGES)
    def check(changes: list[tuple[float, int, str]]) -> None:
        damaged = text
        for share, removed, piece in changes:
            at = int(share * len(damaged))
            damaged = damaged[:at] + piece + damaged[at + removed :]
        try:
            read_file(read, tmp_path / "file", damaged.encode())
        except TuttiError as error:
            assert str(error)  # noqa: PT017 - either a result or an error of tutti

    check()
