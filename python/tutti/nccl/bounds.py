"""What the links of a cluster allow: bandwidth of rings, and lower bounds of time.

Rings share their bytes equally among the NICs that they use. NCCL uses all NICs at the rate of the
slowest one, or leaves slow NICs out, whichever carries more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tutti import _core
from tutti.base.errors import UnitError
from tutti.base.files.limits import RANKS
from tutti.base.files.mistakes import mistake, shown
from tutti.base.units import Size, TimePerByte
from tutti.formats.nccl.rates import gpu_link_rate, pci_rate, port_rate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tutti.formats.nccl.topology import Topology

_GPUS: Final = (
    ("B200", 900.0), ("H800", 200.0), ("H200", 450.0), ("H100 80GB HBM3", 450.0),
    ("A800", 200.0), ("A100-SXM", 300.0), ("V100-SXM2", 150.0),
)  # fmt: skip
"""NVLink per direction in GB/s, by a part of the GPU's name (NVIDIA, data sheets)."""

_TERABYTE: Final = 10**12


@dataclass(frozen=True)
class Rails:
    """Rates per direction in B/s, and where they are from.

    Attributes:
        gpu: The links of a GPU to the other GPUs of its node.
        nics: Each NIC: its port, or its PCI link if that is slower.
        source: The topology file, the option or the data sheet.
    """

    gpu: float | None
    nics: tuple[float, ...]
    source: str

    def ring(self, nodes: int) -> float | None:
        """Returns the bus bandwidth of rings, in B/s: that of the slowest link they must cross."""
        if nodes == 1:
            return self.gpu
        fastest = sorted(self.nics, reverse=True)
        between = max((place * one for place, one in enumerate(fastest, 1)), default=None)
        if between is None or self.gpu is None:
            return between
        return min(between, self.gpu)


def bound_us(
    rails: Rails, collective: str, size_bytes: int, ranks: int, nodes: int
) -> float | None:
    """Returns a lower bound of the time without reduction in switches, in us.

    The bytes that leave a node, and a GPU, on average over all of them, at all of their links. None
    for collectives with a root, and if no rate is known.
    """
    if collective not in {"all_reduce", "all_gather", "reduce_scatter"}:
        return None
    bounds = []
    if nodes > 1 and rails.nics:
        bounds.append(_core.busbw_factor(collective, nodes) * size_bytes / sum(rails.nics))
    if rails.gpu is not None and nodes == 1:
        bounds.append(_core.busbw_factor(collective, ranks) * size_bytes / rails.gpu)
    return max(bounds) * 1e6 if bounds else None


def rails_of(topology: Topology) -> Rails:
    """Returns the rates of a topology; those of PCI if GPUs have no NVLink.

    Raises:
        ConfigError: The GPUs have neither.
    """
    gpus = []
    for _, device, gpu in topology.gpus:
        linked = [gpu_link_rate(gpu, one, "link").gb_per_s for one in gpu.links if one.to != "cpu"]
        gpus.append(sum(linked) or pci_rate(device, "link").gb_per_s)
    if min(gpus) <= 0:
        raise mistake("a GPU has no link", source=topology.source, expected="NVLink, xGMI or PCI")
    nics = []
    for _, pci, port in topology.ports:
        rate = port_rate(port).gb_per_s
        nics.append(min(rate, pci_rate(pci, "link").gb_per_s) if pci is not None else rate)
    return Rails(min(gpus) * 1e9, tuple(one * 1e9 for one in nics), topology.source)


def stated_rails(nics: str | None, gpu: str | None) -> Rails | None:
    """Returns the rates that a user states; None if there are none.

    Args:
        nics: The NICs of a node and their rate, such as ``8x50 GB/s``.
        gpu: The NVLink rate of a GPU per direction, such as ``450 GB/s``.

    Raises:
        ConfigError: A text is malformed, or a rate is not finite.
    """
    linked = None if gpu is None else _rate(gpu, "--gpu-rate")
    if nics is None:
        return None if linked is None else Rails(linked, (), "--gpu-rate")
    count, times, rate = nics.partition("x")
    if not times or not count.strip().isdecimal() or not 1 <= int(count[:6]) <= RANKS:
        raise mistake("invalid NICs", source="--nics", value=shown(nics),
                      expected="a number and a rate, such as '8x50 GB/s'")  # fmt: skip
    return Rails(linked, (_rate(rate, "--nics"),) * min(int(count), 1024), "--nics")


def _rate(text: str, option: str) -> float:
    """Returns a rate in B/s."""
    try:
        rate = TimePerByte.of_any(text.strip())
    except UnitError as error:
        raise mistake(error.problem, source=option, value=shown(text),
                      expected="a rate, such as '50 GB/s'") from None  # fmt: skip
    # A terabyte, so that picoseconds are precise enough.
    ps = rate.of(Size(bytes=_TERABYTE)).ps
    if ps == 0:
        raise mistake("invalid rate", source=option, value=shown(text), expected="a finite rate")
    return _TERABYTE / ps * 1e12


def gpu_rate(names: Iterable[str]) -> Rails | None:
    """Returns the NVLink rate of GPUs by their names; None if they differ or are unknown."""
    found = {
        next(((part, rate) for part, rate in _GPUS if part in name), None) for name in set(names)
    }
    if len(found) != 1 or None in found:
        return None
    part, rate = next(one for one in found if one is not None)
    return Rails(rate * 1e9, (), f"NVLink of {part}, {rate:g} GB/s per direction")
