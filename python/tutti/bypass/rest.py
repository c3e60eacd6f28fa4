"""What is done with what dedicated flows leave: ways for the other flows, more links, mesh links.

Other flows go over mesh links at idle ports, spread as evenly as they can be, and only where there
is no such way over links that a dedicated flow has to itself. Idle wires and ports then double the
links in greatest demand, and idle ports get their mesh links back.
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
"""What a hop costs, what each flow on its links adds, and what a link costs that has an owner."""


class Live:
    """Which links are live, and the ways of all flows over them."""

    def __init__(self, space: Space, flows: Sequence[Flow], chosen: Chosen) -> None:
        """Finds ways for the flows that have no links of their own; other links are not live."""
        self.flows = flows
        self.own: Counter[Hop] = Counter()
        """How many links from one node to another dedicated flows have to themselves."""
        self.shared: Counter[Hop] = Counter()
        """How many other flows go from one node to another."""
        asked = Counter(flows)
        for flow, way in chosen.ways.items():
            for hop in hops_of(way):
                self.own[hop] += chosen.links[flow]
                if chosen.links[flow] < asked[flow]:
                    self.shared[hop] += asked[flow] - chosen.links[flow]
        self.taken = TakenHops(space, self.own.elements())
        rest = [flow for flow in dict.fromkeys(flows) if flow not in chosen.ways]
        self._demand = Counter(hop for flow in rest for hop in hops_of(space.xy(*flow)))
        self._mesh_back()
        self.ways = {flow: list(way) for flow, way in chosen.ways.items()}
        for flow in rest:
            cheapest = self._cheapest(flow)
            if cheapest is not None:
                self.ways[flow] = cheapest
                for hop in hops_of(cheapest):
                    self.shared[hop] += asked[flow]
        for hop in list(self.taken.hops):
            if not self.own[hop] and not self.shared[hop]:
                self.taken.give(hop)

    def fill(self) -> None:
        """Doubles what is in greatest demand, then gives idle ports their mesh links back."""
        self._relieve()
        whole = [hops_of(way) for way in self.ways.values()]
        while whole:  # one more link for each in every round
            whole = [hops for hops in whole if self.taken.add(hops)]
        self._mesh_back()

    @property
    def lent(self) -> set[Hop]:
        """Where others go over links that have an owner."""
        crowded = (hop for hop in self.shared if self.own[hop])
        return {hop for hop in crowded if self.own[hop] + self.shared[hop] > self.taken.hops[hop]}

    def _mesh_back(self) -> None:
        """Every mesh link whose ports are idle, those in demand first."""
        space, demand = self.taken.space, self._demand
        hops = [hop for hop, stretch in space.hops.items() if stretch.span == 1]
        for hop in sorted(hops, key=lambda hop: (-demand[hop], hop)):
            if not self.taken.hops[hop]:
                self.taken.add([hop])

    def _cheapest(self, flow: Flow) -> list[int] | None:
        """The cheapest way over live links; among equals the first by its nodes."""
        source, destination = flow
        waiting: list[tuple[int, list[int]]] = [(0, [source])]
        done: set[int] = set()
        while waiting:
            cost, way = heapq.heappop(waiting)
            at = way[-1]
            if at == destination:
                return way
            if at in done:
                continue
            done.add(at)
            for to in self.taken.space.leaving[at]:
                if to not in done and self.taken.hops[at, to]:
                    heapq.heappush(waiting, (cost + self._price((at, to)), [*way, to]))
        return None

    def _price(self, hop: Hop) -> int:
        is_owned = self.own[hop] and self.shared[hop] >= self.taken.hops[hop] - self.own[hop]
        return _HOP + _OTHERS * self.shared[hop] + (_OWNED if is_owned else 0)

    def _relieve(self) -> None:
        """More links where more flows go than there are links, the most crowded first."""
        loads: Counter[Hop] = Counter()
        for flow in self.flows:
            loads.update(hops_of(self.ways.get(flow, ())))
        crowded = [(-load / self.taken.hops[hop], hop) for hop, load in loads.items()]
        heapq.heapify(crowded)
        while crowded and crowded[0][0] < -1:
            _, hop = heapq.heappop(crowded)
            if self.taken.add([hop]):
                heapq.heappush(crowded, (-loads[hop] / self.taken.hops[hop], hop))
