"""Settings of a mesh that change nothing, as other settings disable them."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tutti.networks.mesh.mesh import SmartMesh

_OF_CONNECTED = frozenset({"design", "columns", "rows"})
"""The settings of a fully connected mesh, which has no routers."""


def idle_settings(mesh: SmartMesh) -> Iterator[str]:
    """Yields a sentence for each given setting that has no effect."""
    given = {one.name: getattr(mesh, one.name) for one in fields(mesh)}
    settings = mesh.settings
    if mesh.design.startswith("fully_connected"):
        names = [name for name, value in given.items() if value is not None]
        for name in (name for name in names if name not in _OF_CONNECTED):
            yield f"mesh.{name} has no effect: `{mesh.design}` has no routers"
        return
    fan_in = settings["fan_in"]
    if given["merge"] is not None and fan_in != "greedy":
        yield f"mesh.merge has no effect: `fan_in` is `{fan_in}`, not `greedy`"
    if given["art_entries"] is not None and fan_in != "complete":
        yield f"mesh.art_entries has no effect: `fan_in` is `{fan_in}`, not `complete`"
    if given["reducer"] and fan_in == "unicasts":
        yield "mesh.reducer has no effect: `fan_in` is `unicasts`, so routers combine nothing"
