"""Traces of netrace: packets of a coherent memory system, and those that wait for them.

Source: ``netrace.h`` and ``netrace.c`` of Hestness's netrace 1.0 (University of Texas at Austin):
a header of 72 bytes, notes, regions of 24 bytes, then packets of 21 bytes with the ids of the
packets that wait for them. Everything is little-endian and packed; files are compressed by bzip2.
"""

from __future__ import annotations

import bz2
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from tutti.base.files import limits
from tutti.base.files.mistakes import mistake
from tutti.base.files.reader import read_bytes
from tutti.formats.dependent import TracePacket, dependent_trace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EXPECTED: Final = "a trace of netrace (.tra.bz2)"
MOST_PACKETS: Final = 1_000_000
"""The most packets that are converted."""
_HEADER: Final = struct.Struct("<If30sBxQQII8x")
_REGION: Final = struct.Struct("<QQQ")
_PACKET: Final = struct.Struct("<QIIBBBBB")
_MAGIC: Final = 0x484A5455
_PIECE: Final = 1 << 20
_MOST_NOTES, _MOST_REGIONS = 8191, 100
_BYTES: Final = {
    1: 8, 2: 72, 3: 72, 4: 72, 5: 8, 6: 72, 13: 8, 14: 8, 15: 8, 16: 72, 25: 8, 27: 8, 28: 8,
    29: 8, 30: 72,
}  # fmt: skip
"""Bytes of a packet by its type, as `nt_packet_sizes`; other types are invalid."""
_RESPONSES: Final = frozenset({2, 3, 5, 14, 16, 28, 30})
"""Types that answer a request."""


class Packet(NamedTuple):
    """A packet.

    Attributes:
        cycle: The first cycle in which it can be injected.
        id: Its id.
        type: Its type, as in `nt_packet_types`.
        source: The node that sends it.
        destination: The node that receives it.
        dependents: The ids of the packets that wait for its arrival.
    """

    cycle: int
    id: int
    type: int
    source: int
    destination: int
    dependents: tuple[int, ...]


@dataclass(frozen=True)
class Converted:
    """A trace as comma-separated values.

    Attributes:
        text: The trace, for :class:`tutti.networks.flit.Trace`.
        benchmark: The benchmark.
        nodes: Number of nodes.
        packets: Number of packets.
        is_cut: Whether the file has more packets.
        unknown: Dependencies on packets that are not converted.
    """

    text: str
    benchmark: str
    nodes: int
    packets: int
    is_cut: bool
    unknown: int


class _Bytes:
    """The decompressed bytes of a file, as far as they are read."""

    def __init__(self, path: Path) -> None:
        self.source = str(path)
        self._data = memoryview(read_bytes(path, limits.Bytes.TRACE, EXPECTED))
        self._unpack: bz2.BZ2Decompressor | None = None
        if bytes(self._data[:3]) == b"BZh":
            self._unpack = bz2.BZ2Decompressor()
        self._ready = bytearray()
        self._at = 0
        self.offset = 0

    def take(self, count: int) -> bytes:
        """Returns the next bytes; fewer at the end of the file."""
        while len(self._ready) - self._at < count and self._fill():
            pass
        found = bytes(self._ready[self._at : self._at + count])
        self._at += len(found)
        self.offset += len(found)
        return found

    def _fill(self) -> bool:
        """Unpacks a piece; returns whether there was one."""
        del self._ready[: self._at]
        self._at = 0
        if self._unpack is None:
            piece, self._data = bytes(self._data[:_PIECE]), self._data[_PIECE:]
            self._ready += piece
            return bool(piece)
        if self._unpack.eof:
            return False
        piece = b""
        if self._unpack.needs_input:
            piece, self._data = bytes(self._data[:_PIECE]), self._data[_PIECE:]
        try:
            found = self._unpack.decompress(piece, _PIECE)
        except (OSError, ValueError, EOFError):
            raise mistake("the compressed data is damaged", source=self.source) from None
        self._ready += found
        if not (found or piece):
            raise mistake("the compressed data is truncated", source=self.source)
        return True


def convert(
    path: Path,
    *,
    flit_bytes: int,
    packets: int = MOST_PACKETS,
    region: int = 0,
    delay: int = 0,
    classes: int = 1,
) -> Converted:
    """Reads a trace, and returns it as comma-separated values with dependencies.

    Cycles count from the first packet. A packet waits for the arrival of all packets that list it,
    then `delay` cycles.

    Args:
        path: The file.
        flit_bytes: Bytes of a flit.
        packets: The most packets to read.
        region: The region of the file at which to start, from 0.
        delay: Cycles from the last of these arrivals to the packet.
        classes: 1, or 2 for responses in class 1.

    Raises:
        ConfigError: The file is not a trace of netrace, is damaged, or lacks the region.
    """
    if flit_bytes < 1:
        raise mistake(f"a flit has {flit_bytes} B", source="--flit", expected="1 B or more")
    data = _Bytes(path)
    benchmark, nodes = _start(data, region)
    read: list[Packet] = []
    is_cut = False
    for packet in _packets(data, nodes):
        if len(read) == packets:
            is_cut = True
            break
        read.append(packet)
    if not read:
        raise mistake("has no packets", source=data.source, key=f"region {region}")
    text, unknown = _written(read, (flit_bytes, delay, classes), data.source)
    return Converted(text, benchmark, nodes, len(read), is_cut, unknown)


def _start(data: _Bytes, region: int) -> tuple[str, int]:
    """Reads the header and skips to a region; returns the benchmark and the number of nodes."""
    header = data.take(_HEADER.size)
    fields = _HEADER.unpack(header) if len(header) == _HEADER.size else None
    if fields is None or fields[0] != _MAGIC:
        raise mistake("is not a trace of netrace", source=data.source, expected=EXPECTED)
    _, version, name, nodes, _, _, notes, regions = fields
    if version != 1.0:
        raise mistake(f"has version {version:g}", source=data.source, expected="version 1")
    if notes > _MOST_NOTES or regions > _MOST_REGIONS or not nodes:
        raise mistake(
            "the header is damaged", source=data.source,
            expected=f"nodes, up to {_MOST_NOTES:,} bytes of notes and {_MOST_REGIONS} regions",
        )  # fmt: skip
    data.take(notes)
    found = data.take(_REGION.size * regions)
    if len(found) < _REGION.size * regions:
        raise mistake("ends within its header", source=data.source)
    if region >= max(regions, 1):
        raise mistake(
            f"there is no region {region}", source=data.source,
            expected=f"0 to {max(regions, 1) - 1}",
        )  # fmt: skip
    skip = _REGION.unpack_from(found, region * _REGION.size)[0] if regions else 0
    while skip > 0 and (piece := data.take(min(skip, _PIECE))):
        skip -= len(piece)
    return name.split(b"\0")[0].decode("ascii", "replace"), nodes


def _packets(data: _Bytes, nodes: int) -> Iterator[Packet]:
    """Yields packets up to the end of the file."""
    while found := data.take(_PACKET.size):
        where = f"packet at byte {data.offset - len(found):,}"
        if len(found) < _PACKET.size:
            raise mistake("ends within a packet", source=data.source, key=where)
        cycle, number, _, kind, source, destination, _, count = _PACKET.unpack(found)
        later = data.take(4 * count)
        if len(later) < 4 * count:
            raise mistake("ends within a packet", source=data.source, key=where)
        if kind not in _BYTES:
            raise mistake(f"has the invalid type {kind}", source=data.source, key=where)
        if max(source, destination) >= nodes:
            raise mistake(
                f"names node {max(source, destination)}", source=data.source, key=where,
                expected=f"0 to {nodes - 1}",
            )  # fmt: skip
        if cycle > limits.MOST:
            raise mistake(f"has the cycle {cycle:,}", source=data.source, key=where)
        dependents = struct.unpack(f"<{count}I", later)
        yield Packet(cycle, number, kind, source, destination, dependents)


def _written(read: list[Packet], settings: tuple[int, int, int], source: str) -> tuple[str, int]:
    """Returns the text of packets, and the number of dependencies on others.

    Args:
        read: The packets.
        settings: Bytes of a flit, cycles after arrivals, number of classes.
        source: The file, for messages.
    """
    flit_bytes, delay, classes = settings
    start = min(packet.cycle for packet in read)
    packets = (
        TracePacket(
            cycle=packet.cycle - start,
            source=packet.source,
            destination=packet.destination,
            flits=-(-_BYTES[packet.type] // flit_bytes),
            kind=int(classes > 1 and packet.type in _RESPONSES),
            id=packet.id,
            dependents=packet.dependents,
        )
        for packet in read
    )
    return dependent_trace(packets, delay=delay, source=source)
