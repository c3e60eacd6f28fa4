"""Node topologies that NCCL and RCCL write (``NCCL_TOPO_DUMP_FILE``).

A file has the CPU sockets of a node, the PCI tree below each, and in it GPUs with their NVLink,
xGMI and C2C links, and NICs with their ports. A multi-node NVLink domain has several hosts in one
file (``host_hash``).

Source: ``src/graph/xml.cc`` and ``src/graph/topo.cc`` of NCCL 2.30.7; ``xgmi`` and ``gcn`` of RCCL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from tutti.base.files.mistakes import mistake, shown
from tutti.formats.xml_files import Element, read_xml

if TYPE_CHECKING:
    from collections.abc import Iterator

EXPECTED: Final = "a topology of NCCL (NCCL_TOPO_DUMP_FILE)"
_BUS: Final = re.compile(r"[0-9a-fA-F]{1,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?")
_SPEED: Final = re.compile(r"(\d{1,3}(?:\.\d{1,2})?) GT/s(?: PCIe)?")
_INVISIBLE: Final = "fffffff:ffff:ff"
_CLASSES: Final = {"0x068000": "nvswitch", "0x068001": "cpu"}
_VERSIONS: Final = {1: "NCCL", 2: "RCCL"}
_MOST: Final = 1 << 20

LinkKind = Literal["nvlink", "xgmi", "c2c"]


class Omission(NamedTuple):
    """A part of a file that was left out, or for which a default was assumed, with the reason."""

    line: int
    reason: str


@dataclass(frozen=True)
class GpuLink:
    """Links of one kind from a GPU to one neighbour.

    Attributes:
        kind: The kind of link.
        to: What is at the other end.
        target: The bus id of a GPU or an NVSwitch; empty for the CPU socket.
        count: The number of links.
        mb_per_s: The rate of a C2C link in MB/s; 0 for other links, whose files do not state it.
    """

    kind: LinkKind
    to: Literal["gpu", "nvswitch", "cpu"]
    target: str
    count: int
    line: int
    mb_per_s: int = 0


@dataclass(frozen=True)
class Gpu:
    """A GPU; without `rank`, the communicator does not use it."""

    dev: int
    rank: int | None
    sm: int
    gcn: str
    gdr: bool
    links: tuple[GpuLink, ...]
    line: int


@dataclass(frozen=True)
class Port:
    """A port of a NIC (``net``); `mbit_per_s` is 0 if its speed is unknown."""

    name: str
    dev: int
    mbit_per_s: int
    gdr: bool
    line: int


@dataclass(frozen=True)
class Pci:
    """A PCI device: a switch with devices below it, a GPU or a NIC.

    Attributes:
        gt_per_s: Transfers per second of a lane of the link to its parent, in 10^9; 0 if unknown.
        width: Lanes of that link; 0 if unknown.
    """

    bus: str
    gt_per_s: float
    width: int
    gpus: tuple[Gpu, ...]
    ports: tuple[Port, ...]
    below: tuple[Pci, ...]
    line: int


@dataclass(frozen=True)
class Cpu:
    """A NUMA domain with the PCI devices on it."""

    host: str
    numa: int
    arch: str
    vendor: str
    family: int
    model: int
    devices: tuple[Pci, ...]
    ports: tuple[Port, ...]
    line: int

    def each(self) -> Iterator[Pci]:
        """Yields all PCI devices of the socket, parents first."""
        stack = list(reversed(self.devices))
        while stack:
            device = stack.pop()
            yield device
            stack.extend(reversed(device.below))


@dataclass(frozen=True)
class Topology:
    """The topology of a node.

    Attributes:
        source: The file.
        writer: NCCL or RCCL.
        cpus: The sockets, in the order of the file.
        omitted: Parts that were left out or assumed.
    """

    source: str
    writer: str
    cpus: tuple[Cpu, ...]
    omitted: tuple[Omission, ...]

    @property
    def gpus(self) -> list[tuple[Cpu, Pci, Gpu]]:
        """The GPUs by rank, then in the order of the file, each with its device and socket."""
        found = [(cpu, pci, gpu) for cpu in self.cpus for pci in cpu.each() for gpu in pci.gpus]
        return sorted(found, key=lambda one: (one[2].rank is None, one[2].rank or 0))

    @property
    def ports(self) -> list[tuple[Cpu, Pci | None, Port]]:
        """The ports of all NICs by device number, each with its PCI device and socket."""
        found: list[tuple[Cpu, Pci | None, Port]] = []
        for cpu in self.cpus:
            found += [(cpu, None, port) for port in cpu.ports]
            found += [(cpu, pci, port) for pci in cpu.each() for port in pci.ports]
        return sorted(found, key=lambda one: one[2].dev)


def read_topology(path: str | Path) -> Topology:
    """Reads the topology of a node.

    Args:
        path: A file that ``NCCL_TOPO_DUMP_FILE`` names, or a ``NCCL_TOPO_FILE`` of a system.

    Returns:
        The topology. Elements that tutti does not know are left out and listed in `omitted`.

    Raises:
        ConfigError: The file cannot be read, is truncated or is not such a file; the message has
            file, line, and what was expected.
    """
    root = read_xml(Path(path), "system", EXPECTED)
    version = root.integer("version")
    if version not in _VERSIONS:
        root.refuse("version", "1 (NCCL) or 2 (RCCL)")
    reader = _Reader()
    cpus = tuple(reader.cpu(one) for one in reader.known(root, "cpu"))
    found = Topology(str(path), _VERSIONS[version], cpus, tuple(sorted(reader.omitted)))
    _check(found)
    return found


def _check(found: Topology) -> None:
    """Rejects topologies without GPUs, and ranks that appear twice."""
    if not found.gpus:
        raise mistake(
            "has no GPU",
            source=found.source,
            expected="a <gpu> in a <pci> of a <cpu>",
            hint="use a file of NCCL_TOPO_DUMP_FILE: those for NCCL_TOPO_FILE may lack GPUs",
        )
    lines: dict[int, int] = {}
    for _, _, gpu in found.gpus:
        if gpu.rank is None:
            continue
        if gpu.rank in lines:
            raise mistake(
                f"rank {gpu.rank} appears twice",
                source=f"{found.source}, line {gpu.line}",
                expected=f"each rank once; line {lines[gpu.rank]} has it, too",
            )
        lines[gpu.rank] = gpu.line


class _Reader:
    """Converts elements, and collects what it leaves out."""

    def __init__(self) -> None:
        self.omitted: list[Omission] = []

    def known(self, parent: Element, *tags: str) -> Iterator[Element]:
        """Yields the children of known tags; the others are left out, with their children."""
        for child in parent.children:
            if child.tag in tags:
                yield child
            else:
                what = shown(child.tag)[1:-1]
                self.omit(child, f"unknown element <{what}> in <{parent.tag}>")

    def omit(self, element: Element, reason: str) -> None:
        self.omitted.append(Omission(element.line, reason))

    def cpu(self, element: Element) -> Cpu:
        children = list(self.known(element, "pci", "nic"))
        return Cpu(
            host=element.text("host_hash", ""),
            numa=element.integer("numaid"),
            arch=element.text("arch", ""),
            vendor=element.text("vendor", ""),
            family=element.integer("familyid", 0),
            model=element.integer("modelid", 0),
            devices=tuple(self.pci(one) for one in children if one.tag == "pci"),
            ports=tuple(
                port for one in children if one.tag == "nic" for port in self.nic_ports(one)
            ),
            line=element.line,
        )

    def pci(self, element: Element) -> Pci:
        bus = element.text("busid")
        if not _BUS.fullmatch(bus):
            element.refuse("busid", "a bus id, such as 0000:1b:00.0")
        children = list(self.known(element, "pci", "gpu", "nic", "pcilink"))
        return Pci(
            bus=bus.lower(),
            gt_per_s=self.speed(element),
            width=element.count("link_width", 32, default=0),
            gpus=tuple(self.gpu(one) for one in children if one.tag == "gpu"),
            ports=tuple(
                port for one in children if one.tag == "nic" for port in self.nic_ports(one)
            ),
            below=tuple(self.pci(one) for one in children if one.tag == "pci"),
            line=element.line,
        )

    def speed(self, element: Element) -> float:
        text = element.text("link_speed", "")
        found = _SPEED.fullmatch(text.strip())
        if found is None and text.strip() not in {"", "Unknown speed", "Unknown"}:
            self.omit(element, f"unknown link speed {shown(text)}: 8 GT/s is assumed, as NCCL does")
            return 8.0
        return float(found[1]) if found else 0.0

    def gpu(self, element: Element) -> Gpu:
        rank = element.integer("rank", -1)
        links = (self.link(one) for one in self.known(element, "nvlink", "xgmi", "c2c"))
        return Gpu(
            dev=element.integer("dev"),
            rank=rank if rank >= 0 else None,
            sm=element.count("sm", 9999, default=0),
            gcn=element.text("gcn", ""),
            gdr=element.integer("gdr", 0) > 0,
            links=tuple(link for link in links if link is not None),
            line=element.line,
        )

    def link(self, element: Element) -> GpuLink | None:
        count = element.count("count", 1024)
        if element.tag == "c2c":
            rate = element.count("bw", _MOST)
            return GpuLink("c2c", "cpu", "", count, element.line, rate)
        kind: LinkKind = "xgmi" if element.tag == "xgmi" else "nvlink"
        target = element.text("target").lower()
        of_class = element.text("tclass", "0x068000" if target == _INVISIBLE else None).lower()
        if of_class.startswith(("0x03", "0x12")):
            return GpuLink(kind, "gpu", target, count, element.line)
        to = _CLASSES.get(of_class)
        if to == "nvswitch":
            return GpuLink(kind, "nvswitch", target, count, element.line)
        if to == "cpu":
            return GpuLink(kind, "cpu", "", count, element.line)
        self.omit(element, f"{kind} to a device of unknown class {shown(of_class)}")
        return None

    def nic_ports(self, element: Element) -> Iterator[Port]:
        for net in self.known(element, "net"):
            # NCCL ignores ports without a device number, and those that are no network device.
            if "dev" not in net.attributes or net.integer("net", 1) == 0:
                self.omit(net, "a port that NCCL does not use as a network device")
                continue
            speed = net.integer("speed", 0)
            if not -1 <= speed <= 1 << 31:
                net.refuse("speed", "Mb/s, such as 400000")
            yield Port(
                name=net.text("name", f"net{net.text('dev')}"),
                dev=net.count("dev", _MOST),
                mbit_per_s=max(0, speed),
                gdr=net.integer("gdr", 0) > 0,
                line=net.line,
            )
