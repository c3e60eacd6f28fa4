"""The memory of a flit-level run, and what the machine has left."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from tutti.networks.errors import NocError
from tutti.view.quantity import plural

if TYPE_CHECKING:
    from tutti.networks.flit.settings import Router
    from tutti.topologies import Topology

_PORT, _VC, _FLIT = 600, 70, 4
"""Bytes of a channel with its results, and of a VC and a slot of its buffer: upper values of meshes
of 40,000 and 160,000 nodes with 1 to 16 VCs of 1 to 64 flits."""


def bytes_of_run(links: int, nodes: int, router: Router) -> int:
    """Returns the approximate memory of a run in bytes.

    Examples:
        >>> from tutti.networks.flit.settings import Router
        >>> f"{bytes_of_run(links=15_992_000, nodes=4_000_000, router=Router()) / 1e9:.0f} GB"
        '24 GB'
    """
    per_channel = _PORT + router.vcs * (_VC + _FLIT * router.buffer)
    return (links + 2 * nodes) * per_channel


def refuse_too_large(topology: Topology, router: Router) -> None:
    """Rejects a network whose run exceeds the free memory.

    Raises:
        NocError: It does; the message has both sizes.
    """
    needed = bytes_of_run(topology.core.link_count, topology.ranks, router)
    free = free_bytes()
    if needed > free:
        message = (
            f"a run of {plural(topology.ranks, 'node')} with {plural(router.vcs, 'VC')} of "
            f"{plural(router.buffer, 'flit')} needs about {needed / 1e9:,.0f} GB of memory, and "
            f"{free / 1e9:,.0f} GB are free: expected a smaller network"
        )
        raise NocError(message, kind="too_large")


def free_bytes(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Returns the memory in bytes that programs can still allocate.

    Systems that do not state it have all memory of the machine.
    """
    try:
        available = re.search(r"^MemAvailable: +([0-9]+) kB", meminfo.read_text(), re.MULTILINE)
    except OSError:
        available = None
    if available:
        return int(available[1]) << 10
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
