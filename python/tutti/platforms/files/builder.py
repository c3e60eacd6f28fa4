"""Builds the `Platform` of `tutti.simulate` from a platform file: model, local costs and routes."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tutti.base.errors import TuttiError
from tutti.base.files.mistakes import mistake
from tutti.base.files.sourced import written

if TYPE_CHECKING:
    from tutti.base.declared.models import Model
    from tutti.platforms.files.platform_file import RawPlatform, TopologyTable
    from tutti.platforms.library import Library
    from tutti.platforms.machine import Platform
    from tutti.topologies import Routes


def machine(platform: RawPlatform, model: str, *, source: str) -> Platform:
    """Returns a platform with one of its models.

    Args:
        platform: The platform as written.
        model: The name of the model.
        source: The name of the file in errors.

    Raises:
        ConfigError: The model's values contradict each other, or the topology is unknown.
    """
    from tutti.platforms.files.contention import contention_of
    from tutti.platforms.machine import Platform

    default = platform.default_model or next(iter(platform.models))
    name = platform.name if model == default else f"{platform.name}:{model}"
    network = _network(platform, model, source)
    routes = _routes(platform, source)
    _check_nodes(platform, routes, source)
    contention = contention_of(platform, routes, source=source)
    library = _library(platform, routes, is_default=model == default, source=source)
    found = Platform(
        name=name, model=network, routes=routes, contention=contention, library=library
    )
    try:
        return found.checked()
    except TuttiError as error:
        from tutti.networks.errors import keys_of_errors
        from tutti.platforms.files.flits import FlitsTable

        key = f"platform {platform.name}: topology.flits"
        what = keys_of_errors("flit").get(error.kind, "").removeprefix("topology.")
        path = f"{key}.{what}" if what.partition(".")[0] in FlitsTable.model_fields else key
        raise mistake(error.problem, source=source, key=path, hint=error.hint) from None


def _network(platform: RawPlatform, model: str, source: str) -> Model:
    """Returns a network model of a platform, with the costs of local work."""
    from tutti.base.declared.models import MODELS
    from tutti.platforms.files.platform_file import OF_MODELS

    chosen = platform.models[model]
    values = {
        info.alias or name: written(getattr(table, name))
        for table in (platform.compute, chosen)
        for name, info in type(table).model_fields.items()
        if name not in {"kind", "summary"}
        and (name not in OF_MODELS or name in table.model_fields_set)
    }
    try:
        network = next(m for m in MODELS if m.model_fields["kind"].default == chosen.kind)(**values)
        network.core  # noqa: B018 - the core checks the values together
    except TuttiError as error:
        key = f"platform {platform.name}: models.{model}"
        raise mistake(error.problem, source=source, key=key, hint=error.hint) from None
    return network  # type: ignore[return-value] # a member of the union


def _library(
    platform: RawPlatform, routes: Routes | None, *, is_default: bool, source: str
) -> Library | None:
    """Returns the library of a platform, with the costs of its protocols."""
    from tutti.platforms.library import Library
    from tutti.platforms.nodes import domain_of

    table = platform.library
    if table is None:
        return None
    prefix = f"{table.name}_"
    names = [name for name in platform.models if name.startswith(prefix)] if is_default else []
    models = {name: _network(platform, name, source) for name in names}
    return Library(
        name=table.name,
        version=table.version,
        system=table.system,
        models=models,
        node_npus=domain_of(routes) if routes is not None else 0,
        is_changed=_is_changed(platform),
    )


def _is_changed(platform: RawPlatform) -> bool:
    """Returns whether a platform has the name of a bundled one, and other values.

    The model of a library knows which library it is, and the number of nodes and their NPUs.
    """
    from tutti.platforms.files.presets import find_platform, platform_names

    if platform.name not in platform_names():
        return False
    bundled = find_platform(platform.name, folder=Path())
    if platform is bundled:
        return False
    topology, build = platform.topology, bundled.topology.build if bundled.topology else None
    if topology is not None and _family(topology.build) == _family(build):
        topology = topology.model_copy(update={"build": build})
    same = platform.model_copy(update={"library": bundled.library, "topology": topology})
    return same != bundled


def _family(build: str | None) -> str:
    return "" if build is None else build.partition(":")[0]


def _check_nodes(platform: RawPlatform, routes: Routes | None, source: str) -> None:
    """Rejects ranks per node that leave a node incomplete."""
    each = platform.topology.ranks_per_node if platform.topology else None
    if routes is None or each is None or routes.topology.ranks % each == 0:
        return
    raise mistake(
        f"nodes of {each:,} ranks do not divide the {routes.topology.ranks:,} NPUs",
        source=source,
        key=f"platform {platform.name}: topology.ranks_per_node",
        expected="a divisor of the number of NPUs",
    )


def npus(platform: RawPlatform, *, source: str) -> int | None:
    """Returns the number of NPUs of a platform's network; None if it has any number.

    Raises:
        ConfigError: The topology is unknown.
    """
    from tutti.platforms.files.contention import mesh_of

    mesh = mesh_of(platform, source=source)
    if mesh is not None:
        return mesh.mesh.nodes
    routes = _routes(platform, source)
    return routes.topology.ranks if routes else None


def _routes(platform: RawPlatform, source: str) -> Routes | None:
    from tutti.platforms.files.platform_file import CONTENTION, SWITCHES

    table = platform.topology
    if table is None:
        return None
    try:
        if table.build is None:
            return _routes_of(table)
        return _cached(_Built(table.model_dump_json(exclude={*CONTENTION, *SWITCHES}), table))
    except TuttiError as error:
        key = f"platform {platform.name}: topology"
        raise mistake(error.problem, source=source, key=key, hint=error.hint) from None


@dataclass(frozen=True)
class _Built:
    text: str
    table: TopologyTable = field(compare=False)


@functools.lru_cache(maxsize=8)
def _cached(built: _Built) -> Routes:
    """Returns the routes of a family, which sweeps request repeatedly. Files may change."""
    return _routes_of(built.table)


def _routes_of(table: TopologyTable) -> Routes:
    from tutti.topologies.table import topology_of

    topology = topology_of(table, Path())
    if table.paths:
        from tutti import _core
        from tutti.topologies import Routes

        paths = sorted((path[0], path[-1], path) for path in table.paths)
        return Routes(topology, _core.Routes.node_paths(topology.core, paths))
    return topology.routes(table.routing, seed=table.routing_seed)
