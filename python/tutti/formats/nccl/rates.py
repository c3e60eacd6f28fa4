"""Rates of the links of a node, per direction, with their sources.

``link`` are the rates of the links, which no program exceeds: bounds use them. ``nccl`` are those
that NCCL's topology search assumes, which include protocol overhead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from tutti.formats.nccl.topology import Cpu, Gpu, GpuLink, Pci, Port

Rates = Literal["link", "nccl"]
RATES: Final[tuple[Rates, ...]] = ("link", "nccl")
_TOPO_H: Final = "NCCL 2.30.7, src/graph/topo.h"
_TOPO_CC: Final = "NCCL 2.30.7, src/graph/topo.cc"


class Rate(NamedTuple):
    """A rate per direction in GB/s, its source, and whether it is inferred."""

    gb_per_s: float
    source: str
    inferred: bool = False


_NVLINK: Final = (  # from SM, GB/s of a link, name
    (100, 50.0, "NVLink 5: 50 GB/s per link and direction (NVIDIA, Blackwell architecture)"),
    (90, 25.0, "NVLink 4: 25 GB/s per link and direction (NVIDIA, H100 architecture)"),
    (86, 14.0625, "NVLink 3 of GA102: 14.0625 GB/s per link and direction (NVIDIA, GA102)"),
    (80, 25.0, "NVLink 3: 25 GB/s per link and direction (NVIDIA, A100 architecture)"),
    (70, 25.0, "NVLink 2: 25 GB/s per link and direction (NVIDIA, V100 architecture)"),
    (60, 20.0, "NVLink 1: 20 GB/s per link and direction (NVIDIA, P100 architecture)"),
)
_NVLINK_OF_NCCL: Final = (
    (100, 40.1, "SM100"), (90, 20.6, "SM90"), (86, 12.0, "SM86"), (80, 20.0, "SM80"),
    (70, 20.0, "SM70"), (60, 18.0, "SM60"),
)  # fmt: skip
_XGMI: Final = (("gfx94", 48.0), ("gfx95", 48.0), ("gfx90a", 36.0), ("910", 36.0))
_LANE: Final = {2.5: 0.25, 5.0: 0.5, 8.0: 64 / 65, 16.0: 128 / 65, 32.0: 256 / 65, 64.0: 7.5625}
"""GB/s of a lane: 8b/10b below 8 GT/s, 128b/130b to 32 GT/s, 242 of 256 bytes of a flit at 64."""
_LANE_OF_NCCL: Final = {2.5: 15, 5.0: 30, 8.0: 60, 16.0: 120, 32.0: 240, 64.0: 480}
"""Hundreds of Mb/s per lane."""

_INTEL: Final = ((0xCF, "ERP_QPI_BW", 40.0), (0x8F, "SRP_QPI_BW", 22.0), (0x55, "SKL_QPI_BW", 10.0))


def gpu_link_rate(gpu: Gpu, link: GpuLink, rates: Rates) -> Rate:
    """Returns the rate of all links from a GPU to one neighbour."""
    if link.kind == "c2c":
        return Rate(link.count * link.mb_per_s / 1e3, "`bw` of <c2c>, in MB/s per link")
    if link.kind == "xgmi":
        one = next((rate for name, rate in _XGMI if gpu.gcn.startswith(name)), 24.0)
        return Rate(link.count * one, f"RCCL, src/graph/topo.h: xGMI, {one:g} GB/s per link")
    if rates == "nccl":
        one, name = next(
            ((rate, name) for sm, rate, name in _NVLINK_OF_NCCL if gpu.sm >= sm), (18.0, "SM60")
        )
        return Rate(link.count * one, f"{_TOPO_H}: {name}_NVLINK_BW")
    one, source = next(
        ((rate, source) for sm, rate, source in _NVLINK if gpu.sm >= sm), _NVLINK[-1][1:]
    )
    return Rate(link.count * one, source)


def pci_rate(device: Pci, rates: Rates) -> Rate:
    """Returns the rate of the link from a PCI device to its parent."""
    speed = device.gt_per_s if device.gt_per_s in _LANE else 8.0
    width = device.width or 16
    inferred = device.gt_per_s not in _LANE or device.width == 0
    stated = f"PCI Express, {speed:g} GT/s, {width} lanes"
    if inferred:
        stated += "; the file does not state speed or width, and NCCL assumes it"
    if rates == "nccl":
        return Rate(width * _LANE_OF_NCCL[speed] / 80, f"{_TOPO_CC}: {stated}", inferred)
    return Rate(width * _LANE[speed], stated, inferred)


def port_rate(port: Port) -> Rate:
    """Returns the rate of a port of a NIC."""
    if port.mbit_per_s:
        return Rate(port.mbit_per_s / 8e3, "`speed` of <net>, in Mb/s")
    return Rate(10 / 8, f"{_TOPO_CC}: 10 Gb/s if the speed is unknown", inferred=True)


def cpu_rate(cpu: Cpu) -> Rate:
    """Returns the rate between two sockets, which the file does not state: that of NCCL."""
    name, rate = "LOC_BW", 5000.0
    intel = cpu.family == 6
    if cpu.arch == "ppc64":
        name, rate = "P9_BW", 32.0
    elif cpu.arch == "arm64":
        name, rate = "ARM_BW", 6.0
    elif cpu.vendor == "AuthenticAMD":
        name, rate = "AMD_BW", 16.0
    elif cpu.vendor == "GenuineIntel":
        known = ((name, rate) for model, name, rate in _INTEL if intel and cpu.model >= model)
        name, rate = next(known, ("BDW_QPI_BW", 6.0))
    return Rate(rate, f"{_TOPO_H}: {name}", inferred=True)
