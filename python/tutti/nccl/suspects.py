"""What debug logs, topologies and the Inspector show about nodes, rails and ranks."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import polars as pl

from tutti.base.errors import capped
from tutti.formats.nccl.rates import gpu_link_rate, pci_rate, port_rate
from tutti.nccl.series import Finding, share

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tutti.formats.nccl.debug import DebugLog
    from tutti.formats.nccl.topology import Port, Topology

_UNEVEN: Final = 1.5
"""Ratio of the channels of NICs from which their use is uneven."""
_EARLY: Final = 0.8
"""Share of the median time below which a rank is late: it waits less than the others."""
_OPERATIONS: Final = 5
_MOST: Final = 8


def of_log(log: DebugLog) -> Iterator[Finding]:
    """Yields what is suspicious in a debug log."""
    if len(log.versions) > 1:
        listed = ", ".join(f"{name} (line {at[0]})" for name, at in log.versions.items())
        yield Finding("problem", log.source, f"several versions of the library: {listed}",
                      "install the same version on all nodes")  # fmt: skip
    for size, absent in log.missing.items():
        yield Finding("warning", log.source,
                      f"{len(absent)} of {size} ranks did not complete the "
                      f"initialisation: {_listed(absent)}",
                      "the log may lack processes; otherwise look for their warnings")  # fmt: skip
    if len(log.channels) > 1:
        counts = ", ".join(f"{count} on {ranks} ranks" for count, ranks in log.channels.items())
        yield Finding("warning", log.source, f"ranks differ in their channels: {counts}",
                      "compare the topologies of their nodes")  # fmt: skip
    yield from _network(log)
    lacking = [f"{host}:{device}" for (host, device), has in log.nvls.items() if not has]
    if lacking and len(lacking) < len(log.nvls):
        yield Finding("warning", log.source,
                      f"NVLink SHARP is not available on {_listed(lacking)}",
                      "check the fabric manager of these nodes")  # fmt: skip
    if log.warnings:
        line, text = log.warnings[0]
        yield Finding("problem", log.source,
                      f"{len(log.warnings)} warnings of NCCL; line {line}: {capped(text)}",
                      "search NCCL's issues for the text")  # fmt: skip


def _network(log: DebugLog) -> Iterator[Finding]:
    if "Socket" in log.networks:
        yield Finding("problem", log.source, "NCCL uses TCP sockets between nodes",
                      "check the network plugin, NCCL_IB_DISABLE and NCCL_IB_HCA")  # fmt: skip
    if len(log.networks) > 1:
        yield Finding("problem", log.source, f"several networks: {', '.join(log.networks)}",
                      "set the same plugin on all nodes")  # fmt: skip
    if not log.devices:
        return
    without = [name for name in log.devices if not log.direct[name]]
    if without and len(without) < len(log.devices):
        yield Finding("problem", log.source,
                      f"GPUDirect RDMA is used on some NICs, but not on {_listed(without)}",
                      "check the distance of GPU and NIC, and ACS in the BIOS")  # fmt: skip
    elif without and not any(name.startswith("Socket") for name in without):
        yield Finding("warning", log.source, "no NIC uses GPUDirect RDMA: bytes pass the CPU",
                      "load nvidia-peermem, or check NCCL_NET_GDR_LEVEL")  # fmt: skip
    by_use = log.devices.most_common()
    (high, most), (low, least) = by_use[0], by_use[-1]
    if most > _UNEVEN * least:
        yield Finding("warning", log.source,
                      f"NICs carry different numbers of channels: {high} {most}, {low} {least}",
                      "compare with the topology: GPUs may share a NIC")  # fmt: skip


def of_topology(topology: Topology) -> Iterator[Finding]:
    """Yields GPUs and NICs whose links are slower than those of the others."""
    ports = {_nic(port): port_rate(port).gb_per_s for _, _, port in topology.ports}
    yield from _slower(topology.source, "ports", ports)
    nics = {
        _nic(port): pci_rate(pci, "link").gb_per_s
        for _, pci, port in topology.ports
        if pci is not None
    }
    yield from _slower(topology.source, "PCI links of NICs", nics)
    for name, rate in nics.items():
        if rate < ports[name]:
            yield Finding("problem", topology.source,
                          f"{name}: its PCI link has {rate:.1f} GB/s, its port {ports[name]:.1f}",
                          "check the slot and the link width (lspci -vv, LnkSta)")  # fmt: skip
    gpus = {f"GPU {gpu.dev}": pci_rate(pci, "link").gb_per_s for _, pci, gpu in topology.gpus}
    yield from _slower(topology.source, "PCI links of GPUs", gpus)
    linked = {f"GPU {gpu.dev}": sum(gpu_link_rate(gpu, one, "link").gb_per_s for one in gpu.links)
              for _, _, gpu in topology.gpus}  # fmt: skip
    yield from _slower(topology.source, "NVLink or xGMI links of GPUs", linked)
    indirect = [_nic(port) for _, _, port in topology.ports if not port.gdr]
    if indirect and len(indirect) < len(ports):
        yield Finding("warning", topology.source, f"no GPUDirect RDMA: {_listed(indirect)}")


def _slower(source: str, what: str, rates: dict[str, float]) -> Iterator[Finding]:
    """Yields a finding if some rates are below the most frequent one."""
    if not rates:
        return
    usual = Counter(rates.values()).most_common(1)[0][0]
    slow = {name: rate for name, rate in rates.items() if rate < usual}
    if slow:
        listed = ", ".join(f"{name} {rate:.1f}" for name, rate in list(slow.items())[:_MOST])
        yield Finding("problem", source, f"{what} below the usual {usual:.1f} GB/s: {listed}",
                      "rings leave it out, or all their links wait for it")  # fmt: skip


def of_operations(frames: Sequence[pl.DataFrame]) -> Iterator[Finding]:
    """Yields ranks that are late: the others wait for them, so that their time is the shortest."""
    if not frames:
        return
    keys = ["communicator", "collective", "sequence"]
    every = pl.concat(frames)
    files = set(every["file"])
    shared = (
        every.filter(pl.col("peer").is_null() & (pl.col("time_us") > 0))
        .with_columns(middle=pl.col("time_us").median().over(keys), seen=pl.len().over(keys))
        .filter(pl.col("seen") > 2)
    )
    ratios = (
        shared.group_by("communicator", "rank", "host")
        .agg(ratio=(pl.col("time_us") / pl.col("middle")).median(), operations=pl.len())
        .filter((pl.col("operations") >= _OPERATIONS) & (pl.col("ratio") < _EARLY))
        .sort("ratio", "communicator", "rank")
    )
    for one in ratios.head(_MOST).iter_rows(named=True):
        what = "process" if one["communicator"] in files else "rank"
        yield Finding("problem", one["communicator"],
                      f"{what} {one['rank']} on {one['host'] or 'an unknown host'} is late: its "
                      f"operations take {share(one['ratio'])} of the median of the ranks, "
                      f"over {one['operations']} operations",
                      "look for slower compute or input there: the others wait")  # fmt: skip


def _nic(port: Port) -> str:
    return f"NIC {port.dev} ({port.name})"


def _listed(names: Sequence[object]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(map(str, names[:_MOST])) + more
