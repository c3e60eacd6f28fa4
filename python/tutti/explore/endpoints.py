"""Runs the selected schedule behind an endpoint model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tutti.base.errors import ConfigError
from tutti.base.files.mistakes import did_you_mean, shown
from tutti.base.units import Size
from tutti.training.collective import Alone
from tutti.training.endpoint import configurations
from tutti.training.fabric import Dimension

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tutti.explore.engine import Engine, Point

_PACKET = 256
"""Bytes of a packet, the unit of links behind an endpoint."""
_MOST_PACKETS = 20_000_000
"""Packets of all NPUs; more take minutes."""


def endpoint_json(
    engine: Engine, state: Mapping[str, Any], point: Point, name: object
) -> dict[str, Any]:
    """Returns the time of a schedule behind an endpoint configuration, and its lower bound.

    Args:
        engine: Has the schedule, or generates it.
        state: The state of the page.
        point: The schedule, which needs all NPUs of the topology.
        name: The name of the configuration.

    Raises:
        TuttiError: The configuration is unknown, or the point does not run behind an endpoint.
    """
    known = configurations()
    if not isinstance(name, str) or name not in known:
        problem = f"unknown endpoint {shown(name)}: expected one of {', '.join(known)}"
        raise ConfigError(problem, kind="invalid", hint=did_you_mean(str(name), known))
    experiment, laid_out = engine.schedule(state, point)
    platform = experiment.machine()
    _check(point, platform.routes.topology.ranks if platform.routes else 0)
    alone = Alone(
        size=Size(bytes=point.size),
        rings=(Dimension("all", point.ranks),),
        platform=platform,
        algorithms={experiment.collective: laid_out},
        collective=experiment.collective,
    )
    found = alone.run(known[name])
    servers = {server: work.ps for server, work in found.limit.servers.items()}
    return {
        "endpoint": name,
        "time_ps": found.time.ps,
        "bound_ps": found.limit.time.ps,
        "server": max(servers, key=lambda server: servers[server], default=""),
        "server_ps": max(servers.values(), default=0),
    }


def _check(point: Point, npus: int) -> None:
    """Rejects points that endpoint models do not support, or that take minutes.

    Raises:
        ConfigError: The point has other ranks than the topology has NPUs, or is too large.
    """
    if not npus:
        problem = "the platform has no topology, which endpoint models need"
        raise ConfigError(problem, kind="invalid", hint="select a platform with a topology")
    if point.ranks != npus:
        problem = f"endpoint models use all {npus:,} NPUs of the topology, not {point.ranks:,}"
        raise ConfigError(problem, kind="invalid", hint=f"add {npus} to the ranks of the page")
    packets = 2 * point.ranks * point.size // _PACKET
    if packets > _MOST_PACKETS:
        problem = f"about {packets:,} packets take too long behind an endpoint"
        raise ConfigError(problem, kind="invalid", hint="select a smaller size")
