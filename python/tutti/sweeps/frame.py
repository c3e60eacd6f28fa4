"""Results of a sweep as one tidy frame, with a column for each swept key."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl

from tutti.base.errors import UnitError
from tutti.base.units import Size, Time, TimePerByte
from tutti.collectives.columns import SWEPT
from tutti.collectives.frames import measurement_frame

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tutti.sweeps.files import Sweep
    from tutti.sweeps.plan import SweepPlan

_TYPES: tuple[tuple[type, type[pl.DataType]], ...] = (
    (bool, pl.Boolean),
    (int, pl.Int64),
    (float, pl.Float64),
    (str, pl.String),
)


def sweep_frame(plan: SweepPlan, rows: Mapping[str, Mapping[str, Any]]) -> pl.DataFrame:
    """Returns a row per finished measurement, in the order of the plan.

    The columns are those of :data:`tutti.collectives.frames.MEASUREMENTS`, and ``sweep.KEY`` with
    the value of each swept key as written (null if a case omits it). Quantities have additional
    numeric columns ``sweep.KEY_ps``, ``sweep.KEY_bytes`` or ``sweep.KEY_ps_per_byte``.

    Args:
        plan: The plan.
        rows: The finished rows, by key.
    """
    finished = [index for index, item in enumerate(plan.measurements) if item.key in rows]
    frame = measurement_frame(
        plan.labels[index]
        | dict(rows[plan.measurements[index].key])
        | {"verified": bool(rows.get(plan.proof_keys[index], {}).get("proved"))}
        for index in finished
    )
    points = [plan.measurements[index].point for index in finished]
    baselines = _baselines(plan, frame, points)
    if baselines:
        frame = pl.concat([frame, measurement_frame(row for _, row in baselines)])
        points += [point for point, _ in baselines]
    swept = swept_columns(plan.sweep)
    return pl.concat([frame, swept[pl.Series(points, dtype=pl.UInt32)]], how="horizontal")


def _baselines(
    plan: SweepPlan, frame: pl.DataFrame, points: list[int]
) -> list[tuple[int, dict[str, Any]]]:
    """Returns the baselines of libraries with the lower bounds of measured rows, by point."""
    if not plan.baselines:
        return []
    cells = zip(points, frame["ranks"], frame["size_bytes"], strict=True)
    bounds = dict(zip(cells, frame["bound_ps"], strict=True))
    found = []
    for point, row in plan.baselines:
        bound = bounds.get((point, row["ranks"], row["size_bytes"]))
        limit = {"bound_ps": bound, "of_limit": bound / row["time_ps"] if bound else None}
        found.append((point, row | limit))
    return found


def swept_columns(sweep: Sweep) -> pl.DataFrame:
    """Returns the columns of the swept keys, a row per point."""
    columns: dict[str, pl.Series] = {}
    for key in sweep.keys:
        values = [point.get(key) for point in sweep.points]
        columns[f"{SWEPT}{key}"] = _column(values)
        for suffix, numbers in _numbers(values).items():
            columns[f"{SWEPT}{key}{suffix}"] = numbers
    return pl.DataFrame(columns)


def _column(values: list[Any]) -> pl.Series:
    """Returns values of one type unmodified, and mixed values as JSON."""
    given = [value for value in values if value is not None]
    for of_python, dtype in _TYPES:
        if all(type(value) is of_python for value in given):
            return pl.Series(values, dtype=dtype)
    texts = [None if value is None else json.dumps(value, default=str) for value in values]
    return pl.Series(texts, dtype=pl.String)


def _numbers(values: list[Any]) -> dict[str, pl.Series]:
    """Returns quantities as numbers, by the suffix of their unit."""
    try:
        times = [None if value is None else Time.of_any(value).ps for value in values]
        return {"_ps": pl.Series(times, dtype=pl.Int64)}
    except UnitError:
        pass
    try:
        sizes = [None if value is None else Size.of_any(value).bytes for value in values]
        return {"_bytes": pl.Series(sizes, dtype=pl.Int64)}
    except UnitError:
        pass
    try:
        costs = [
            None if value is None else TimePerByte.of_any(value).core.ps_per_byte
            for value in values
        ]
        return {"_ps_per_byte": pl.Series(costs, dtype=pl.Float64)}
    except UnitError:
        return {}
