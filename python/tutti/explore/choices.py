"""The values of the controls of a page: platforms, collectives, models and parameters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tutti import _core
from tutti.base.datatypes import DATATYPES
from tutti.explore.state import DEFAULTS, MOST_LINKS, default_algorithms, parameters
from tutti.platforms.files.presets import find_platform, platform_names
from tutti.training.endpoint import configurations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tutti.explore.state import Base
    from tutti.topologies import Routes


def choices(base: Base) -> dict[str, Any]:
    """Returns the values of the controls, and the base experiment."""
    written = base.tables["platform"]
    is_bundled = isinstance(written, str) and written in platform_names()
    experiment = base.experiment({})
    return {
        "platforms": [
            {"name": name, "summary": find_platform(name, folder=Path()).summary}
            for name in platform_names()
        ],
        "collectives": [one for one in _core.collectives() if one != "all_to_all_v"],
        "datatypes": list(DATATYPES),
        "endpoints": list(configurations()),
        "base": {
            "title": str(base.tables.get("title", "")),
            "platform": written if is_bundled else "",
            "platform_name": experiment.platform.name,
            "collective": experiment.collective,
            "ranks": list(experiment.ranks),
            "sizes": [str(size) for size in experiment.sizes],
            "datatype": experiment.datatype,
            "algorithms": base.tables.get("algorithms", "all"),
        },
    }


def platform_json(base: Base, state: Mapping[str, Any]) -> dict[str, Any]:
    """Returns models, parameters and algorithms of a state's platform."""
    unchanged = {**state, "changes": {}, "algorithms": DEFAULTS}
    experiment = base.experiment(unchanged)
    routes = experiment.machine().routes
    return {
        "name": experiment.platform.name,
        "summary": experiment.platform.summary,
        "source": experiment.platform.source,
        "model": experiment.model,
        "models": [
            {"name": name, "summary": model.summary}
            for name, model in experiment.platform.models.items()
        ],
        "topology": routes.topology.name if routes else "",
        "most_ranks": routes.topology.ranks if routes else None,
        "algorithms": default_algorithms(experiment),
        "note": _note(routes),
        "parameters": parameters(base, unchanged, experiment.model),
    }


def _note(routes: Routes | None) -> str:
    """Returns why default algorithms are missing; empty if none is."""
    links = routes.topology.core.link_count if routes else 0
    if links <= MOST_LINKS:
        return ""
    return f"Without algorithms for graphs: the topology has {links:,} links."
