"""Results of a sweep as one tidy frame: those of a comparison, and a column for each swept key."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl

from tutti.errors import UnitError
from tutti.results import SWEPT, measurement_frame
from tutti.units import Size, Time, TimePerByte

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tutti.config import Sweep
    from tutti.sweep.plan import SweepPlan

_TYPES: tuple[tuple[type, type[pl.DataType]], ...] = (
    (bool, pl.Boolean),
    (int, pl.Int64),
    (float, pl.Float64),
    (str, pl.String),
)


def sweep_frame(plan: SweepPlan, rows: Mapping[str, Mapping[str, Any]]) -> pl.DataFrame:
    """A row for each measurement that is finished, in the order of the plan.

    Columns are those of :data:`tutti.results.MEASUREMENTS`, and for each swept key ``sweep.KEY``
    with its value as it was written (null where a case leaves it out). Quantities also stand there
    as numbers, in ``sweep.KEY_ps``, ``sweep.KEY_bytes`` or ``sweep.KEY_ps_per_byte``.

    Args:
        plan: What was asked.
        rows: What is finished, by key.
    """
    finished = [index for index, item in enumerate(plan.measurements) if item.key in rows]
    frame = measurement_frame(
        plan.labels[index]
        | dict(rows[plan.measurements[index].key])
        | {"verified": bool(rows.get(plan.proof_keys[index], {}).get("proved"))}
        for index in finished
    )
    points = pl.Series([plan.measurements[index].point for index in finished], dtype=pl.UInt32)
    swept = swept_columns(plan.sweep)
    return pl.concat([frame, swept[points]], how="horizontal")


def swept_columns(sweep: Sweep) -> pl.DataFrame:
    """The swept keys' columns, a row for each point."""
    columns: dict[str, pl.Series] = {}
    for key in sweep.keys:
        values = [point.get(key) for point in sweep.points]
        columns[f"{SWEPT}{key}"] = _column(values)
        for suffix, numbers in _numbers(values).items():
            columns[f"{SWEPT}{key}{suffix}"] = numbers
    return pl.DataFrame(columns)


def _column(values: list[Any]) -> pl.Series:
    """Values of one type as such, others as JSON."""
    given = [value for value in values if value is not None]
    for of_python, dtype in _TYPES:
        if all(type(value) is of_python for value in given):
            return pl.Series(values, dtype=dtype)
    texts = [None if value is None else json.dumps(value, default=str) for value in values]
    return pl.Series(texts, dtype=pl.String)


def _numbers(values: list[Any]) -> dict[str, pl.Series]:
    """Quantities as numbers, with the suffix that says in which unit."""
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
