"""The objectives of designs of networks, and their Pareto front."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tutti.sweeps.pareto import dominators

if TYPE_CHECKING:
    from collections.abc import Sequence

Row = dict[str, Any]
"""The results of a design by name."""
SWEPT = "sweep."
"""Prefix of swept keys."""
_CONDITIONS = ("traffic", "measure", "seed")
"""Tables whose keys are conditions of a comparison: designs compete under equal ones."""

OBJECTIVES: tuple[tuple[str, str, int, str], ...] = (
    ("saturation_bytes_per_s", "saturation", -1, "saturation load"),
    ("zero_load_ps", "zero_load_latency", 1, "zero-load latency"),
    ("area_mm2", "area_mm2", 1, "area"),
    ("energy_pj_per_bit", "energy_pj_per_bit", 1, "energy per bit"),
)
"""Quantities to maximise (-1) or to minimise (1): of routers, and of meshes without a clock."""


def unit_of(rows: Sequence[Row]) -> str | None:
    """Returns the unit of the loads of meshes; None for networks of routers."""
    units = {row["load_unit"] for row in rows if row.get("load_unit") is not None}
    return units.pop() if len(units) == 1 else "in the unit of each rate" if units else None


def with_front(rows: Sequence[Row], keys: Sequence[str]) -> list[Row]:
    """Returns rows with derived quantities, and whether each is on the Pareto front.

    Designs compete under equal traffic, seed and measurement. A design that does not carry the
    load is not on the front.

    Args:
        rows: A row per design.
        keys: The swept keys.
    """
    complete = [_derived(row) for row in rows]
    groups: dict[str, list[Row]] = {}
    for row in complete:
        if row["state"] == "stable" and row.get("zero_load_latency") is not None:
            groups.setdefault(repr(_condition(row, keys)), []).append(row)
    for group in groups.values():
        shown = objectives(group)
        points = [tuple(sign * _rounded(row[key]) for key, sign, _ in shown) for row in group]
        for row, dominator in zip(group, dominators(points), strict=True):
            row["on_front"] = dominator is None
            if dominator is not None:
                row["dominated_by"] = group[dominator]["design"]
    return complete


def _rounded(value: float) -> float:
    """Returns a value as tables show it: designs that look equal tie."""
    return float(f"{value:.3g}")


def _derived(row: Row) -> Row:
    """Returns a row with rates and times, which designs with other flits and cycles share."""
    found = dict(row)
    if row.get("saturation") is not None and row.get("capacity"):
        found["capacity_share"] = row["saturation"] / row["capacity"]
    if row.get("cycle_ps") is None:
        return found
    if row.get("saturation") is not None:
        seconds = row["cycle_ps"] * 1e-12
        found["saturation_bytes_per_s"] = row["saturation"] * row["flit_bytes"] / seconds
    for name, key in (("zero_load_ps", "zero_load_latency"), ("latency_ps", "latency")):
        if row.get(key) is not None:
            found[name] = round(row[key] * row["cycle_ps"])
    return found


def _condition(row: Row, keys: Sequence[str]) -> list[Any]:
    return [row[f"{SWEPT}{key}"] for key in keys if _is_condition(key)]


def _is_condition(key: str) -> bool:
    return key.replace("[", ".").partition(".")[0] in _CONDITIONS


def objectives(rows: Sequence[Row]) -> list[tuple[str, int, str]]:
    """Returns the objectives that all rows have."""
    return [one for one in every_objective(rows) if not without(one[0], rows)]


def every_objective(rows: Sequence[Row]) -> list[tuple[str, int, str]]:
    """Returns the key, the sign and the name of each objective of networks of this kind."""
    smart = unit_of(rows) is not None
    return [(mesh if smart else key, sign, name) for key, mesh, sign, name in OBJECTIVES]


def without(key: str, rows: Sequence[Row]) -> list[Row]:
    """Returns the rows without a value."""
    return [row for row in rows if row.get(key) is None]
