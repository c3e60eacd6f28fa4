"""Descriptions of meshes and their traffic, for all renderings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.networks.mesh.traffic import UNITS
from tutti.view.quantity import counted, number, plural

if TYPE_CHECKING:
    from tutti.networks.mesh import SmartMesh, Traffic
    from tutti.networks.mesh.traffic import Kind


def describe_mesh(mesh: SmartMesh) -> str:
    """Returns the design, size and policies of a mesh on one line."""
    settings = mesh.settings
    size = f"{settings['columns']} x {settings['rows']}"
    if mesh.design.startswith("fully_connected"):
        return f"{mesh.design}, {size}"
    parts = [
        f"{plural(settings['hpc_max'], 'hop')} per cycle"
        + (" on paths with a turn" if settings["bypass_turns"] else "")
        + (", collectives too" if settings["collective_turns"] else ""),
        _priority(settings["priority"]),
        f"multicasts {settings['fan_out']}",
        f"responses {settings['fan_in']}",
    ]
    if settings["arbiter"] != "round_robin":
        parts.append(f"{settings['arbiter']} packets first within routers")
    if settings["hold"]:
        parts.append(f"responses wait if {settings['hold']}")
    return f"{mesh.design}, {size}: {', '.join(parts)}"


_PRIORITIES = {
    "local": "local flits first",
    "bypass": "bypass flits first",
    "bypass_responses": "bypassing responses first, then local flits",
}


def _priority(priority: str) -> str:
    return _PRIORITIES.get(priority) or f"flits of the largest {priority} first"


def rate(load: float, kind: Kind) -> str:
    """Returns a load with its unit: `1 reduction per cycle`, `0.5 reductions per cycle`."""
    noun, per = UNITS[kind].split(" ", 1)
    return f"{counted(number(load), noun.removesuffix('s'))} {per}"


def describe_buffers(mesh: SmartMesh) -> str:
    """Returns the number and depth of VCs and the credit delay."""
    settings = mesh.settings
    each = "split among broadcast stages" if settings["split_vcs"] else "per class"
    if settings["fan_out"] not in {"unicasts", "greedy:svt"} and not settings["split_vcs"]:
        each = "per class and broadcast stage"
    return (
        f"{plural(settings['vcs'], 'VC')} {each}, {plural(settings['depth'], 'flit')} deep; "
        f"credit delay {plural(settings['credit_delay'], 'cycle')}"
    )


def describe_traffic(traffic: Traffic) -> str:
    """Returns the traffic of a class on one line."""
    more = {
        "unicast": f"{traffic.pattern}, {_packet(traffic.packet)}",
        "broadcast": f"from {traffic.sources}",
        "multicast": f"from {traffic.sources}, to {traffic.members.replace('_', ' ')}",
        "reduction": "to a random node",
    }[traffic.kind]
    if traffic.outstanding is not None:
        more += f", at most {traffic.outstanding} in flight"
    load = rate(traffic.rate, traffic.kind)
    return f"{traffic.kind}, {more}, {load}, {traffic.process}, class {traffic.message_class}"


def _packet(flits: int | str) -> str:
    """Returns the packet size, or the sizes from which each packet draws one."""
    *most, last = str(flits).split(",")
    return counted(f"{', '.join(most)} or {last}" if most else last, "flit")
