"""What every algorithm of a collective costs: bytes across cuts of the network, and latency.

Ranks of a group of n NPUs hold S bytes each. These bytes are needed by any schedule:

- all_reduce: S leave and enter each rank; across k blocks of ranks 2 (k - 1) S (Harary and
  Schwenk 1974, see docs/models/lower-bounds.md);
- reduce_scatter, all_gather: (k - 1) S across k blocks;
- all_to_all: g (k - 1) S across k blocks of g ranks.

A cut divides the NPUs into blocks with equal coordinates along some dimensions. The bytes between
blocks share the links that leave them.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tutti.training.endpoint import Ring, scaled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tutti import _core
    from tutti.topologies import Topology
    from tutti.training.fabric import StepNetwork, Transfer

_MOST_SEARCHED = 128
"""NPUs above which the eccentricity of an NPU is replaced by the latency of one link."""


@dataclass(frozen=True)
class Needs:
    """Bytes that any schedule of a collective moves.

    Attributes:
        leaves: Bytes that leave each rank because of its data.
        enters: Bytes that enter each rank before its result is complete.
        sends: Bytes that a rank sends, averaged over the ranks.
        reads: Bytes that a rank reads from its memory to send them, averaged over the ranks: all
            but those that it has reduced completely.
    """

    leaves: float
    enters: float
    sends: float
    reads: float

    @classmethod
    def of(cls, collective: str, ranks: int, size: int) -> Needs:
        """Returns the bytes of a collective of `size` bytes among `ranks` NPUs."""
        most = size * (ranks - 1) / ranks
        shard = size / ranks
        if collective == "all_reduce":
            return cls(leaves=size, enters=size, sends=2 * most, reads=most)
        if collective == "reduce_scatter":
            return cls(leaves=most, enters=shard, sends=most, reads=most)
        if collective == "all_gather":
            return cls(leaves=shard, enters=most, sends=most, reads=most)
        if collective == "all_to_all":
            return cls(leaves=most, enters=most, sends=most, reads=most)
        return cls(leaves=0, enters=0, sends=0, reads=0)


def _across(collective: str, blocks: int, ranks: int, size: int) -> float:
    """Returns the bytes between blocks of ranks of one group, summed over its messages."""
    if blocks < 2:
        return 0
    factors = {"all_reduce": 2, "reduce_scatter": 1, "all_gather": 1}
    factors["all_to_all"] = ranks // blocks
    return factors.get(collective, 0) * (blocks - 1) * size


def _across_in_network(collective: str, blocks: int, ranks: int, size: int) -> float:
    """Returns the bytes that leave blocks of ranks of one group if switches multicast and reduce.

    The data of a block leave it at least once: the full payload of an all_reduce, and the shards of
    an all_gather.
    """
    if blocks < 2 or collective not in {"all_reduce", "all_gather"}:
        return _across(collective, blocks, ranks, size)
    return blocks * size if collective == "all_reduce" else size


@dataclass(frozen=True)
class Cuts:
    """The cuts of the network of a training step, and its latencies.

    Attributes:
        network: The network.
    """

    network: StepNetwork

    @cached_property
    def wide(self) -> tuple[int, ...]:
        """The dimensions with more than one NPU."""
        return tuple(at for at, size in enumerate(self.network.sizes) if size > 1)

    def within(self, mask: int) -> list[int]:
        """Returns the dimensions of a mask that have more than one NPU."""
        return [at for at in self.wide if mask >> at & 1]

    def ranks(self, dimensions: Sequence[int]) -> int:
        """Returns the number of NPUs along dimensions."""
        return math.prod(self.network.sizes[at] for at in dimensions)

    def loads(self, transfer: Transfer) -> Iterator[tuple[str, float]]:
        """Yields the busy time in ps of the links that leave the blocks of each cut."""
        collective, mask, size, _ = transfer
        group = self.within(mask)
        ranks, npus = self.ranks(group), self.ranks(self.wide)
        across = _across_in_network if self._is_in_network else _across
        for cut, rate in self._rates.items():
            blocks = self.ranks([at for at in group if at in cut])
            moved = across(collective, blocks, ranks, size) * (npus // ranks)
            yield f"links of {self._name(cut)}", moved / rate
        if len(group) == len(self.wide):
            yield from self._by_links(collective, size)

    def _name(self, cut: tuple[int, ...]) -> str:
        return " and ".join(self.network.rings[at].name for at in cut)

    def _by_links(self, collective: str, size: int) -> Iterator[tuple[str, float]]:
        """Yields the load of the worst cut of a topology, which belongs to one collective."""
        if self._topology is not None and collective in _BOUND_BY_LINKS:
            if collective not in self._worst:
                # Switches that reduce leave only the bound of single cuts, as for a broadcast.
                is_single = self._is_in_network and collective == "all_reduce"
                bound = self._topology.bound_by_links("broadcast" if is_single else collective)
                self._worst[collective] = bound.core.ps_per_byte
            # Some cuts have shards that are a byte shorter.
            yield (
                f"links of the worst cut of {collective}",
                (self._worst[collective] * max(0, size - self._topology.ranks)),
            )

    @cached_property
    def _worst(self) -> dict[str, float]:
        return {}

    @cached_property
    def _topology(self) -> Topology | None:
        platform = self.network.platform
        return platform.routes.topology if platform and platform.routes else None

    @cached_property
    def _is_in_network(self) -> bool:
        platform = self.network.platform
        return platform is not None and platform.is_in_network

    @cached_property
    def _rates(self) -> dict[tuple[int, ...], float]:
        """The bytes per ps of all links that leave blocks, by the dimensions of the cut."""
        cuts = (c for n in range(len(self.wide)) for c in itertools.combinations(self.wide, n + 1))
        return {cut: self._rate(cut) for cut in cuts}

    def _rate(self, cut: tuple[int, ...]) -> float:
        if self._topology is None:
            return self.ranks(self.wide) * self._of_rings(cut)
        block = self._blocks(self._topology, cut)
        return sum(
            _rate(rate)
            for source, target, rate, *_ in self._topology.core.links()
            if block[source] is not None and block[source] != block[target]
        )

    def _of_rings(self, dimensions: Sequence[int]) -> float:
        """Returns the bytes per ps of the links of a torus that leave one NPU."""
        if self.network.platform is not None:
            return math.inf
        rings = [ring for ring in self.network.rings if isinstance(ring, Ring)]
        efficiency = self.network.efficiency
        return sum(2 * _rate(scaled(rings[at].rate, efficiency).core) for at in dimensions)

    def _blocks(self, topology: Topology, cut: tuple[int, ...]) -> list[int | None]:
        """Returns the block of each vertex; a switch joins the block of most of its links."""
        block: list[int | None] = [self._block(npu, cut) for npu in range(topology.ranks)]
        block += [None] * (len(topology.core.vertices()) - topology.ranks)
        links = topology.core.links()
        changed = True
        while changed:
            changed = False
            to: dict[int, dict[int | None, float]] = defaultdict(lambda: defaultdict(float))
            for source, target, rate, *_ in links:
                if source >= topology.ranks:
                    to[source][block[target]] += _rate(rate)
            for vertex, rates in to.items():
                chosen, most = max(rates.items(), key=lambda item: item[1])
                if block[vertex] is None and chosen is not None and 2 * most > sum(rates.values()):
                    block[vertex], changed = chosen, True
        return block

    def _block(self, npu: int, dimensions: Sequence[int]) -> int:
        """Returns a number of the coordinates of an NPU along dimensions."""
        sizes = self.network.sizes
        number = 0
        for at in dimensions:
            number = number * sizes[at] + npu // math.prod(sizes[:at]) % sizes[at]
        return number

    def exit(self, mask: int) -> float:
        """Returns the most bytes per ps that leave an NPU for others of its group."""
        return self._ports[0] if self._topology else self._of_rings(self.within(mask))

    def entry(self, mask: int) -> float:
        """Returns the most bytes per ps that enter an NPU from others of its group."""
        return self._ports[1] if self._topology else self._of_rings(self.within(mask))

    @cached_property
    def _ports(self) -> tuple[float, float]:
        """The bytes per ps of the links that leave and enter the NPU with the most of each."""
        out: dict[int, float] = defaultdict(float)
        into: dict[int, float] = defaultdict(float)
        if self._topology is not None:
            for source, target, rate, *_ in self._topology.core.links():
                out[source] += _rate(rate)
                into[target] += _rate(rate)
        npus = range(self.ranks(self.wide))
        return max(out[npu] for npu in npus), max(into[npu] for npu in npus)

    def nearest(self, mask: int) -> int:
        """Returns the least latency in ps between two NPUs of a group."""
        if self._topology is None:
            return min(self._latencies[at] for at in self.within(mask))
        ranks = self._topology.ranks
        return min(ps for source, _, _, ps, _ in self._topology.core.links() if source < ranks)

    def eccentricity(self, mask: int) -> int:
        """Returns the least latency in ps within which data of an NPU reach all of its group."""
        sizes = self.network.sizes
        group = self.within(mask)
        if self._topology is None:
            return sum(sizes[at] // 2 * self._latencies[at] for at in group)
        if self._topology.ranks > _MOST_SEARCHED:
            return self.nearest(mask)
        others = [at for at in self.wide if at not in group]
        members: dict[int, list[int]] = defaultdict(list)
        for npu in range(self._topology.ranks):
            members[self._block(npu, others)].append(npu)
        return min(max(self._distances[one][npu] for npu in group)
                   for group in members.values() for one in group)  # fmt: skip

    @cached_property
    def _latencies(self) -> list[int]:
        return [ring.latency.ps if isinstance(ring, Ring) else 0 for ring in self.network.rings]

    @cached_property
    def _distances(self) -> list[list[int]]:
        """The least latency in ps from each NPU to each vertex."""
        topology = self._topology
        if topology is None:
            return []
        out: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for source, target, _, latency, _ in topology.core.links():
            out[source].append((target, latency))
        count = len(topology.core.vertices())
        return [_shortest(out, npu, count) for npu in range(topology.ranks)]


_BOUND_BY_LINKS = {"all_reduce", "reduce_scatter", "all_gather", "all_to_all"}


def _shortest(out: dict[int, list[tuple[int, int]]], source: int, count: int) -> list[int]:
    """Returns the least latency from a vertex to all others; 0 to those that it cannot reach."""
    found: dict[int, int] = {}
    queue = [(0, source)]
    while queue:
        distance, vertex = heapq.heappop(queue)
        if vertex not in found:
            found[vertex] = distance
            for target, latency in out[vertex]:
                heapq.heappush(queue, (distance + latency, target))
    return [found.get(vertex, 0) for vertex in range(count)]


def _rate(per_byte: _core.TimePerByte) -> float:
    """Returns the bytes per ps of a time per byte."""
    return 1 / per_byte.ps_per_byte if per_byte.ps_per_byte else math.inf
