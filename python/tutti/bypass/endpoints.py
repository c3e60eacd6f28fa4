"""Endpoint models on package networks: ARIES and SMART with the endpoints of ACE.

Each row is an all_reduce or a training step on one network with one endpoint. The networks are
those of Yin et al. 2023, configured once per run, and SMART meshes (Krishna and Peh 2014), whose
routers fork multicasts and reduce. The endpoints are those of Rashidi et al. 2021.
`docs/guides/endpoints-on-packages.md` states what each combination assumes.

Examples:
    >>> from tutti.base.units import Size
    >>> found = all_reduces(["mesh", "aries"], ["ideal"], [Size.parse("64 KiB")], side=4)
    >>> found.select("network", "algorithm").rows()
    [('mesh', 'multi_tree'), ('aries', 'ring: bandwidth')]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Literal

import polars as pl

import tutti
from tutti.base.errors import ConfigError
from tutti.base.progress import at_once
from tutti.base.units import Size, TimePerByte
from tutti.bypass.package_networks import ALGORITHMS, ONE_WIRE, package_of, variants
from tutti.energy.package import PackageTraffic, technologies
from tutti.networks.mesh import SmartMesh
from tutti.networks.mesh.energy import mesh_energy
from tutti.platforms.contention import MeshFlits, Packets
from tutti.platforms.machine import LogGP, Platform, Postal
from tutti.training.collective import Alone
from tutti.training.endpoint import Configuration, Npu, configurations
from tutti.training.fabric import Dimension
from tutti.training.step import Step
from tutti.workloads import build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tutti.schedules.ir import Schedule
    from tutti.training.collective import AloneResult

    Done = Callable[[dict[str, object]], None] | None

PACKAGES = ("mesh", "adapt_noc", "flattened_butterfly", "aries")
"""Networks of chiplets: four ports of 68 GB/s, 12 ns per hop."""
MESHES = {"smart_1": 1, "smart_8": 8}
"""SMART meshes with one port of 64 GB/s, by hops per cycle of 1 ns."""
NETWORKS = (*PACKAGES, *MESHES)
ENDPOINTS = ("ideal", "comm_opt", "comp_opt", "ace")
FLIT = Size(bytes=64)
"""Payload of a flit of a SMART mesh: 64 GB/s at 1 GHz, close to the 68 GB/s between chiplets."""
PACKETS = Packets(size=Size(bytes=256), buffer=Size(bytes=4 * 32 * 68))
"""Packets as small as those of endpoints; 4 VCs of 32 flits (Yin et al. 2023)."""
CHOSEN = Size.parse("1 MiB")
"""The size whose fastest algorithm a training step uses."""
TILE = "1 mm"
"""Distance of the nodes of a SMART mesh; 8 hops of it take 1 ns (Krishna and Peh 2014)."""


@dataclass(frozen=True, kw_only=True)
class MappedAllReduce:
    """An all_reduce on a network.

    Attributes:
        network: The network.
        name: The algorithm, and for bypass links its mapping.
        schedule: The schedule.
        platform: The network as a platform; endpoints are not part of it.
    """

    network: str
    name: str
    schedule: Schedule
    platform: Platform

    def alone(self, size: Size, endpoint: Configuration) -> AloneResult:
        """Simulates the all_reduce behind endpoints.

        Raises:
            EndpointError: The endpoint is invalid.
        """
        every = (Dimension("chiplets", self.schedule.ranks),)
        algorithms = {"all_reduce": self.schedule}
        alone = Alone(size=size, rings=every, platform=self.platform, algorithms=algorithms)
        return alone.run(endpoint)

    def joules(self, found: AloneResult, side: int) -> float:
        """Returns the energy of the network for the all_reduce, without the endpoints."""
        if self.network in MESHES:
            return self._mesh_joules(found)
        assert self.platform.routes is not None  # noqa: S101 - packages have routes
        record = found.record
        sent = sum(used.bytes for npu in range(record.npus) for used in record.links(npu))
        counted = tuple(used.bytes for used in record.graph_links())
        traffic = PackageTraffic(link_bytes=counted, sent_bytes=sent, time=found.time)
        topology = self.platform.routes.topology
        return (
            package_of(self.network, side, technologies()["usual"])
            .energy(topology, traffic)
            .total.nominal
        )

    def _mesh_joules(self, found: AloneResult) -> float:
        """Returns the energy of events without endpoints, and of clock and leakage with them."""
        mesh = self.platform.contention
        assert isinstance(mesh, MeshFlits)  # noqa: S101 - SMART platforms have a mesh
        run = tutti.simulate(self.schedule, self.platform, size=found.alone.size, datatype="int8")
        counts = dict(run.mesh_counts) | {"cycles": -(-found.time.ps // mesh.cycle.ps)}
        bits = 8 * mesh.flit.bytes
        report = mesh_energy(counts, mesh.carrying, flit_bits=bits, tile=TILE, cycle=mesh.cycle)
        return report.total.nominal


def candidates(network: str, side: int) -> tuple[MappedAllReduce, ...]:
    """Returns the all_reduces of a network of k x k chiplets or nodes.

    Args:
        network: One of `NETWORKS`.
        side: k.

    Raises:
        ConfigError: The network is unknown.
    """
    if network not in NETWORKS:
        expected = ", ".join(NETWORKS)
        problem = f"unknown package network `{network}`: expected one of {expected}"
        raise ConfigError(problem, kind="invalid")
    return _candidates(network, side)


@cache
def _candidates(network: str, side: int) -> tuple[MappedAllReduce, ...]:
    return tuple(_on_mesh(network, side) if network in MESHES else _on_package(network, side))


def _on_package(network: str, side: int) -> Iterator[MappedAllReduce]:
    """Yields the variants of Yin et al. that need no reconfiguration during the all_reduce.

    A package has one bypass wire per direction, as many wires as a torus.
    """
    for algorithm in ALGORITHMS:
        for variant in variants(network, algorithm, side, ONE_WIRE):
            if len(variant.routes) == 1:
                # Endpoint models replace the cost of messages, which must not be zero.
                platform = Platform(
                    name=network,
                    model=Postal(alpha="1 ps"),
                    routes=variant.routes[0],
                    contention=PACKETS,
                )
                name = f"{algorithm}: {variant.name}" if network == "aries" else variant.name
                yield MappedAllReduce(
                    network=network, name=name, schedule=variant.schedule, platform=platform
                )


def _on_mesh(network: str, side: int) -> Iterator[MappedAllReduce]:
    """Yields in-network all_reduces from the corners and from all nodes, and a ring."""
    mesh = SmartMesh(
        design="sfo_greedy", columns=side, rows=side, hpc_max=MESHES[network], fan_in="complete"
    )
    platform = Platform(
        name=network,
        model=LogGP(L="0 ns", o="0 ns", g="0 ns", G="0.001 ns/B"),
        contention=MeshFlits(mesh=mesh, flit=FLIT),
    )
    nodes = side * side
    corners = f"0+{side - 1}+{nodes - side}+{nodes - 1}"
    for notation in (f"in_network:{corners},segments=8", "in_network:all", f"ring:{side}x{side}"):
        schedule = tutti.schedule(notation, collective="all_reduce", ranks=nodes)
        yield MappedAllReduce(network=network, name=notation, schedule=schedule, platform=platform)


def all_reduces(
    networks: Sequence[str],
    endpoints: Sequence[str],
    sizes: Sequence[Size],
    *,
    side: int = 4,
    done: Done = None,
) -> pl.DataFrame:
    """Returns the fastest all_reduce on each network behind each endpoint.

    Args:
        networks: Some of `NETWORKS`.
        endpoints: Some of the names of :func:`tutti.training.endpoint.configurations`.
        sizes: Bytes of each NPU.
        side: Chiplets or nodes per side.
        done: Receives each row, in order.

    Returns:
        A row per network, endpoint and size. ``algorithm`` is the fastest, ``time_ps`` its time and
        ``bound_ps`` its lower bound behind this endpoint. ``read_bytes`` are read from the memory
        of the first NPU. ``energy_j`` is the energy of the network. ``gain`` is the time on the
        mesh over this time, null without a row of the mesh.

    Raises:
        ConfigError: A network or an endpoint is unknown.
    """
    cases = list(product(networks, map(_endpoint, endpoints), sizes))

    def row(case: tuple[str, Configuration, Size]) -> dict[str, object]:
        network, endpoint, size = case
        best, found = _fastest(network, endpoint, size, side)
        return {
            "network": network,
            "endpoint": endpoint.name,
            "bytes": size.bytes,
            "algorithm": best.name,
            "time_ps": found.time.ps,
            "bound_ps": found.limit.time.ps,
            "read_bytes": found.read,
            "energy_j": best.joules(found, side),
        }

    return with_gain(at_once(row, cases, "all_reduces", done).values())


def steps(
    networks: Sequence[str],
    endpoints: Sequence[str],
    *,
    model: str = "resnet50",
    batch: int = 2,
    side: int = 4,
    chosen: Size = CHOSEN,
    done: Done = None,
) -> pl.DataFrame:
    """Returns a training step on each network behind each endpoint.

    The step is data-parallel over all NPUs; its all_reduces use the algorithm that is the fastest
    for `chosen` on this network behind this endpoint.

    Args:
        networks: Some of `NETWORKS`.
        endpoints: Some of the names of :func:`tutti.training.endpoint.configurations`.
        model: The notation of a model, as in `tutti train list`.
        batch: Samples per NPU.
        side: Chiplets or nodes per side.
        chosen: The size that decides on the algorithm.
        done: Receives each row, in order.

    Returns:
        A row per network and endpoint: ``network``, ``endpoint``, ``algorithm``, ``time_ps``,
        ``compute_ps``, ``exposed_ps`` (communication that computation does not hide), and ``gain``
        as in :func:`all_reduces`.

    Raises:
        ConfigError: A network or an endpoint is unknown.
        WorkloadError: The model is unknown.
    """
    built = build(model)

    def row(case: tuple[str, Configuration]) -> dict[str, object]:
        network, endpoint = case
        best, _ = _fastest(network, endpoint, chosen, side)
        step = Step(
            model=built,
            batch=batch,
            rings=(Dimension("chiplets", best.schedule.ranks),),
            platform=best.platform,
            algorithms={"all_reduce": best.schedule},
            iterations=1,
            # With `lifo`, NPUs could admit different collectives and wait for each other.
            order="fifo",
        )
        run = step.run(endpoint)
        return {
            "network": network,
            "endpoint": endpoint.name,
            "algorithm": best.name,
            "time_ps": run.total.ps,
            "compute_ps": run.compute,
            "exposed_ps": run.exposed,
        }

    cases = list(product(networks, map(_endpoint, endpoints)))
    return with_gain(at_once(row, cases, "steps", done).values())


def memory_sweep(
    networks: Sequence[str],
    rates: Sequence[str],
    size: Size,
    *,
    kind: Literal["baseline", "ace"] = "baseline",
    side: int = 4,
    done: Done = None,
) -> pl.DataFrame:
    """Returns the fastest all_reduce over the memory bandwidth that the endpoint may use.

    Args:
        networks: Some of `NETWORKS`.
        rates: Memory bandwidths for communication, such as ``"128 GB/s"``.
        size: Bytes of each NPU.
        kind: The endpoint model; the baseline uses as many SMs as the bandwidth needs.
        side: Chiplets or nodes per side.
        done: Receives each row, in order.

    Returns:
        A row per network and rate: ``network``, ``memory``, ``algorithm``, ``time_ps`` and ``gain``
        as in :func:`all_reduces`.

    Raises:
        ConfigError: A network is unknown.
        UnitError: A rate cannot be parsed.
    """

    def row(case: tuple[str, str]) -> dict[str, object]:
        network, rate = case
        memory = TimePerByte.parse(rate)
        endpoint = Configuration(name=rate, kind=kind, memory=memory, sms=_sms(memory))
        best, found = _fastest(network, endpoint, size, side)
        return {
            "network": network,
            "memory": rate,
            "algorithm": best.name,
            "time_ps": found.time.ps,
        }

    return with_gain(at_once(row, product(networks, rates), "bandwidths", done).values())


def _sms(memory: TimePerByte) -> int:
    """Returns the SMs that read memory at a rate, each at most 80 GB/s."""
    return math.ceil(memory.core.bytes_per_second / Npu().per_sm.core.bytes_per_second)


@cache
def _fastest(
    network: str, endpoint: Configuration, size: Size, side: int
) -> tuple[MappedAllReduce, AloneResult]:
    """Returns the fastest all_reduce of a network behind an endpoint."""
    found = [(one, one.alone(size, endpoint)) for one in candidates(network, side)]
    return min(found, key=lambda pair: pair[1].time.ps)


def _endpoint(name: str) -> Configuration:
    known = configurations()
    if name not in known:
        expected = ", ".join(known)
        problem = f"unknown endpoint `{name}`: expected one of {expected}"
        raise ConfigError(problem, kind="invalid")
    return known[name]


def with_gain(rows: Iterable[dict[str, object]]) -> pl.DataFrame:
    """Returns rows of the functions above with the time on the mesh over their time."""
    frame = pl.DataFrame(list(rows))
    keys = [key for key in ("endpoint", "bytes", "memory") if key in frame.columns]
    mesh = frame.filter(pl.col("network") == "mesh").select(*keys, mesh_ps="time_ps")
    gain = (pl.col("mesh_ps") / pl.col("time_ps")).alias("gain")
    return (
        frame.join(mesh, on=keys, how="left", maintain_order="left")
        .with_columns(gain)
        .drop("mesh_ps")
    )
