"""Dedicated links by local search: a flow may eject others, which then take other paths.

The search starts from any selection and never loses a dedicated flow. It first places more flows,
then shortens paths. A flow takes a path whose resources others use, ejects those, and places each
of them again, which may eject further flows. If one of them finds no path, all is undone. The
search counts the paths that it tries, so that every machine finds the same result. It scales to
thousands of flows, for which `exact` has no time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from tutti.bypass.bounds import least_hops
from tutti.bypass.exact import Chosen
from tutti.bypass.greedy import hops_of, short_paths

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from tutti.bypass.exact import NodePath
    from tutti.bypass.flows import Flow
    from tutti.bypass.space import Hop, Space

_DEPTH = 2
"""The most ejections in a chain."""
_PATHS = (24, 12, 8)
"""The paths that a flow tries, by ejections so far."""
_MOST_EJECTED = 2
"""The most flows that a path may eject."""


def improved(space: Space, requested: Counter[Flow], chosen: Chosen, *, trials: int) -> Chosen:
    """Returns a selection with at least as many dedicated flows, and then fewer hops.

    Args:
        space: The resources of the mesh.
        requested: Links requested by each pair.
        chosen: The selection to improve.
        trials: The most paths to try.
    """
    search = _Search(space, requested, chosen, trials)
    missing = [flow for flow in requested if flow not in search.paths]
    while search.place_all(missing):
        missing = [flow for flow in missing if flow not in search.paths]
    while search.shorten_all():
        pass
    return Chosen(dict(search.paths), dict(search.links), chosen.bound)


class _Search:
    """The selection, and the flows that use each resource."""

    def __init__(
        self, space: Space, requested: Mapping[Flow, int], chosen: Chosen, trials: int
    ) -> None:
        """Takes the resources of the selection."""
        self.space = space
        self.requested = requested
        self.left = trials
        self.paths: dict[Flow, NodePath] = {}
        self.links: dict[Flow, int] = {}
        self._users: defaultdict[Hashable, dict[Flow, int]] = defaultdict(dict)
        self._used: Counter[Hashable] = Counter()
        self._journal: list[tuple[Flow, NodePath | None, int]] = []
        for flow, path in chosen.paths.items():
            self._take(flow, path, chosen.links[flow])

    def place_all(self, flows: Iterable[Flow]) -> bool:
        """Places flows without a path; returns whether any found one."""
        found = False
        for flow in flows:
            if self.left > 0:
                found |= self._place(flow, _DEPTH, frozenset())
                self._journal.clear()
        return found

    def shorten_all(self) -> bool:
        """Shortens paths that exceed the minimum; returns whether any became shorter."""
        longer = [
            flow for flow, path in self.paths.items()
            if len(path) - 1 > least_hops(self.space, flow)
        ]  # fmt: skip
        return sum(map(self._shorten, longer)) > 0

    def _shorten(self, flow: Flow) -> bool:
        """Gives a flow a shorter path if that saves hops in total."""
        before, path = self._hops(), self.paths[flow]
        if self.left <= 0 or len(path) - 1 <= least_hops(self.space, flow):
            return False
        self._journal.clear()
        links = self.links[flow]
        self._give(flow)
        placed = self._place(flow, _DEPTH, frozenset(), fewer_than=len(path), links=links)
        if placed and self._hops() < before:
            return True
        self._undo(0)
        return False

    def _hops(self) -> int:
        return sum(self.links[flow] * (len(path) - 1) for flow, path in self.paths.items())

    def _place(
        self,
        flow: Flow,
        depth: int,
        fixed: frozenset[Flow],
        *,
        fewer_than: int | None = None,
        links: int | None = None,
    ) -> bool:
        """Places a flow, and all flows that it ejects; changes nothing if that fails.

        `fixed`: the flows that must not be ejected. `fewer_than`: the limit of the path's nodes.
        """
        count = self.requested[flow] if links is None else links
        candidates = [
            path for path in short_paths(self.space, flow)
            if fewer_than is None or len(path) < fewer_than
        ]  # fmt: skip
        for path in candidates[: _PATHS[_DEPTH - depth]]:
            if self.left <= 0:
                return False
            self.left -= 1
            ejected = self._blockers(path, count, fixed)
            if ejected is None or (ejected and depth == 0):
                continue
            start, its = len(self._journal), {one: self.links[one] for one in ejected}
            for other in ejected:
                self._give(other)
            self._take(flow, path, count)
            if all(
                self._place(other, depth - 1, fixed | {flow, *ejected}, links=its[other])
                for other in ejected
            ):
                return True
            self._undo(start)
        return False

    def _blockers(self, path: NodePath, count: int, fixed: frozenset[Flow]) -> list[Flow] | None:
        """Returns the flows to eject for a path; None if they are too many or fixed."""
        needs: Counter[Hashable] = Counter()
        for hop in hops_of(path):
            for resource in resources(self.space, hop):
                needs[resource] += count
        ejected: list[Flow] = []
        for resource, need in needs.items():
            users = self._users[resource]
            over = self._used[resource] + need - capacity(self.space, resource)
            over -= sum(users.get(flow, 0) for flow in ejected)
            for user in sorted(users, key=lambda one: (users[one], one)):
                if over <= 0:
                    break
                if user not in fixed and user not in ejected:
                    ejected.append(user)
                    over -= users[user]
            if over > 0 or len(ejected) > _MOST_EJECTED:
                return None
        return ejected

    def _take(self, flow: Flow, path: NodePath, links: int) -> None:
        self._journal.append((flow, None, 0))
        self.paths[flow], self.links[flow] = path, links
        self._count(flow, path, links)

    def _give(self, flow: Flow) -> None:
        path, links = self.paths.pop(flow), self.links.pop(flow)
        self._journal.append((flow, path, links))
        self._count(flow, path, -links)

    def _count(self, flow: Flow, path: NodePath, links: int) -> None:
        for hop in hops_of(path):
            for resource in resources(self.space, hop):
                self._used[resource] += links
                users = self._users[resource]
                users[flow] = users.get(flow, 0) + links
                if not users[flow]:
                    del users[flow]

    def _undo(self, length: int) -> None:
        """Reverts the journal to a length."""
        while len(self._journal) > length:
            flow, path, links = self._journal.pop()
            if path is None:
                self._count(flow, self.paths.pop(flow), -self.links.pop(flow))
            else:
                self.paths[flow], self.links[flow] = path, links
                self._count(flow, path, links)


def resources(space: Space, hop: Hop) -> list[Hashable]:
    """Returns what a hop uses, as `TakenHops` counts it: ports and segments."""
    stretch = space.hops[hop]
    group = space.group(stretch.line)
    used: list[Hashable] = [("output", hop[0], group), ("input", hop[1], group)]
    for segment in range(stretch.first, stretch.end):
        used.append(("every", stretch.line, segment))
        if stretch.span > 1:
            used.append(("long", stretch.line, segment))
    return used


def capacity(space: Space, resource: Hashable) -> int:
    """Returns how many links may use a resource."""
    assert isinstance(resource, tuple)  # noqa: S101 - `resources` returns tuples
    kind = resource[0]
    return {"every": space.wires + 1, "long": space.wires}.get(kind, space.ports)
