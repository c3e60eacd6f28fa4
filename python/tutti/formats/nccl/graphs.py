"""Channel graphs that NCCL writes (``NCCL_GRAPH_DUMP_FILE``): rings, trees and their rates.

Source: ``src/graph/search.cc`` and ``src/include/graph.h`` of NCCL 2.30.7.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tutti.base.files.mistakes import mistake
from tutti.formats.xml_files import Element, read_xml

PATTERNS: Final = {
    1: "balanced_tree",
    2: "split_tree",
    3: "tree",
    4: "ring",
    5: "nvls",
    6: "collnet_direct",
}
"""Names of the search patterns (``NCCL_TOPO_PATTERN_*``)."""
_EXPECTED: Final = "channel graphs of NCCL (NCCL_GRAPH_DUMP_FILE)"
_MOST: Final = 1 << 20
_MOST_CHANNELS: Final = 1024


@dataclass(frozen=True)
class Channel:
    """A channel: ranks in order, and the device numbers of the NICs at its ends."""

    ranks: tuple[int, ...]
    nics: tuple[int, ...]
    line: int


@dataclass(frozen=True)
class ChannelGraph:
    """The channels of a pattern.

    Attributes:
        pattern: The name of the pattern, of `PATTERNS`.
        count: The number of channels.
        intra_bytes_per_s: Bandwidth of a channel within the node.
        inter_bytes_per_s: Bandwidth of a channel between nodes.
        intra: The slowest type of path within the node, such as ``NVL``.
        inter: The slowest type of path from a GPU to its NIC, such as ``PXB``.
        same: Whether all channels connect the GPUs in the same order.
        channels: The channels; empty in debug logs.
    """

    pattern: str
    count: int
    crosses_nics: bool
    intra_bytes_per_s: float
    inter_bytes_per_s: float
    intra: str
    inter: str
    same: bool
    channels: tuple[Channel, ...]
    line: int


def read_graphs(path: str | Path) -> tuple[ChannelGraph, ...]:
    """Reads the channel graphs of a communicator.

    Raises:
        ConfigError: The file cannot be read, is truncated or is not such a file; the message has
            file, line, and what was expected.
    """
    root = read_xml(Path(path), "graphs", _EXPECTED)
    if root.integer("version") != 1:
        root.refuse("version", "1")
    return tuple(_graph(one) for one in root.each("graph"))


def _graph(element: Element) -> ChannelGraph:
    number = element.integer("pattern")
    if number not in PATTERNS:
        known = ", ".join(f"{key} ({name})" for key, name in PATTERNS.items())
        element.refuse("pattern", f"one of {known}")
    channels = tuple(_channel(one) for one in element.each("channel"))
    stated = element.count("nchannels", _MOST_CHANNELS)
    if stated != len(channels):
        raise mistake(
            f"<graph> states {stated} channels and has {len(channels)}",
            source=element.place,
            expected="as many <channel> as nchannels",
            hint="the file may have been edited or truncated",
        )
    return ChannelGraph(
        pattern=PATTERNS[number],
        count=stated,
        crosses_nics=element.integer("crossnic") != 0,
        intra_bytes_per_s=element.number("speedintra") * 1e9,
        inter_bytes_per_s=element.number("speedinter") * 1e9,
        intra=element.text("typeintra", ""),
        inter=element.text("typeinter", ""),
        same=element.integer("samechannels", 1) != 0,
        channels=channels,
        line=element.line,
    )


def _channel(element: Element) -> Channel:
    return Channel(
        # Before 2.19 files name GPUs by device number only.
        ranks=tuple(
            one.count("rank", _MOST) if "rank" in one.attributes else one.count("dev", _MOST)
            for one in element.each("gpu")
        ),
        nics=tuple(_net(one) for one in element.each("net")),
        line=element.line,
    )


def _net(element: Element) -> int:
    """Returns the number of a NIC without the host in its upper byte."""
    return element.integer("dev") & ((1 << 56) - 1)
