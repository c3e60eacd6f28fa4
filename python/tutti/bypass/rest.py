"""Paths of flows without dedicated links, and use of the remaining wires and ports.

Shared flows use mesh links at idle ports, spread evenly, and links of dedicated flows only if no
other path exists. Remaining wires and ports then double the most loaded links. Finally, idle ports
get their mesh links back.
"""

from __future__ import annotations

import heapq
from collections import Counter
from typing import TYPE_CHECKING

from tutti.bypass.greedy import hops_of
from tutti.bypass.space import TakenHops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.bypass.exact import Chosen
    from tutti.bypass.flows import Flow
    from tutti.bypass.space import Hop, Space

_HOP, _OTHERS, _OWNED = 4, 2, 1 << 20
"""The cost of a hop, of each flow on its links, and of a link of a dedicated flow."""


class Live:
    """The live links and the paths of all flows."""

    def __init__(self, space: Space, flows: Sequence[Flow], chosen: Chosen) -> None:
        """Finds paths for the shared flows; links without flows are not live."""
        self.flows = flows
        self.own: Counter[Hop] = Counter()
        """The links of each hop that belong to dedicated flows."""
        self.shared: Counter[Hop] = Counter()
        """The number of shared flows on each hop."""
        requested = Counter(flows)
        for flow, path in chosen.paths.items():
            for hop in hops_of(path):
                self.own[hop] += chosen.links[flow]
                if chosen.links[flow] < requested[flow]:
                    self.shared[hop] += requested[flow] - chosen.links[flow]
        self.taken = TakenHops(space, self.own.elements())
        rest = [flow for flow in dict.fromkeys(flows) if flow not in chosen.paths]
        self._demand = Counter(hop for flow in rest for hop in hops_of(space.xy(*flow)))
        self._mesh_back()
        self.paths = {flow: list(path) for flow, path in chosen.paths.items()}
        for flow in rest:
            cheapest = self._cheapest(flow)
            if cheapest is not None:
                self.paths[flow] = cheapest
                for hop in hops_of(cheapest):
                    self.shared[hop] += requested[flow]
        for hop in list(self.taken.hops):
            if not self.own[hop] and not self.shared[hop]:
                self.taken.give(hop)

    def fill(self) -> None:
        """Doubles the most loaded links, then gives idle ports their mesh links back."""
        self._relieve()
        pending = [hops_of(path) for path in self.paths.values()]
        while pending:  # one more link for each in every round
            pending = [hops for hops in pending if self.taken.add(hops)]
        self._mesh_back()

    @property
    def lent(self) -> set[Hop]:
        """The hops on which shared flows use links of dedicated flows."""
        crowded = (hop for hop in self.shared if self.own[hop])
        return {hop for hop in crowded if self.own[hop] + self.shared[hop] > self.taken.hops[hop]}

    def _mesh_back(self) -> None:
        """Adds every mesh link whose ports are idle, the most requested first."""
        space, demand = self.taken.space, self._demand
        hops = [hop for hop, stretch in space.hops.items() if stretch.span == 1]
        for hop in sorted(hops, key=lambda hop: (-demand[hop], hop)):
            if not self.taken.hops[hop]:
                self.taken.add([hop])

    def _cheapest(self, flow: Flow) -> list[int] | None:
        """Returns the path of least cost over live links; ties are broken by node numbers."""
        source, destination = flow
        waiting: list[tuple[int, list[int]]] = [(0, [source])]
        done: set[int] = set()
        while waiting:
            cost, path = heapq.heappop(waiting)
            at = path[-1]
            if at == destination:
                return path
            if at in done:
                continue
            done.add(at)
            for to in self.taken.space.leaving[at]:
                if to not in done and self.taken.hops[at, to]:
                    heapq.heappush(waiting, (cost + self._price((at, to)), [*path, to]))
        return None

    def _price(self, hop: Hop) -> int:
        is_owned = self.own[hop] and self.shared[hop] >= self.taken.hops[hop] - self.own[hop]
        return _HOP + _OTHERS * self.shared[hop] + (_OWNED if is_owned else 0)

    def _relieve(self) -> None:
        """Adds links where flows outnumber links, the most crowded first."""
        loads: Counter[Hop] = Counter()
        for flow in self.flows:
            loads.update(hops_of(self.paths.get(flow, ())))
        crowded = [(-load / self.taken.hops[hop], hop) for hop, load in loads.items()]
        heapq.heapify(crowded)
        while crowded and crowded[0][0] < -1:
            _, hop = heapq.heappop(crowded)
            if self.taken.add([hop]):
                heapq.heappush(crowded, (-loads[hop] / self.taken.hops[hop], hop))
