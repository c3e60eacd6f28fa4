"""Numbers of channels and threads, which NCCL reduces for small sizes.

Source: NCCL, src/graph/connect.cc (channels of the communicator), src/graph/tuning.cc (maximum
threads and thresholds) and src/enqueue.cc (reduction by size).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tutti.nccl.settings import Settings
    from tutti.nccl.system import NcclSystem
    from tutti.nccl.versions import Version

_WARP = 32
_PCI_BANDWIDTH = 12.0
"""GB/s of PCI gen 3 x16, below which Ring takes fewer threads. Source: src/graph/topo.h."""
_SEARCH_BANDWIDTH = 45.0
"""GB/s per channel above which Hopper doubles few channels. Source: src/graph/connect.cc."""
_SIMPLE_THREADS = 512
_LL_THREADS = 512
_MOST_THREADS = 640


@dataclass(frozen=True)
class Channels:
    """Numbers of channels of a communicator.

    Attributes:
        collective: The channels with which the reduction by size starts.
        communicator: The channels of the communicator.
        nvls: The channels of NVLS and NVLSTree.
    """

    collective: int
    communicator: int
    nvls: int


def has_nvls(system: NcclSystem, settings: Settings) -> bool:
    """Returns whether NCCL uses NVLink SHARP."""
    return (
        system.nvls
        and settings.nvls_enable != 0
        and system.gpus_per_node > 1
        and system.graph("nvls").channels > 0
    )


def channel_counts(system: NcclSystem, rules: Version, settings: Settings) -> Channels:
    """Returns the numbers of channels that NCCL derives from the graphs."""
    most = settings.max_ctas or rules.max_channels
    least = settings.min_ctas or 1
    nvls = 0
    if has_nvls(system, settings):
        nvls = rules.nvls_channels
        if system.architecture == "blackwell":
            nvls = rules.nvls_channels_blackwell[system.nodes > 1]
        nvls = max(least, min(most, nvls))
    count = system.channels or _from_graphs(system, rules)
    requested = rules.max_channels if settings.max_nchannels is None else settings.max_nchannels
    count = min(count, max(1, min(requested, rules.max_channels)), most)
    count = max(count, least, min(settings.min_nchannels or 0, rules.max_channels))
    raised = max(count, nvls)
    return Channels(
        collective=raised if rules.channels_from_nvls else count,
        communicator=raised if rules.communicator_channels_from_nvls else count,
        nvls=nvls,
    )


def _from_graphs(system: NcclSystem, rules: Version) -> int:
    """Returns the channels of the communicator before limits that the user sets."""
    ring = system.graph("ring")
    count = min(rules.max_channels, 2 * min(ring.channels, system.graph("tree").channels))
    chain = system.graph("collnet_chain")
    if system.collnet and chain.intra > chain.inter and system.gpus_per_node > 1:
        count = min(rules.max_channels, count + count // 2)
    hopper = system.compute_capability >= 90
    if hopper and system.nodes > 1 and ring.intra > _SEARCH_BANDWIDTH and count < 16:
        count *= 2
    return count


def channels_and_threads(
    system: NcclSystem,
    rules: Version,
    settings: Settings,
    name: tuple[str, str],
    size: int,
) -> tuple[int, int]:
    """Returns the channels and the threads per block with which NCCL runs an algorithm.

    Args:
        system: The system.
        rules: The version of NCCL.
        settings: The user's settings.
        name: The algorithm and the protocol.
        size: The size in bytes.
    """
    algorithm, protocol = name
    counts = channel_counts(system, rules, settings)
    threads = _most_threads(system, settings, algorithm, protocol)
    threshold = _threshold(system, algorithm, protocol)
    count = counts.collective
    if algorithm in {"NVLS", "NVLSTree"}:
        count = counts.nvls
        if algorithm == "NVLS" and rules.nvls_limited_by_channels and system.nodes > 1:
            count = min(count, counts.collective)
        return count, _with_sync(rules, algorithm, protocol, threads)
    if algorithm == "CollNetDirect":
        count = _collnet_channels(count, size, threads * system.collnet_heads, threshold)
        return count, _with_sync(rules, algorithm, protocol, threads)
    while count >= 2 and size < count * threads * threshold:
        count -= 1
    while size < count * threads * threshold and threads % 128 == 0:
        threads //= 2
    return count, _with_sync(rules, algorithm, protocol, threads)


def _collnet_channels(count: int, size: int, width: int, threshold: int) -> int:
    """Returns the channels of CollNetDirect for a size."""
    switch = 16
    while switch >= 1:
        while size < count * width * threshold and count > switch:
            if count == switch + switch // 2:
                threshold //= 2
            count -= 1
        if size >= count * width * threshold:
            break
        switch //= 2
    return count


def _with_sync(rules: Version, algorithm: str, protocol: str, threads: int) -> int:
    """Returns the threads with the warps that synchronise."""
    if protocol == "Simple" and algorithm == "Ring":
        threads += _WARP
    if protocol == "Simple" and algorithm == "Tree":
        threads += 4 * _WARP
    threads = max(threads, 3 * _WARP)
    if (algorithm == "Tree" and rules.tree_threads) or algorithm == "PAT":
        return rules.tree_threads
    return threads


def _most_threads(system: NcclSystem, settings: Settings, algorithm: str, protocol: str) -> int:
    """Returns the threads per block for large sizes; 0 for PAT, whose count is fixed."""
    if algorithm == "PAT":
        return 0
    if algorithm not in {"Tree", "Ring"}:
        return _MOST_THREADS
    if protocol == "LL128":
        least = _MOST_THREADS // 4
        return _set_threads(settings.ll128_nthreads, least, _MOST_THREADS, _MOST_THREADS)
    if protocol == "LL":
        return _set_threads(settings.nthreads, 2 * _WARP, _LL_THREADS, _LL_THREADS)
    ring = system.graph("ring")
    slow = algorithm == "Ring" and ring.intra * ring.channels <= _PCI_BANDWIDTH
    default = 256 if slow else _SIMPLE_THREADS
    return _set_threads(settings.nthreads, 2 * _WARP, _SIMPLE_THREADS, default)


def _set_threads(requested: int | None, least: int, most: int, default: int) -> int:
    """Returns the number of threads that NCCL takes for a requested number."""
    if not requested:
        return default
    if requested % _WARP:
        return most
    return max(least, min(most, requested))


def _threshold(system: NcclSystem, algorithm: str, protocol: str) -> int:
    """Returns the bytes per thread below which NCCL reduces channels and threads."""
    if algorithm in {"CollNetDirect", "CollNetChain"}:
        return 512
    if protocol == "Simple":
        return 64
    return 8 * system.ranks if (algorithm, protocol) == ("Ring", "LL") else 8
