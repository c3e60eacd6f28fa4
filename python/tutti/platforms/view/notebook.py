"""A platform in a notebook: parameters with units, and its topology."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.platforms.view.facts import platform_facts
from tutti.topologies.view.notebook import topology_html
from tutti.view.notebook import facts_html

if TYPE_CHECKING:
    from tutti.platforms.machine import Platform

_ZERO = {"0 ps", "0 ns/B"}


def platform_html(platform: Platform) -> str:
    """Returns name, network model and parameters of a platform, and its topology."""
    facts: list[tuple[str, ...]] = [
        ("platform", platform.name),
        ("network model", platform.network),
    ]
    shown = [row for row in platform_facts(platform) if row["name"] not in {"name", "model"}]
    fields = type(platform.model).model_fields
    meanings = {field.alias or name: field.description or "" for name, field in fields.items()}
    facts += [
        (row["name"], row["value"], meanings.get(row["name"], ""))
        for row in shown
        if row["value"] not in _ZERO
    ]
    zero = [row["name"] for row in shown if row["value"] in _ZERO]
    if zero:
        facts.append(("zero", ", ".join(zero)))
    topology = platform.routes.topology if platform.routes else None
    if topology is None:
        is_mesh = platform.effective_contention.kind == "mesh"
        distance = "none: all ranks are at equal distance"
        return facts_html([*facts, *([] if is_mesh else [("topology", distance)])])
    return f"<div>{facts_html(facts)}{topology_html(topology)}</div>"
