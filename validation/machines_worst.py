"""The worst predictions of a cross-validation, and which rows share their error."""

from __future__ import annotations

import itertools
import math
from typing import Final

import polars as pl
from prose import bullets, paragraph

from tutti.base.units import Size
from tutti.measured.predict.model import usable

SHOWN = 10
_HALF: Final = 0.5
_FEWEST: Final = 2
_COMPONENTS: Final = {
    "the job": ("system", "job"),
    "the collective on this machine and node count": ("system", "nodes", "collective"),
    "vectors of this size in this collective": ("system", "nodes", "collective", "size_bytes"),
    "the algorithm at other sizes": ("system", "nodes", "collective", "library_algorithm"),
}
"""Components of an error, from general to special, and the columns of the rows that share it."""


def section(rows: pl.DataFrame, validated: pl.DataFrame) -> str:
    """Returns the section on the worst predictions of folds of more nodes.

    Args:
        rows: The measurements, numbered by `index`.
        validated: Their cross-validation.
    """
    found = worst(rows, validated)
    text = paragraph(
        f"The {found.height} largest errors of the full model on more nodes, one per machine, "
        "collective and algorithm. The error is attributed to the component whose other rows have "
        "the most similar median error, if that is at least half of it (as a logarithm). Rows that "
        "calibration leaves out, since the time is the resolution of a clock, count above but are "
        "not listed."
    )
    return f"## Worst predictions\n\n{text}\n\n" + bullets([_line(row) for row in found.to_dicts()])


def worst(rows: pl.DataFrame, validated: pl.DataFrame) -> pl.DataFrame:
    """Returns the rows with the largest errors.

    Returns:
        At most ten rows, the worst first: `system`, `collective`, `library_algorithm`, `nodes`,
        `size_bytes`, `time_us`, `predicted_us`, `error` (logarithm of measured over predicted),
        `component` (null if no other row shares the error), and the median error `shared` of its
        `others`.
    """
    kept = rows.select("index", *dict.fromkeys(itertools.chain(*_COMPONENTS.values())))
    kept = kept.join(usable(rows), on="index", how="semi")
    errors = (
        validated.filter(kind="nodes")
        .join(kept, on="index")
        .with_columns((pl.col("time_us") / pl.col("predicted_us")).log().alias("error"))
    )
    ranked = errors.sort(pl.col("error").abs(), "index", descending=[True, False])
    first = ranked.unique(
        ["system", "collective", "library_algorithm"], keep="first", maintain_order=True
    ).head(SHOWN)
    found = [row | _component(row, errors) for row in first.to_dicts()]
    return pl.DataFrame(found, infer_schema_length=None)


def _component(row: dict[str, object], errors: pl.DataFrame) -> dict[str, object]:
    """The component that shares the error of a row."""
    error = row["error"]
    assert isinstance(error, float)
    best: dict[str, object] = {"component": None, "shared": None, "others": 0}
    most = _HALF
    for name, columns in _COMPONENTS.items():
        alike = [pl.col(column).eq_missing(row[column]) for column in columns]
        others = errors.filter(pl.col("index") != row["index"], *alike)["error"]
        median = others.median()
        if len(others) < _FEWEST or not isinstance(median, float):
            continue
        explained = 1 - abs(median / error - 1)
        if explained >= most:
            most = explained
            best = {"component": name, "shared": median, "others": len(others)}
    return best


def _line(row: dict[str, object]) -> str:
    error = row["error"]
    assert isinstance(error, float)
    assert isinstance(row["size_bytes"], int)
    reason = "No component shares the error."
    if row["component"] is not None:
        shared = row["shared"]
        assert isinstance(shared, float)
        times = "longer" if shared > 0 else "shorter"
        reason = (
            f"Shared by {row['component']}: {row['others']} other rows took {times} by a factor of "
            f"{math.exp(abs(shared)):.2f} in the median."
        )
    return (
        f"Factor {math.exp(abs(error)):,.2f}: {row['system']}, `{row['collective']}`, "
        f"`{row['library_algorithm']}`, {row['nodes']:,} nodes, {Size(bytes=row['size_bytes'])}: "
        f"measured {row['time_us']:,.1f} us, predicted {row['predicted_us']:,.1f} us. {reason}"
    )
