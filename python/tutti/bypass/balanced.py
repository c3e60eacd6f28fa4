"""Flows balanced over links: paths on the mesh, and pieces of wires where links are crowded.

If many flows share links, ports that are reserved for dedicated flows cost more than they gain. The
search starts from the mesh without dedicated links. It repeatedly relieves the most loaded link: by
a parallel link, or by another path for one of its flows, for which links are added.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from tutti.bypass.exact import Chosen
from tutti.bypass.greedy import hops_of, short_paths
from tutti.bypass.rest import Live

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.bypass.exact import NodePath
    from tutti.bypass.flows import Flow
    from tutti.bypass.space import Hop, Space

_PATHS = 16
"""The paths that a flow tries."""
_STEPS = 50
"""The most steps per flow."""


def balanced(space: Space, flows: Sequence[Flow]) -> Live:
    """Returns the live links and the paths of flows, without dedicated links.

    Args:
        space: The resources of the mesh.
        flows: Source and destination; repeated pairs share a path.
    """
    live = Live(space, flows, Chosen({}, {}, len(flows)))
    _Relief(live).relieve()
    return live


class _Relief:
    """The flows on each link of a mapping."""

    def __init__(self, live: Live) -> None:
        """Counts the flows on each hop."""
        self.live = live
        self.taken = live.taken
        self.count = Counter(live.flows)
        self.loads: Counter[Hop] = Counter()
        self.users: defaultdict[Hop, set[Flow]] = defaultdict(set)
        self._waiting: list[tuple[float, Hop]] = []
        for flow, path in live.paths.items():
            self._move(flow, hops_of(path), 1)
        for hop in self.loads:
            self._wait(hop)

    def relieve(self) -> None:
        """Relieves links in order of their load until none can be relieved.

        A link that cannot be relieved is tried again when its load changes.
        """
        for _ in range(_STEPS * len(self.live.flows)):
            if not self._waiting:
                return
            negative, hop = heapq.heappop(self._waiting)
            if self.loads[hop] and -negative == self._load(hop):
                if self.taken.add([hop]):
                    self._wait(hop)
                else:
                    self._relieve(hop)

    def _wait(self, hop: Hop) -> None:
        """Enqueues a hop if several flows share a link."""
        if self.loads[hop] and self._load(hop) > 1:
            heapq.heappush(self._waiting, (-self._load(hop), hop))

    def _load(self, hop: Hop) -> float:
        return self.loads[hop] / self.taken.hops[hop]

    def _relieve(self, hop: Hop) -> bool:
        """Moves a flow from a hop to a path whose hops are loaded less; the longest path first."""
        users = sorted(self.users[hop], key=lambda flow: (-len(self.live.paths[flow]), flow))
        return any(self._moves(flow, self._load(hop)) for flow in users)

    def _moves(self, flow: Flow, load: float) -> bool:
        """Moves a flow if every hop of its new path is loaded less than `load`."""
        before = hops_of(self.live.paths[flow])
        self._move(flow, before, -1)
        released = self._released(before)
        for path in short_paths(self.taken.space, flow)[:_PATHS]:
            if hops_of(path) != before and self._fits(path, self.count[flow], load):
                self.live.paths[flow] = list(path)
                self._move(flow, hops_of(path), 1)
                for hop in (*before, *hops_of(path)):
                    self._wait(hop)
                return True
        for hop in released:
            self.taken.take(hop)
        self._move(flow, before, 1)
        return False

    def _fits(self, path: NodePath, count: int, load: float) -> bool:
        """Adds the links that keep the load of a path below `load`; False if they do not fit."""
        added: list[Hop] = []
        for hop in hops_of(path):
            while (self.loads[hop] + count) >= load * self.taken.hops[hop]:
                if not self.taken.add([hop]):
                    for one in added:
                        self.taken.give(one)
                    return False
                added.append(hop)
        return True

    def _released(self, hops: list[Hop]) -> list[Hop]:
        """Removes the links of hops without flows, and returns them."""
        idle = [hop for hop in hops if not self.loads[hop]]
        links = [hop for hop in idle for _ in range(self.taken.hops[hop])]
        for hop in links:
            self.taken.give(hop)
        return links

    def _move(self, flow: Flow, hops: list[Hop], sign: int) -> None:
        for hop in hops:
            self.loads[hop] += sign * self.count[flow]
            if sign > 0:
                self.users[hop].add(flow)
            else:
                self.users[hop].discard(flow)
