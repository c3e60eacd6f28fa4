"""CSV files of OSU results of many clusters, as converged-computing/performance-study writes them.

Columns: `size`, a time or bandwidth (`avg_latency_us`, `latency_us` or `bandwidth_mb_s`, means),
`experiment` (a path that ends in the program, such as google/gke/gpu/osu_allreduce), `nodes` (of
the cluster) and `env_type` (cpu or gpu). Point-to-point programs ran on two nodes of the cluster,
one rank each. Sizes are those that OSU prints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from tutti.formats.benchmarks.osu import operation_of
from tutti.formats.benchmarks.rows import OF_ALL_SHARDS
from tutti.formats.measurements.schema import (
    POINT_TO_POINT,
    Measurements,
    count,
    finished,
    number,
    partition,
    text,
    translated,
)
from tutti.formats.measurements.tables import read_table

if TYPE_CHECKING:
    from pathlib import Path

_TIMES: Final = ("avg_latency_us", "latency_us")
_BANDWIDTH: Final = "bandwidth_mb_s"
_MOST_BYTES: Final = 1 << 53


def is_frame(columns: list[str]) -> bool:
    """Returns whether columns are those of such a file."""
    values = {*_TIMES, _BANDWIDTH} & set(columns)
    return bool(values) and {"size", "experiment", "nodes"} <= set(columns)


def read_frame_of_osu(
    path: Path, *, ranks: int | None = None, ranks_per_node: int | None = None
) -> Measurements:
    """Reads results of OSU programs on clusters.

    Args:
        path: The CSV file.
        ranks: The number of ranks of the collectives.
        ranks_per_node: Their ranks per node; of use without `ranks`.

    Raises:
        ConfigError: The file cannot be read.
    """
    raw, damaged = read_table(path)
    shards = pl.col("collective").is_in(list(OF_ALL_SHARDS))
    parts = pl.when(shards).then(pl.col("ranks")).otherwise(1)
    total = pl.col("size_bytes").cast(pl.Float64) * parts
    valid, omitted = partition(
        _rows(raw, ranks, ranks_per_node),
        [
            (pl.col("collective").is_null(), "not an OSU program of a known collective"),
            (pl.col("size_bytes").is_null(), "size is not an integer"),
            (parts.is_null(), "size is one rank's shard, and the number of ranks is unknown"),
            (total > _MOST_BYTES, "the size is too large"),
        ],
    )
    found = finished(valid.with_columns(pl.col("size_bytes") * parts))
    return Measurements(found.rows, pl.concat([damaged, omitted, found.omitted]).sort("line"))


def _rows(raw: pl.DataFrame, ranks: int | None, each: int | None) -> pl.DataFrame:
    """Returns the columns of measurements; sizes are those that OSU prints."""
    experiment = raw["experiment"].str.strip_chars().str.strip_chars_end("/")
    program = experiment.str.split("/").list.last()
    collective = translated(program, _operation, pl.String)
    pairs = pl.col("collective").is_in(POINT_TO_POINT)
    source = pl.lit("argument" if (ranks or each) is not None else None, pl.String)
    of_all = pl.col("_nodes") * each if ranks is None else pl.lit(ranks)
    kind = text("env_type") if "env_type" in raw.columns else pl.lit(None, pl.String)
    return raw.with_columns(
        collective.alias("collective"),
        experiment.str.strip_suffix("/" + program).alias("_system"),
        count("nodes").alias("_nodes"),
        kind.alias("_kind"),
    ).select(
        "file",
        pl.col("_line").alias("line"),
        "text",
        "collective",
        pl.lit("osu").alias("tool"),
        pl.lit("mean").alias("statistic"),
        text("_system").alias("system"),
        count("size").alias("size_bytes"),
        pl.when(pairs).then(2).otherwise("_nodes").alias("nodes"),
        pl.when(pairs).then(2).otherwise(of_all).cast(pl.Int64).alias("ranks"),
        pl.when(pairs).then(pl.lit("file")).otherwise(source).alias("ranks_source"),
        pl.format("cluster of {} nodes", "_nodes").alias("notes"),
        pl.when(pl.col("_kind").is_in(["cpu", "gpu"])).then(pl.col("_kind") == "gpu").alias("gpu"),
        *_values(raw.columns),
    )


def _operation(program: str) -> str | None:
    blocking = program.startswith("osu_") and not program.startswith("osu_i")
    return operation_of(program) if blocking else None


def _values(columns: list[str]) -> list[pl.Expr]:
    time = next((name for name in _TIMES if name in columns), None)
    found = [number(time).alias("time_us")] if time else []
    if _BANDWIDTH in columns:
        found.append((number(_BANDWIDTH) * 1e6).alias("bytes_per_s"))
    return found
