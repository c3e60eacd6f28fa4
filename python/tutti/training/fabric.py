"""The network of a training step, and the schedules of its collectives.

A step runs on a torus of rings, whose NPUs relay packets; on a platform with a topology, on which
messages share links as flows or packets; or on a mesh whose routers may fork and combine. Its NPU
numbers have named dimensions, the innermost first. A collective spans the groups along some of
them.

Examples:
    >>> from tutti.base.units import TimePerByte, Time
    >>> rings = (Ring("local", 4, TimePerByte.parse("200 GB/s"), Time.parse("72 ns")),)
    >>> StepNetwork(rings=rings).fabric([_core.Transfer("all_reduce", 1, 4096)]).npus
    4
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from tutti import _core
from tutti.base.errors import TuttiError
from tutti.base.files.described import InFiles, Positive
from tutti.collectives.request import lay_out
from tutti.platforms.library import is_library
from tutti.schedules.errors import AlgorithmError
from tutti.schedules.ir import Schedule, candidates
from tutti.training.endpoint import Efficiency, Ring, core_rings, torus
from tutti.training.library import by_library
from tutti.workloads.errors import WorkloadError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tutti.platforms.machine import Platform
    from tutti.topologies import Routes

AUTO = "auto"
"""Selects the fastest algorithm of each collective."""

Channels = tuple[str | Schedule, ...]


@dataclass(frozen=True)
class Dimension(InFiles):
    """A dimension of the NPU numbers."""

    name: Annotated[str, Field(min_length=1, description="The name.")]
    nodes: Annotated[Positive, Field(description="NPUs along the dimension.")]


@dataclass(frozen=True, kw_only=True)
class StepNetwork:
    """The network of a training step.

    Attributes:
        rings: The rings of a torus, or the dimensions of the NPUs of `platform`, innermost first.
        efficiency: The fraction of link bandwidth of a torus that carries data.
        platform: A platform with a topology, instead of a torus.
        algorithms: The algorithm of each collective, by name: a notation, a file, a schedule, one
            of them per channel (chunks use the channels in turn), or `auto` for the fastest. A name
            such as `all_reduce:data` or `all_reduce:local+vertical` selects the groups along these
            dimensions, in preference to the name alone. Other collectives use rings along each
            dimension. `nccl`, `nccl:ring` and so on are those of the platform's library
            (:mod:`tutti.training.library`).
        library: Whether collectives without an algorithm are those of the platform's library, where
            its model has an answer.
    """

    rings: tuple[Ring, ...] | tuple[Dimension, ...]
    efficiency: Efficiency = 1.0
    platform: Platform | None = None
    algorithms: Mapping[str, str | Schedule | Channels] = field(default_factory=dict)
    library: bool = False

    @property
    def sizes(self) -> list[int]:
        """The NPUs along each dimension."""
        return [ring.nodes for ring in self.rings]

    def acts_alike(self, fabric: _core.StepFabric, transfers: Sequence[_core.Transfer]) -> bool:
        """Returns whether one NPU can represent all in these collectives on the network's fabric.

        It can on a torus, if the schedule of each collective sends the same from every NPU: rings
        along each dimension do, and all other schedules that rotate along the dimensions.
        """
        if self.platform is not None:
            return False
        return not self.algorithms or fabric.acts_alike(list(transfers))

    @property
    def links(self) -> _core.Platform | list[_core.TorusRing]:
        """The platform of the core, or the rings of the torus."""
        if self.platform is not None:
            return self.platform.core
        return core_rings(self._rings, self.efficiency)

    def fabric(
        self,
        transfers: Sequence[_core.Transfer],
        run: Callable[[_core.StepFabric, _core.TrainingProgram], int] | None = None,
    ) -> _core.StepFabric:
        """Returns the network with a schedule for each collective of `transfers`.

        Args:
            transfers: The collectives.
            run: Returns the time in ps of a program on every NPU of a fabric, for `auto`.

        Raises:
            AlgorithmError: An algorithm does not fit the groups of its collective.
            WorkloadError: The dimensions do not fit the platform, an algorithm is for a collective
                that the step does not have, or the platform has no flows.
            TopologyError: The torus is invalid.
        """
        fabric = self._network()
        if not self.algorithms and not self._default:
            return fabric
        self.check_collectives(transfers)
        chosen, least = [], []
        for (collective, mask), transfer in self.largest(transfers).items():
            given = self.algorithm(collective, mask)
            notation = self.library_of(collective, mask)
            if notation:
                try:
                    by = by_library(self, notation, transfer, transfers)
                except AlgorithmError:
                    if given is not None:
                        raise
                    continue
                channels, times = by
                least += times
            elif given is None:
                continue
            elif given == AUTO and run is not None:
                channels = self._fastest(fabric, transfer, mask, run)
            else:
                channels = self._channels(given, collective, mask)
            chosen.append((collective, mask, [channel.core for channel in channels]))
        fabric = fabric.with_algorithms(chosen)
        return fabric.with_least(least) if least else fabric

    def largest(self, transfers: Sequence[_core.Transfer]) -> dict[tuple[str, int], _core.Transfer]:
        """Returns the largest transfer of each collective and its dimensions of several NPUs."""
        found: dict[tuple[str, int], _core.Transfer] = {}
        for each in transfers:
            key = (each.collective, self.dimensions_of(each.mask))
            if key[1]:
                found[key] = max(found.get(key, each), each, key=lambda other: other.size)
        return found

    def key(self, collective: str, mask: int) -> str:
        """Returns the name of a collective on the groups along `mask`, as in `algorithms`."""
        return f"{collective}:{self.group_name(mask)}"

    def algorithm(self, collective: str, mask: int) -> str | Schedule | Channels | None:
        """Returns the given algorithm of a collective on the groups along `mask`."""
        return self.algorithms.get(self.key(collective, mask), self.algorithms.get(collective))

    def library_of(self, collective: str, mask: int) -> str:
        """Returns the algorithm of the platform's library that a collective has; empty if none."""
        given = self.algorithm(collective, mask)
        if given is None:
            return self._default
        return given if isinstance(given, str) and is_library(given) else ""

    @property
    def _default(self) -> str:
        """The library that executes collectives without an algorithm; empty for rings."""
        library = self.platform.library if self.platform and self.library else None
        return library.name if library and library.system else ""

    def group_name(self, mask: int) -> str:
        """Returns the names of the dimensions of several NPUs of `mask`, such as `tensor+data`."""
        within = self.dimensions_of(mask)
        names = [one.name for one in self.rings]
        return "+".join(name for at, name in enumerate(names) if within >> at & 1)

    @property
    def _rings(self) -> list[Ring]:
        return [ring for ring in self.rings if isinstance(ring, Ring)]

    def _network(self) -> _core.StepFabric:
        if self.platform is None:
            return torus(self._rings, self.efficiency)
        kind = self.platform.effective_contention.kind
        if kind == "mesh":
            return _core.StepFabric.on(self.platform.core, self.sizes)
        routes = self.platform.routes
        if routes is None or kind not in {"flow", "packet"}:
            message = (
                f"platform {self.platform.name} ({self.platform.network}) has neither flows nor "
                "packets: expected a mesh, or a topology without flits or `contention_free`"
            )
            raise WorkloadError(message, kind="no_flows")
        npus = math.prod(self.sizes)
        if npus != routes.topology.ranks:
            message = (
                f"the dimensions {self.sizes} have {npus} NPUs: expected "
                f"{routes.topology.ranks}, as in {routes.topology.name}"
            )
            hint = "change the dimensions or the `build` of the topology; `tutti train plan -p "
            hint += f"PLATFORM --gpus {npus} --out FILE` writes the file of another platform"
            raise WorkloadError(message, kind="does_not_divide", hint=hint)
        return _core.StepFabric.on(self.platform.core, self.sizes)

    def dimensions_of(self, mask: int) -> int:
        """Returns the dimensions of a mask that have more than one NPU."""
        return sum(1 << at for at, size in enumerate(self.sizes) if size > 1 and mask >> at & 1)

    def routes_of(self, ranks: int) -> Routes | None:
        """Returns the routes of the platform if groups of `ranks` NPUs contain all NPUs."""
        is_all = ranks == math.prod(self.sizes)
        return self.platform.routes if self.platform and is_all else None

    def group_size(self, mask: int) -> int:
        """Returns the number of NPUs of a group along `mask`."""
        return math.prod(size for at, size in enumerate(self.sizes) if mask >> at & 1)

    def _channels(
        self, given: str | Schedule | Channels, collective: str, mask: int
    ) -> list[Schedule]:
        """Returns the verified schedules of an algorithm on the groups along `mask`."""
        ranks = self.group_size(mask)
        routes = self.routes_of(ranks)
        channels = given if isinstance(given, tuple) else (given,)
        found = [
            lay_out(one, collective=collective, ranks=ranks, root=0, routes=routes)
            for one in channels
        ]
        for one in found:
            one.verify()
        return found

    def _fastest(
        self,
        fabric: _core.StepFabric,
        transfer: _core.Transfer,
        mask: int,
        run: Callable[[_core.StepFabric, _core.TrainingProgram], int],
    ) -> list[Schedule]:
        """Returns the algorithm with which the collective alone is fastest."""
        collective = transfer.collective
        best: tuple[int, list[Schedule]] | None = None
        program, ranks = _core.TrainingProgram.alone(transfer), self.group_size(mask)
        for notation in candidates(collective, ranks, root=0, routes=self.routes_of(ranks)):
            try:
                channels = self._channels(notation, collective, mask)
                cores = [channel.core for channel in channels]
                took = run(fabric.with_algorithms([(collective, mask, cores)]), program)
            except TuttiError:
                continue
            if best is None or took < best[0]:
                best = took, channels
        if best is None:
            message = f"no algorithm performs {collective} on groups of {ranks} NPUs"
            raise AlgorithmError(message)
        return best[1]

    def check_collectives(self, transfers: Sequence[_core.Transfer]) -> None:
        """Checks that the step has each collective of `algorithms`.

        Raises:
            WorkloadError: It has not.
        """
        found = self.largest(transfers)
        names = sorted({collective for collective, _ in found})
        known = {*names, *(self.key(*key) for key in found)}
        for collective in self.algorithms:
            if collective not in known:
                has = ", ".join(names) or "none"
                if collective.partition(":")[0] in names:
                    has = ", ".join(sorted(known - set(names)))
                message = f"the step has no {collective}: expected one of its collectives, {has}"
                raise WorkloadError(message, kind="no_such_collective")
