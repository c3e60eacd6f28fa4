"""Routes of Garnet: shortest paths by weight, as gem5's routing tables hold them.

Each router holds, for each destination, the links that start a path of the least sum of weights.
A packet takes the link of the least weight among them. If several have that weight, an ordered
vnet takes the first one, which leads to the router of the lowest number; other vnets draw one.

Source: gem5 `Topology.cc` (`shortest_path`), `RoutingUnit.cc` (`lookupRoutingTable`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tutti.base.files.mistakes import mistake
from tutti.formats.garnet.network import MOST_WEIGHT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tutti.formats.garnet.network import GarnetNetwork

_ABSENT: Final = MOST_WEIGHT + 1


class Routes(NamedTuple):
    """The routing tables of a network."""

    next_router: NDArray[np.int32]
    """By router and destination, the next router; the router itself at the destination."""
    equal: int
    """Pairs of router and destination at which several links have the least weight."""

    def path(self, start: int, end: int) -> list[int]:
        """Returns the routers from one to another, both included."""
        path = [start]
        while path[-1] != end:
            path.append(int(self.next_router[path[-1], end]))
        return path


def routes_of(network: GarnetNetwork) -> Routes:
    """Returns the routing tables.

    Raises:
        ConfigError: A router with a controller cannot reach another one.
    """
    count = network.routers
    distance = _distances(network)
    chosen = np.full((count, count), -1, np.int32)
    least = np.full((count, count), _ABSENT, np.int32)
    equal = np.zeros((count, count), bool)
    # The last assignment is that of the least weight, and then of the lowest number.
    for link in sorted(network.int_links, key=lambda one: (-one.weight, -one.end)):
        row = link.start
        fits = link.weight + distance[link.end] == distance[row]
        fits &= distance[row] < _ABSENT
        equal[row] = np.where(fits, least[row] == link.weight, equal[row])
        chosen[row, fits], least[row, fits] = link.end, link.weight
    np.fill_diagonal(chosen, np.arange(count))
    np.fill_diagonal(equal, val=False)
    _refuse_absent(network, chosen)
    return Routes(chosen, int(equal.sum()))


def _distances(network: GarnetNetwork) -> NDArray[np.int32]:
    """Returns the least sums of weights (Floyd and Warshall)."""
    distance = np.full((network.routers, network.routers), _ABSENT, np.int32)
    np.fill_diagonal(distance, 0)
    for link in network.int_links:
        distance[link.start, link.end] = link.weight
    for middle in range(network.routers):
        np.minimum(distance, distance[:, middle, None] + distance[middle], out=distance)
    return distance


def _refuse_absent(network: GarnetNetwork, chosen: NDArray[np.int32]) -> None:
    used = sorted({link.router for link in network.ext_links})
    absent = np.argwhere(chosen[np.ix_(used, used)] < 0)
    if len(absent):
        start, end = (used[place] for place in absent[0])
        raise mistake(
            f"router {start} has no path to router {end}",
            source=network.source,
            expected="int_links in both directions, with a sum of weights below 10,000",
        )


class Mesh(NamedTuple):
    """A network that is a mesh with routers numbered along x."""

    columns: int
    rows: int
    routing: str
    """`dimension_order`, or `dimension_order:yx`."""


def mesh_of(network: GarnetNetwork, routes: Routes) -> Mesh | None:
    """Returns the mesh that the links and routes form; None if it is another network."""
    pairs = {(link.start, link.end) for link in network.int_links}
    if len({link.cycles for link in network.int_links}) != 1:
        return None
    for columns in _divisors(network.routers):
        rows = network.routers // columns
        if pairs != _mesh_links(columns, rows):
            continue
        x, y = np.arange(network.routers) % columns, np.arange(network.routers) // columns
        along_x = x[:, None] != x[None, :]
        along_y = y[:, None] != y[None, :]
        here = np.arange(network.routers)[:, None]
        step_x = here + np.sign(x[None, :] - x[:, None])
        step_y = here + columns * np.sign(y[None, :] - y[:, None])
        if (routes.next_router == np.where(along_x, step_x, step_y)).all():
            return Mesh(columns, rows, "dimension_order")
        if (routes.next_router == np.where(along_y, step_y, step_x)).all():
            return Mesh(columns, rows, "dimension_order:yx")
        return None
    return None


def _divisors(number: int) -> list[int]:
    return [n for n in range(number, 0, -1) if number % n == 0]


def _mesh_links(columns: int, rows: int) -> set[tuple[int, int]]:
    links = set()
    for router in range(columns * rows):
        if router % columns + 1 < columns:
            links |= {(router, router + 1), (router + 1, router)}
        if router + columns < columns * rows:
            links |= {(router, router + columns), (router + columns, router)}
    return links
