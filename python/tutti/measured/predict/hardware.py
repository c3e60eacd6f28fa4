"""What platform files state of a machine's nodes and network, as priors of the structural model."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tutti.base.files.sourced import written
from tutti.measured.predict.curve import prior, with_gamma
from tutti.platforms.files.builder import machine
from tutti.platforms.files.presets import chosen_model, find_platform, platform_names
from tutti.platforms.nodes import domain_of, ranks_per_node

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from tutti.platforms.files.node import NodeTable
    from tutti.platforms.files.platform_file import RawPlatform
    from tutti.topologies import Routes

    Floats = NDArray[np.float64]
    Strings = NDArray[np.str_]

_SMALL, _LARGE = 8, 1 << 26
"""Bytes of the messages from which a platform without a table `node` gets latency and rate."""
_FAT: Final = frozenset({"switch", "fat_tree", "rail_optimized"})
"""Families whose links between groups belong to no pair of groups."""
_FAT_TAPER: Final = 0.01
ANY: Final = "any"
"""The library of an environment whose gamma is that of all libraries."""
_GRIDS: Final = frozenset({"torus", "mesh", "ring"})


@dataclass(frozen=True)
class Gamma:
    """Time per reduced byte, in us.

    Attributes:
        cached: of a vector in the cache.
        beyond: of a longer one.
        cache_bytes: the largest vector in the cache; None if both times are equal.
    """

    cached: float
    beyond: float
    cache_bytes: int | None = None


@dataclass(frozen=True)
class Hardware:
    """What is known of a machine's network before any measurement.

    Attributes:
        latency_us: time of a small message between two nodes through the MPI library, in us.
        bytes_per_us: bandwidth of one interface in one direction, in bytes per us.
        interfaces: interfaces of a node. No prediction moves more than they carry together.
        link_bytes_per_us: bandwidth of a link that messages of several nodes share; None if that of
            the node's interfaces is the limit.
        gap_us: least time between small messages of a rank, sent and received, in us.
        hop_us: latency of a further hop of a torus, in us.
        memory_bytes_per_us: peak bandwidth of a node's memory, in bytes per us.
        taper: how much links between groups limit their messages; 0.01 for a fat tree.
        gammas: by environment (library, interface, ranks per node, memory, joined by slashes), the
            time of reductions.
    """

    latency_us: float = 2.0
    bytes_per_us: float = 12.5e3
    interfaces: int = 1
    link_bytes_per_us: float | None = None
    gap_us: float = 0.3
    hop_us: float = 0.1
    memory_bytes_per_us: float = 2e5
    taper: float = 1.0
    gammas: Mapping[str, Gamma] = field(default_factory=dict)

    def prior(self, stack: str = "") -> Floats:
        """Returns the prior means of the structural model.

        Args:
            stack: the environment without the system, whose gamma is used if it is known.
        """
        shared = self.link_bytes_per_us or self.node_bytes_per_us
        means = prior(
            self.latency_us,
            self.bytes_per_us,
            shared,
            gap_us=self.gap_us,
            hop_us=self.hop_us,
            memory_bytes_per_us=self.memory_bytes_per_us,
            taper=self.taper,
        )
        gamma = self.gamma(stack) if stack else None
        if gamma is None:
            return means
        return with_gamma(means, gamma.cached, gamma.beyond, gamma.cache_bytes or math.inf)

    def gamma(self, stack: str) -> Gamma | None:
        """Returns the gamma of an environment, or of another with its library and memory."""
        library, *_, memory = stack.split("/")
        like = [one for one in self.gammas
                if one.split("/")[0] in {library, ANY} and one.endswith(memory)]  # fmt: skip
        if stack in like:
            return self.gammas[stack]
        return self.gammas[like[0]] if like else None

    @property
    def node_bytes_per_us(self) -> float:
        """Bandwidth of a node in one direction, in bytes per us."""
        return self.bytes_per_us * self.interfaces

    @property
    def without_fits(self) -> Hardware:
        """The same without gamma, which platform files take from measured collectives."""
        return replace(self, gammas={})


def least_us(collectives: Strings, nodes: Floats, sizes: Floats, rates: Floats) -> Floats:
    """Returns the time in which the interfaces of a node carry what a node must at least receive.

    Args:
        collectives: by row, the collective.
        nodes: by row, the number of nodes.
        sizes: by row, the vector in bytes.
        rates: by row, the bandwidth of a node in one direction, in bytes per us.
    """
    rounds = np.where(collectives == "all_reduce", 2.0, 1.0)
    return np.asarray(rounds * (1 - 1 / nodes) * sizes / rates)


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
