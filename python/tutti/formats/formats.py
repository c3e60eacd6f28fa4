"""File formats of other tools, and of tutti, that `tutti convert` reads and writes.

A format reads files into one of four contents, and writes that content. A conversion between
contents exists in one direction only: a schedule of a given size becomes a trace, and a trace
becomes messages.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from tutti.base.files.mistakes import known_name, mistake

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tutti.base.units import Size

    Reader = Callable[[Path, "Options"], tuple[Any, tuple[str, ...]]]
    Writer = Callable[[Any, Path, "Options"], tuple[str, ...]]

INFERRED = "inferred: "
"""The start of a line about a value that a file does not state, among the lines of losses."""


def stated(line: str) -> str:
    """Returns the remark about a loss or an inferred value."""
    return line if line.startswith(INFERRED) else f"lost: {line}"


Content = Literal["schedule", "trace", "topology", "messages"]
"""What a file holds: a `tutti.Schedule`, `tutti.workloads.operations.Trace`, `tutti.Topology` or
`tutti.formats.messages.Messages`."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of a conversion. A format refuses those that it does not list.

    Attributes:
        size: The payload by the collective's convention, for formats with sizes.
        algorithm: The algorithm that replaces collectives by messages.
        repair: Whether faults with a known repair are repaired.
        groups: A file of process groups, for traces that name groups.
    """

    size: Size | None = None
    algorithm: str | None = None
    repair: bool = False
    groups: Path | None = None

    def given(self) -> tuple[str, ...]:
        """Returns the names of the options that differ from their defaults."""
        return tuple(each.name for each in fields(self) if getattr(self, each.name) != each.default)


@dataclass(frozen=True, kw_only=True)
class Format:
    """A file format.

    Attributes:
        name: The name, such as ``"msccl-xml"``.
        content: What its files hold.
        endings: File endings, such as ``".xml"``; several formats may share one.
        summary: One line for the list of formats.
        source: Project, file and version that define the format.
        read: Reads a file. Returns the content and one line per loss: each part of the file
            that the content does not represent. None if the format is write-only.
        write: Writes a file and returns one line per loss. None if the format is read-only.
        matches: Whether the first bytes of a file (at most 4,096) have this format.
        files: Returns the files that `write` creates for a value and a path. None if it is the
            path.
        read_options: The options that `read` honours.
        write_options: The options that `write` honours.
    """

    name: str
    content: Content
    endings: tuple[str, ...]
    summary: str
    source: str
    read: Reader | None = None
    write: Writer | None = None
    matches: Callable[[bytes], bool] | None = None
    files: Callable[[Any, Path], list[Path]] | None = None
    read_options: tuple[str, ...] = ()
    write_options: tuple[str, ...] = ()

    def reader(self, *, option: str = "--from") -> Reader:
        """Returns the function `read`.

        Raises:
            ConfigError: The format is write-only; `option` names it.
        """
        if self.read is None:
            able = ", ".join(each.name for each in formats() if each.read)
            raise mistake(f"{self.name} is write-only", source=option, expected=f"one of {able}")
        return self.read

    def writer(self, *, option: str = "--to") -> Writer:
        """Returns the function `write`.

        Raises:
            ConfigError: The format is read-only; `option` names it.
        """
        if self.write is None:
            able = ", ".join(each.name for each in formats() if each.write)
            raise mistake(f"{self.name} is read-only", source=option, expected=f"one of {able}")
        return self.write


_HEAD = 4096
_GOAL_MAGIC: Final = (4223).to_bytes(8, "little")


def formats() -> tuple[Format, ...]:
    """Returns all formats in the order of their names."""
    return _FORMATS


def named(name: str, *, option: str) -> Format:
    """Returns the format of a name.

    Raises:
        ConfigError: No format has the name.
    """
    known = {each.name: each for each in formats()}
    return known[known_name(name, known, what="format", source=option)]


def head(path: Path) -> bytes:
    """Returns the first bytes of a file, from which its format is recognised.

    Raises:
        ConfigError: The file cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(_HEAD)
    except OSError as error:
        raise mistake(f"cannot be read: {error.strerror}", source=str(path)) from None


def recognised(
    path: Path,
    start: bytes | None,
    *,
    option: str,
    contents: tuple[Content, ...] = get_args(Content),
) -> Format:
    """Returns the format of a file, from its ending and, for input, its first bytes.

    Args:
        path: The file.
        start: The first bytes of an input file; None for an output file.
        option: The option that names a format explicitly, for the error.
        contents: Contents that decide if several formats have the ending.

    Raises:
        ConfigError: No format fits, or several do.
    """
    usable = [each for each in formats() if (each.write if start is None else each.read)]
    fitting = [each for each in usable if any(path.name.endswith(end) for end in each.endings)]
    if start is not None:
        fitting = [each for each in fitting if each.matches is None or each.matches(start)] or [
            each for each in usable if each.matches is not None and each.matches(start)
        ]
    fitting = [each for each in fitting if each.content in contents] or fitting
    if len(fitting) == 1:
        return fitting[0]
    choices = fitting or [each for each in usable if each.content in contents]
    raise mistake(
        "several formats have this ending" if fitting else "unknown format",
        source=str(path),
        expected=f"{option} with one of {', '.join(each.name for each in choices)}",
    )


def _at(place: str, *, takes_options: bool = True, **fixed: object) -> Callable[..., Any]:
    """Returns a function that calls the function at a place, whose module it imports then.

    Args:
        place: The module below this package, and the function.
        takes_options: Whether the function takes the options of the conversion.
        fixed: Further arguments.
    """
    module, _, name = place.partition(":")

    def call(*arguments: object) -> Any:  # noqa: ANN401 - the content depends on the format
        function = getattr(import_module(f"tutti.formats.{module}"), name)
        return function(*(arguments if takes_options else arguments[:-1]), **fixed)

    return call


def _head(pattern: str) -> Callable[[bytes], bool]:
    first = re.compile(pattern.encode())
    return lambda head: first.match(head) is not None


def _is_profile(head: bytes) -> bool:
    """Whether a file starts as a Chrome trace, plain or gzipped, does."""
    if head.startswith(b"\x1f\x8b"):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, _HEAD)
        except zlib.error:
            return False
    is_kineto = b'"schemaVersion"' in head and b'"deviceProperties"' in head
    return is_kineto or b'"traceEvents"' in head


_FORMATS = (
    Format(
        name="anynet",
        content="topology",
        endings=(".anynet", "anynet_file"),
        summary="Networks of BookSim 2 (anynet), in cycles of 1 ns and flits of 16 B.",
        source="BookSim 2.0, src/networks/anynet.cpp",
        read=_at("booksim.anynet:read_anynet"),
        write=_at("booksim.anynet:write_anynet"),
        matches=_head(r"\s*(?:router|node)[ \t]+[0-9]+[ \t]+(?:router|node)[ \t]+[0-9]+"),
    ),
    Format(
        name="chakra",
        content="trace",
        endings=(".et",),
        summary="Chakra execution traces of MLCommons: a file per rank.",
        source="et_def.proto of mlcommons/chakra 1.0.0 (21585d8)",
        read=_at("chakra.trace:read_trace"),
        write=_at("chakra.writer:write_trace"),
        files=_at("chakra.writer:written_files"),
        read_options=("repair", "groups"),
    ),
    Format(
        name="chunk-program",
        content="schedule",
        endings=(".py",),
        summary="Chunk programs in Python. Write-only: `--from python MODULE:build` executes them.",
        source="docs/guides/write-a-schedule.md",
        write=_at("chunk_program:write_program"),
    ),
    Format(
        name="goal",
        content="trace",
        endings=(".goal",),
        summary="Traces of LogGOPSim and ATLAHS in text form.",
        source="spcl/LogGOPSim 76451de, src/LogGOPSim/txt2bin.re",
        read=_at("goal.text:read_goal"),
        write=_at("goal.text:write_goal"),
        matches=lambda head: b"num_ranks" in head,
        write_options=("algorithm",),
    ),
    Format(
        name="goal-binary",
        content="trace",
        endings=(".bin",),
        summary="Traces of LogGOPSim and ATLAHS in the binary form of txt2bin.",
        source="spcl/LogGOPSim 76451de, src/LogGOPSim/Parser.hpp",
        read=_at("goal.text:read_goal_binary"),
        write=_at("goal.text:write_goal_binary"),
        matches=lambda head: head.startswith(_GOAL_MAGIC),
        write_options=("algorithm",),
    ),
    Format(
        name="graphml",
        content="topology",
        endings=(".graphml",),
        summary="Graphs of networkx in GraphML.",
        source="networkx 3.6.1, readwrite/graphml.py",
        read=_at("graph_files:read_graph"),
        write=_at("graph_files:write_graph"),
        matches=lambda head: b"<graphml" in head,
    ),
    Format(
        name="htsim-cm",
        content="messages",
        endings=(".cm",),
        summary="Connection matrices of htsim.",
        source="Broadcom/csg-htsim, sim/datacenter/connection_matrix.cpp",
        read=_at("htsim.messages:read_connections", takes_options=False),
        write=_at("htsim.messages:write_connections", takes_options=False),
    ),
    Format(
        name="htsim-topo",
        content="topology",
        endings=(".topo",),
        summary="Fat trees of htsim, of two or three tiers.",
        source="Broadcom/csg-htsim, sim/datacenter/fat_tree_topology.cpp",
        read=_at("htsim.topology:read_fat_tree", takes_options=False),
        write=_at("htsim.topology:write_fat_tree", takes_options=False),
    ),
    Format(
        name="kineto",
        content="trace",
        endings=(".json", ".json.gz"),
        summary="Profiles of PyTorch (torch.profiler, Kineto): a JSON file per rank.",
        source="pytorch/kineto 114171d, libkineto/src/output_json.cpp",
        read=_at("kineto.trace:read_trace"),
        matches=_is_profile,
        read_options=("repair",),
    ),
    Format(
        name="msccl-xml",
        content="schedule",
        endings=(".xml",),
        summary="Programs of MSCCL, also of msccl-tools and RCCL.",
        source="microsoft/msccl b23e9cd (src/graph/topo.cc), ROCm/rccl 0cbce2a (msccl_parser.cc)",
        read=_at("msccl.xml_reader:read_xml_program"),
        write=_at("msccl.xml_writer:write_xml_program"),
        matches=lambda head: b"<algo" in head,
    ),
    Format(
        name="mscclpp-json",
        content="schedule",
        endings=(".json",),
        summary="Execution plans of MSCCL++.",
        source="microsoft/mscclpp 1f5f065 (src/core/executor/execution_plan.cc)",
        read=_at("msccl.plan_reader:read_plan"),
        write=_at("msccl.plan_writer:write_plan"),
        matches=lambda head: b'"gpus"' in head and b'"collective"' in head,
    ),
    Format(
        name="nccl-topology-xml",
        content="topology",
        endings=(".xml",),
        summary="Node topologies of NCCL and RCCL (NCCL_TOPO_DUMP_FILE).",
        source="NCCL 2.30.7, src/graph/xml.cc",
        read=_at("graph_files:read_nccl"),
        matches=lambda head: b"<system" in head,
    ),
    Format(
        name="node-link",
        content="topology",
        endings=(".json",),
        summary="Graphs of networkx in node-link JSON.",
        source="networkx 3.6.1, readwrite/json_graph/node_link.py",
        read=_at("graph_files:read_graph"),
        write=_at("graph_files:write_graph"),
        matches=lambda head: b'"nodes"' in head and head.lstrip().startswith(b"{"),
    ),
    Format(
        name="ns3-flows",
        content="messages",
        endings=(".txt",),
        summary="Flow files of the ns-3 of HPCC.",
        source="alibaba-edu/High-Precision-Congestion-Control, simulation/scratch/third.cc",
        read=_at("ns3:read_flows", takes_options=False),
        write=_at("ns3:write_flows", takes_options=False),
        matches=_head(r"\s*\d+[ \t]*\r?\n"),
    ),
    Format(
        name="ns3-simai",
        content="topology",
        endings=(".simai", ".txt"),
        summary="Topologies of the ns-3 of SimAI, with servers and NVSwitches.",
        source="aliyun/SimAI 1.7, astra-sim/network_frontend/ns3/common.h",
        read=_at("ns3:read_network", takes_options=False, simai=True),
        write=_at("ns3:write_network", takes_options=False, simai=True),
        matches=_head(r"\s*(?:\d+[ \t]+){5}[A-Za-z]\S*\s"),
    ),
    Format(
        name="ns3-topology",
        content="topology",
        endings=(".txt",),
        summary="Topologies of the ns-3 of HPCC and ASTRA-sim.",
        source="astra-sim/astra-network-ns3, scratch/common.h",
        read=_at("ns3:read_network", takes_options=False, simai=False),
        write=_at("ns3:write_network", takes_options=False, simai=False),
        matches=_head(r"\s*\d+[ \t]+\d+[ \t]+\d+[ \t]*\r?\n"),
    ),
    Format(
        name="schedule",
        content="schedule",
        endings=(".schedule",),
        summary="Schedules of tutti in text form.",
        source="docs/guides/write-a-schedule.md",
        read=_at("schedule_text:read"),
        write=_at("schedule_text:write"),
        matches=lambda head: head.lstrip().startswith(b"tutti schedule"),
    ),
    Format(
        name="simgrid-xml",
        content="topology",
        endings=(".xml",),
        summary="Platforms of SimGrid (DTD 4.1).",
        source="SimGrid 4.1, src/kernel/xml/simgrid.dtd",
        read=_at("simgrid.platform_file:read_platform", takes_options=False),
        matches=lambda head: b"<platform" in head,
    ),
    Format(
        name="tacos-csv",
        content="schedule",
        endings=(".csv",),
        summary="Schedules of TACOS: the chunks that each link carries.",
        source="astra-sim/tacos bf38faf, src/writer/csv_writer.cpp",
        read=_at("tacos:read_schedule"),
        matches=lambda head: head.startswith(b"NPUs Count,"),
    ),
)
"""In the order of their names. Modules are imported when a format reads or writes."""
