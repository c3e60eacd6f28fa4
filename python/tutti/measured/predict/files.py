"""Reads what platform files state of the nodes and the network of machines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tutti.base.files.sourced import written
from tutti.measured.predict.hardware import ANY, Gamma, Hardware
from tutti.platforms.files.builder import machine
from tutti.platforms.files.presets import chosen_model, find_platform, platform_names
from tutti.platforms.nodes import domain_of, ranks_per_node

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tutti.platforms.files.node import NodeTable
    from tutti.platforms.files.platform_file import RawPlatform
    from tutti.topologies import Routes

_SMALL, _LARGE = 8, 1 << 26
"""Bytes of the messages from which a platform without a table `node` gets latency and rate."""
_FAT: Final = frozenset({"switch", "fat_tree", "rail_optimized"})
"""Families whose links between groups belong to no pair of groups."""
_FAT_TAPER: Final = 0.01
_GRIDS: Final = frozenset({"torus", "mesh", "ring"})


def platform_of_option(name: str | None, option: str) -> RawPlatform | None:
    """Returns the platform that an option names; None without it.

    Raises:
        ConfigError: The name is unknown, or the platform file is invalid.
    """
    return find_platform(name, folder=Path(), source=option) if name is not None else None


def hardware_of_systems(systems: Iterable[str]) -> dict[str, Hardware]:
    """Returns what the bundled platforms state of systems, by the names in measurements."""
    found = {name: platform_of_system(name) for name in systems}
    return {name: hardware_of(one) for name, one in found.items() if one is not None}


def platform_of_system(name: str) -> RawPlatform | None:
    """Returns the bundled platform of a system, by its name in measurements; None if unknown."""
    for known in platform_names():
        platform = find_platform(known, folder=Path())
        if platform.node is not None and name.lower() in platform.node.systems:
            return platform
    return None


def hardware_of(platform: RawPlatform, *, source: str = "platform") -> Hardware:
    """Returns what a platform states of its nodes and network.

    Without a table `node`, latency, bandwidth and gap are those of messages of the default model
    between the first and the last rank, and gamma is that of the default model.

    Args:
        platform: the platform.
        source: the file or option, for messages.

    Raises:
        ConfigError: The topology or a model is invalid.
    """
    node = platform.node
    network = _network(platform)
    if node is None:
        return Hardware(**_of_default_model(platform, source), **network)
    return Hardware(**_of_node(node), gammas=_gammas(platform, node), **network)


def _of_node(node: NodeTable) -> dict[str, Any]:
    """Returns what the table `node` states."""
    found = {
        "latency_us": written(node.latency).us,
        "bytes_per_us": _bytes_per_us(node.rate),
        "interfaces": int(written(node.interfaces)),
    }
    found |= {"gap_us": written(node.gap).us} if node.gap is not None else {}
    if node.memory_rate is not None:
        found["memory_bytes_per_us"] = _bytes_per_us(node.memory_rate)
    return found


def _network(platform: RawPlatform) -> dict[str, Any]:
    """Returns what the topology states: a torus its links, others the taper between groups."""
    topology = platform.topology
    build = topology.build if topology is not None else None
    if topology is None or build is None:
        return {}
    family = build.removeprefix("hierarchical:").rsplit("/", 1)[-1].partition(":")[0]
    if family not in _GRIDS:
        return {"taper": _FAT_TAPER if family in _FAT else 1.0}
    link = topology.links[0]
    hop_us = written(link.latency).us
    found: dict[str, Any] = {"hop_us": hop_us} if hop_us else {}
    return found | {"link_bytes_per_us": _bytes_per_us(link.rate)}


def _of_default_model(platform: RawPlatform, source: str) -> dict[str, Any]:
    """Returns latency, bandwidth, gap and gamma of a platform's default model."""
    import tutti

    name = chosen_model(platform, None, source=source)
    complete = machine(platform, name, source=source)
    alone = complete.model_copy(update={"routes": None, "contention": None, "library": None})
    sent = {
        (ranks, size): tutti.simulate(
            tutti.schedule("linear", ranks=ranks, collective="broadcast"), alone, size=f"{size} B",
            verify=False,
        ).completion_time / 1e6
        for ranks, size in ((2, _SMALL), (3, _SMALL), (2, _LARGE))
    }  # fmt: skip
    latency, slope = sent[2, _SMALL], (sent[2, _LARGE] - sent[2, _SMALL]) / (_LARGE - _SMALL)
    interfaces = 1
    routes = complete.routes
    if routes is not None and routes.topology.ranks > 1:
        farthest = routes.pair(0, routes.topology.ranks - 1)
        latency += farthest.latency.us
        slope = max(slope, farthest.bottleneck.core.ps_per_byte / 1e6)
        interfaces = _interfaces(routes, platform)
    gap = sent[3, _SMALL] - sent[2, _SMALL]
    found: dict[str, Any] = {"latency_us": max(latency, _LEAST_US), "interfaces": interfaces}
    found |= {"gap_us": gap} if gap > 0 else {}
    gamma = _gamma(platform, name)
    found |= {"gammas": {f"{ANY}/host": gamma}} if gamma is not None else {}
    return found | ({"bytes_per_us": 1 / slope} if slope > 0 else {})


_LEAST_US: Final = 0.1


def _interfaces(routes: Routes, platform: RawPlatform) -> int:
    """Returns the number of slowest links by which the first node reaches the last rank."""
    per_node = ranks_per_node(platform) or (domain_of(routes) if platform.library else 1)
    last = routes.topology.ranks - 1
    if per_node > last:
        return 1
    slowest = set()
    for rank in range(per_node):
        path = routes.path(rank, last)
        link = max(path, key=lambda one: one.rate.core.ps_per_byte)
        slowest.add((link.source, link.target))
    return len(slowest)


def _gammas(platform: RawPlatform, node: NodeTable) -> dict[str, Gamma]:
    """Returns the gamma of each environment whose model states it."""
    found = {name: _gamma(platform, model) for name, model in node.environments.items()}
    return {name: gamma for name, gamma in found.items() if gamma is not None}


def _gamma(platform: RawPlatform, model: str) -> Gamma | None:
    table: Any = platform.models[model]
    values = {
        name: written(getattr(table if name in table.model_fields_set else platform.compute, name))
        for name in ("gamma", "gamma_memory", "cache")
    }
    gamma = values["gamma"]
    if gamma is None or gamma.core.ps_per_byte <= 0:
        return None
    cached = gamma.core.ps_per_byte / 1e6
    memory = values["gamma_memory"]
    if memory is None or values["cache"] is None:
        return Gamma(cached, cached)
    return Gamma(cached, memory.core.ps_per_byte / 1e6, values["cache"].bytes)


def _bytes_per_us(rate: Any) -> float:  # noqa: ANN401 - a rate, with or without a source
    return float(written(rate).core.bytes_per_second) / 1e6
