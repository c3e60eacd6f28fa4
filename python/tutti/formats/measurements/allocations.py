"""Allocations of jobs: the host of each rank, and the group of the network that the host is in.

A CSV file with the columns `system`, `timestamp` (of the job), `rank`, `host` and, optionally,
`file` (of one job with several runs), `position` and `group`. Groups that the file does not state
follow from the names of hosts where docs/machines/facts.md states or infers how. A cell of Leonardo
has 180 consecutive nodes, a group of LUMI is a cabinet, and the number after `as` is the island of
MareNostrum 5 ACC.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import polars as pl

from tutti.base.files.mistakes import mistake
from tutti.formats.measurements.tables import read_table

if TYPE_CHECKING:
    from pathlib import Path

ALLOCATIONS: Final[dict[str, type[pl.DataType]]] = {
    "system": pl.String,
    "job": pl.String,
    "ranks": pl.Int64,
    "rank": pl.Int64,
    "host": pl.String,
    "group": pl.String,
}
"""The columns of allocations.

- ``job``: the timestamp, with which the jobs of measurements start.
- ``ranks``: number of ranks of the run; a job may have runs with several.
- ``group``: cell, cabinet or island; null if neither the file nor the name of the host states
  it."""

_NEEDED: Final = ("system", "timestamp", "rank", "host")
_LEONARDO: Final = re.compile(r"lrdn(\d{4})")
_MOST_GROUPS: Final = 256
_NODES_OF_CELL: Final = 180
_LUMI: Final = re.compile(r"x(\d{4})c\d+s\d+b\d+n\d+")
_MARE_NOSTRUM: Final = re.compile(r"as(\d\d)r\d+b\d+")


def group_of(host: str, position: str = "") -> str | None:
    """Returns the group of a host; None if it is unknown.

    Examples:
        >>> group_of("lrdn0181"), group_of("nid006718", "x1301c6s6b0n0"), group_of("as05r1b17")
        ('cell 1', 'cabinet 1301', 'island 05')
    """
    if found := _LEONARDO.fullmatch(host):
        return f"cell {(int(found[1]) - 1) // _NODES_OF_CELL}"
    if found := _LUMI.fullmatch(position):
        return f"cabinet {found[1]}"
    if found := _MARE_NOSTRUM.fullmatch(host):
        return f"island {found[1]}"
    return None


def read_allocations(path: Path) -> pl.DataFrame:
    """Reads the allocations of jobs.

    Args:
        path: The CSV file.

    Returns:
        A row per rank, with the columns of :data:`ALLOCATIONS`, sorted by run and rank.

    Raises:
        ConfigError: The file cannot be read, lacks a column, or has an invalid or repeated
            rank.
    """
    raw, damaged = read_table(path)
    lacking = [one for one in _NEEDED if one not in raw.columns]
    if lacking:
        raise mistake(f"lacks the columns {', '.join(lacking)}", source=str(path),
                      expected=f"columns {', '.join(_NEEDED)}")  # fmt: skip
    if damaged.height:
        line, reason = damaged.select("line", "reason").row(0)
        raise mistake(reason, source=f"{path}, line {line}", expected="complete rows")
    position = pl.col("position").fill_null("") if "position" in raw.columns else pl.lit("")
    # The reader's column `file` is that of the table; a column of the table gets its position.
    part = next((pl.col(one) for one in raw.columns if one.startswith("file (")), pl.lit(""))
    frame = raw.with_columns(
        pl.col("rank").cast(pl.Int64, strict=False),
        position.alias("position"),
        part.fill_null("").alias("_part"),
    )
    _check_ranks(frame, path)
    run = ("system", "timestamp", "_part")
    named = pl.struct("host", "position").map_elements(
        lambda one: group_of(one["host"] or "", one["position"]), return_dtype=pl.String
    )
    group = (
        pl.coalesce(pl.col("group").replace("", None), named) if "group" in raw.columns else named
    )
    return (
        frame.with_columns(group.alias("group"), pl.len().over(run).cast(pl.Int64).alias("ranks"))
        .sort(*run, "rank")
        .rename({"timestamp": "job"})
        .select(list(ALLOCATIONS))
    )


def _check_ranks(frame: pl.DataFrame, path: Path) -> None:
    run = ["system", "timestamp", "_part", "rank"]
    for wrong, problem in (
        (pl.col("rank").is_null() | (pl.col("rank") < 0), "rank is not a count"),
        (pl.struct(run).is_duplicated(), "the rank of the run is repeated"),
    ):
        bad = frame.filter(wrong)
        if bad.height:
            raise mistake(problem, source=f"{path}, line {bad['_line'][0]}",
                          expected="each rank of a run once")  # fmt: skip


def spanned(allocations: pl.DataFrame) -> pl.DataFrame:
    """Returns the hosts and groups that each run spans.

    Returns:
        `system`, `job`, `ranks`, `hosts`, `groups` (null if a host has no known group) and
        `largest` (ranks in the group with the most).
    """
    known = pl.col("group").is_not_null().all()
    return allocations.group_by("system", "job", "ranks", maintain_order=True).agg(
        pl.col("host").n_unique().alias("hosts"),
        pl.when(known).then(pl.col("group").n_unique()).alias("groups"),
        pl.when(known).then(pl.col("group").unique_counts().max()).alias("largest"),
    )


def without_groups(rows: pl.DataFrame, allocations: pl.DataFrame) -> str:
    """Returns why no measurement got groups.

    Args:
        rows: measurements.
        allocations: as :func:`read_allocations` returns them.
    """
    runs = {*allocations.select("system", "job", "ranks").unique().rows()}
    if not runs.intersection(_runs(rows)):
        return "no run of the file has the system, the job (timestamp) and the ranks of a row"
    return "the hosts' names state no group: a column `group` states it"


def _runs(rows: pl.DataFrame) -> list[tuple[object, ...]]:
    """Returns system, timestamp and ranks of each measurement."""
    return rows.select("system", pl.col("job").str.split("/").list.first(), "ranks").rows()


def with_groups(rows: pl.DataFrame, allocations: pl.DataFrame) -> pl.DataFrame:
    """Adds the groups of the ranks of each measurement, for :mod:`tutti.measured.predict`.

    Args:
        rows: measurements or questions; `job` starts with the timestamp of the allocation.
        allocations: as :func:`read_allocations` returns them.

    Returns:
        The rows with `rank_groups`, a byte per rank; null if the allocation is unknown.
    """
    found = {
        key: _numbered(some.sort("rank")["group"])
        for key, some in allocations.group_by("system", "job", "ranks")
    }
    keys = _runs(rows)
    return rows.with_columns(pl.Series("rank_groups", map(found.get, keys), dtype=pl.Binary))


def _numbered(groups: pl.Series) -> bytes | None:
    """Returns the groups as numbers from 0; None if one is unknown, or if there are too many."""
    numbers = {one: place for place, one in enumerate(groups.unique().sort())}
    if None in numbers or len(numbers) > _MOST_GROUPS:
        return None
    return bytes(numbers[one] for one in groups)
