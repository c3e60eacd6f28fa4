"""The columns of measurements, and the rules that rows of all readers pass."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from tutti.base.files.limits import RANKS
from tutti.base.files.mistakes import mistake, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from tutti.base.errors import ConfigError

MEASUREMENTS: Final[dict[str, type[pl.DataType]]] = {
    "file": pl.String,
    "line": pl.Int64,
    "tool": pl.String,
    "system": pl.String,
    "job": pl.String,
    "library": pl.String,
    "library_algorithm": pl.String,
    "collective": pl.String,
    "nodes": pl.Int64,
    "shape": pl.String,
    "ranks_per_node": pl.Int64,
    "ranks": pl.Int64,
    "ranks_source": pl.String,
    "size_bytes": pl.Int64,
    "datatype": pl.String,
    "in_place": pl.Boolean,
    "gpu": pl.Boolean,
    "time_us": pl.Float64,
    "statistic": pl.String,
    "low_us": pl.Float64,
    "high_us": pl.Float64,
    "min_us": pl.Float64,
    "repetitions": pl.Int64,
    "bytes_per_s": pl.Float64,
    "series": pl.Int64,
    "emulated": pl.Boolean,
    "notes": pl.String,
}
"""The columns of measurements; values that a file does not state are null.

- ``line``: the first line of the row in ``file``, from 1; of JSON and Parquet, the row from 1.
- ``library_algorithm``: the algorithm in the library's own words, such as ``ring_ompi``.
- ``collective``: a collective of tutti, or ``ping_pong`` (one-way time), ``window``,
  ``bidirectional`` or ``send_recv``, as in :data:`tutti.formats.benchmarks.rows.FIELDS`.
- ``nodes``, ``shape``: the number of nodes; its factors as text, such as ``4x4x4``, if stated.
- ``ranks_source``: ``file``, ``launcher`` (a command that the log echoes), ``product`` (of nodes
  and ranks per node) or ``argument`` (of the reader).
- ``size_bytes``: by tutti's convention. One rank's buffer for all_reduce, reduce and broadcast; the
  sum of all shards for all_gather, gather, scatter, reduce_scatter and all_to_all.
- ``time_us``: null only for ``window`` and ``bidirectional``, which have ``bytes_per_s``.
- ``statistic``: whether ``time_us`` is a ``median`` or a ``mean`` over repetitions.
- ``low_us``, ``high_us``: 10 % and 90 % quantiles over repetitions.
- ``series``: the number of rows of the file that this row is the median of, since they describe the
  same configuration.
- ``emulated``: whether distance was emulated, so that no network was measured."""

OMITTED: Final[dict[str, type[pl.DataType]]] = {
    "file": pl.String,
    "line": pl.Int64,
    "reason": pl.String,
    "text": pl.String,
}
"""The columns of rows that were left out: file, first line, reason, and the row as written."""

_VALUES: Final = ("time_us", "low_us", "high_us", "min_us", "bytes_per_s")
_MERGED: Final = frozenset({*_VALUES, "file", "line", "repetitions", "series"})
_MOST_TEXT: Final = 80
_MOST_REASONS: Final = 3
_MOST_COUNT: Final = 1 << 53
_MOST_TIME_US: Final = 1e15
_BANDWIDTHS: Final = ("window", "bidirectional")
POINT_TO_POINT: Final = ("ping_pong", *_BANDWIDTHS, "send_recv")


@dataclass(frozen=True)
class Measurements:
    """Rows that were read, and rows that were left out.

    Attributes:
        rows: A row per configuration and file, with the columns of :data:`MEASUREMENTS`.
        omitted: A row per row that was left out, with the columns of :data:`OMITTED`.
        conflicts: Errors of files that state another number of ranks than the user.
    """

    rows: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=MEASUREMENTS))
    omitted: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=OMITTED))
    conflicts: tuple[ConfigError, ...] = ()

    @property
    def merged(self) -> int:
        """The number of rows that were merged into the median of their configuration."""
        return int((self.rows["series"] - 1).sum())

    def remarks(self) -> list[str]:
        """Returns a line for each file and reason: how many rows were left out, and the first.

        Further lines state contradictions, and how many rows were merged.
        """
        grouped = self.omitted.group_by("file", "reason", maintain_order=True).agg(
            pl.len().alias("rows"), pl.col("line").first(), pl.col("text").first()
        )
        left = [
            f"{one['file']}, line {one['line']}: left out {one['rows']:,} "
            f"row{'s' if one['rows'] > 1 else ''}: {one['reason']}"
            + (f" ({_beginning(one['text'])})" if one["text"] else "")
            for one in grouped.iter_rows(named=True)
        ]
        conflicts = [
            f"{one.fields['source']}: {one.fields['problem']}: {one.fields['value']} is not used"
            for one in self.conflicts
        ]
        return [*left, *conflicts, *([merging(self.merged)] if self.merged else [])]

    def without(self, collective: str | None) -> str:
        """Returns a remark if the files state other collectives than the user; empty otherwise.

        Args:
            collective: The collective of files that do not state it; None without one.
        """
        stated = self.rows.filter(~pl.col("collective").is_in(POINT_TO_POINT))["collective"]
        if collective is None or stated.is_empty() or collective in stated:
            return ""
        listed = ", ".join(stated.unique().sort())
        return f"{collective} is not used: the files state {listed}"

    def require_agreement(self) -> None:
        """Checks that no file states another number of ranks than the user, if no file needs it.

        Raises:
            ConfigError: A file does, and no row has its number of ranks from the user.
        """
        if self.conflicts and not (self.rows["ranks_source"] == "argument").any():
            raise self.conflicts[0]

    def require_rows(self, source: str, expected: str) -> None:
        """Checks that there is a row.

        Args:
            source: The name of the files in the error.
            expected: What was expected in them.

        Raises:
            ConfigError: There is none; the message has the reasons of those that were left out.
        """
        if self.rows.is_empty():
            why = f": {self.why()}" if self.omitted.height else ""
            raise mistake(f"no row can be used{why}", source=source, expected=expected)

    def why(self) -> str:
        """Returns the reasons of rows that were left out, the most frequent first."""
        counts = self.omitted.group_by("reason", maintain_order=True).len()
        reasons = counts.sort("len", descending=True, maintain_order=True)["reason"]
        more = len(reasons) - _MOST_REASONS
        return "; ".join(reasons[:_MOST_REASONS]) + (f"; {more} more reasons" if more > 0 else "")

    def require_complete(self) -> None:
        """Checks that no row was left out.

        Raises:
            ConfigError: A row was left out; the message has file, line and reason of the first.
        """
        if self.omitted.is_empty():
            return
        first = self.omitted.row(0, named=True)
        raise mistake(
            first["reason"],
            source=f"{first['file']}, line {first['line']}",
            value=first["text"] or "",
            expected="only rows that can be attributed to a run",
            hint="without strict reading, such rows are left out and counted",
        )


def _beginning(row: str) -> str:
    return row if len(row) <= _MOST_TEXT else f"{row[:_MOST_TEXT]}..."


def merging(count: int) -> str:
    """Returns the remark about a number of rows that were merged."""
    return f"{count:,} rows of equal configuration were merged into their median"


def concatenated(parts: list[Measurements]) -> Measurements:
    """Returns the measurements of several files as one."""
    if not parts:
        return Measurements()
    return Measurements(
        pl.concat([part.rows for part in parts]),
        pl.concat([part.omitted for part in parts]),
        tuple(one for part in parts for one in part.conflicts),
    )


def conflicts_of(rows: pl.DataFrame, ranks: int | None) -> tuple[ConfigError, ...]:
    """Returns an error if collectives of a file state another number of ranks than the user.

    Args:
        rows: The rows of one file.
        ranks: The number that the user states; None without one.
    """
    if ranks is None:
        return ()
    stated = ~pl.col("collective").is_in(POINT_TO_POINT) & (pl.col("ranks_source") != "argument")
    other = rows.filter(stated & (pl.col("ranks") != ranks))
    if other.is_empty():
        return ()
    first, counts = other.row(0, named=True), other["ranks"].unique().sort()
    error = mistake(
        "the file states another number of ranks",
        source=f"{first['file']}, line {first['line']}",
        value=f"{ranks} ranks",
        expected=f"{', '.join(map(str, counts))} ranks, as the file states",
        hint="leave the number of ranks out, which is for files that do not state it",
    )
    return (error,)


def partition(
    frame: pl.DataFrame | pl.LazyFrame, checks: list[tuple[pl.Expr, str]]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Separates the rows that fail a check.

    Args:
        frame: Rows with the columns `file`, `line` and `text`.
        checks: Conditions of invalid rows, and the reasons; the first that holds is reported.

    Returns:
        The valid rows, and the others with the columns of :data:`OMITTED`.
    """
    reason = pl.coalesce(
        [pl.when(bad).then(pl.lit(why)) for bad, why in checks] + [pl.lit(None, pl.String)]
    )
    checked = frame.lazy().with_columns(reason.alias("_reason")).collect()
    reasons = checked.drop_in_place("_reason")
    bad = reasons.is_not_null()
    if not bad.any():
        return checked, pl.DataFrame(schema=OMITTED)
    omitted = checked.filter(bad).select(
        "file", "line", reasons.filter(bad).alias("reason"), "text"
    )
    return checked.filter(~bad), omitted.cast(pl.Schema(OMITTED))


def finished(
    frame: pl.DataFrame, *, ranks: int | None = None, ranks_per_node: int | None = None
) -> Measurements:
    """Derives rank counts, checks the rows, and merges rows of the same configuration.

    Args:
        frame: Some columns of :data:`MEASUREMENTS` with their types, and `text`.
        ranks: The number of ranks of rows that do not state it.
        ranks_per_node: That of rows that state nodes, but neither ranks nor ranks per node.
    """
    absent = [name for name in MEASUREMENTS if name not in frame.columns]
    # One query: a small frame costs as much per operation as a large one.
    full = (
        frame.lazy()
        .with_columns(pl.lit(None, MEASUREMENTS[name]).alias(name) for name in absent)
        .with_columns(pl.col("emulated").fill_null(value=False), pl.col("series").fill_null(1))
    )
    valid, omitted = partition(_with_ranks(full, ranks, ranks_per_node), _checks())
    return Measurements(_merged(valid.select(list(MEASUREMENTS))), omitted)


def _with_ranks(frame: pl.LazyFrame, ranks: int | None, each: int | None) -> pl.LazyFrame:
    nodes, per_node, stated = pl.col("nodes"), pl.col("ranks_per_node"), pl.col("ranks")
    alone = nodes.is_not_null() & stated.is_null() & per_node.is_null()
    if ranks is None and each is not None:
        assumed = pl.when(alone & ~pl.col("collective").is_in(POINT_TO_POINT)).then(each)
        known = pl.when(assumed.is_not_null()).then(pl.lit("argument")).otherwise("ranks_source")
        frame = frame.with_columns(
            pl.coalesce(per_node, assumed).alias("ranks_per_node"), known.alias("ranks_source")
        )
    product = (nodes * per_node).alias("_product")
    frame = frame.with_columns(product)
    given = pl.lit(ranks, pl.Int64)
    source = (
        pl.when(pl.col("ranks_source").is_not_null())
        .then("ranks_source")
        .when(stated.is_not_null())
        .then(pl.lit("file"))
        .when(pl.col("_product").is_not_null())
        .then(pl.lit("product"))
        .when(given.is_not_null())
        .then(pl.lit("argument"))
    )
    frame = frame.with_columns(
        source.alias("ranks_source"), pl.coalesce(stated, "_product", given).alias("ranks")
    )
    even = (stated % nodes == 0) & (nodes > 0)
    derived = pl.coalesce(per_node, pl.when(even).then(stated // nodes))
    return frame.with_columns(derived.alias("ranks_per_node"))


def _checks() -> list[tuple[pl.Expr, str]]:
    time, low, high = pl.col("time_us"), pl.col("low_us"), pl.col("high_us")
    pairs = pl.col("collective").is_in(POINT_TO_POINT)
    bandwidth = pl.col("collective").is_in(_BANDWIDTHS) & time.is_null()
    counts = ("nodes", "ranks_per_node", "ranks")
    return [
        (pl.col("collective").is_null(), "the collective is unknown"),
        (pl.col("size_bytes").is_null(), "the size is unknown"),
        *((pl.col(name) < 1, f"{name} is 0") for name in counts),
        *((pl.col(name) > RANKS, f"{name} is larger than {RANKS}") for name in counts),
        (
            pl.col("nodes").is_null() & pl.col("ranks").is_null(),
            "neither the number of nodes nor that of ranks is known: use --ranks N",
        ),
        # The last node of a job may have fewer ranks than the others.
        (
            (pl.col("ranks") > pl.col("_product"))
            | (pl.col("ranks") <= pl.col("_product") - pl.col("ranks_per_node")),
            "ranks is not nodes times ranks per node",
        ),
        (~pairs & (pl.col("ranks") < pl.col("nodes")), "there are fewer ranks than nodes"),
        (bandwidth & ~_positive("bytes_per_s"), "the bandwidth is not a number above 0"),
        (~bandwidth & ~_positive("time_us"), "the time is not a number above 0"),
        (time > _MOST_TIME_US, "the time is too large"),
        *((~_positive(name, null=True), f"{name} is not a number above 0") for name in _VALUES[1:]),
        (
            (pl.col("statistic") == "median") & ((low > time) | (high < time)),
            "the median is not between the quantiles",
        ),
    ]


def _positive(name: str, *, null: bool = False) -> pl.Expr:
    """Returns whether a column holds a finite number above 0; `null` is the result for nulls."""
    value = pl.col(name)
    return (value.is_finite() & (value > 0)).fill_null(value=null)


def _merged(rows: pl.DataFrame) -> pl.DataFrame:
    """Replaces rows of the same configuration and file by their median."""
    case = ["file", *(name for name in MEASUREMENTS if name not in _MERGED)]
    if rows.select(case).is_duplicated().any():
        rows = rows.group_by(case, maintain_order=True).agg(
            pl.col("line").first(),
            pl.col(*_VALUES[:3], "bytes_per_s").median(),
            pl.col("min_us").min(),
            pl.when(pl.col("repetitions").is_not_null().all()).then(pl.col("repetitions").sum()),
            pl.col("series").sum(),
        )
        rows = rows.select(list(MEASUREMENTS))
    schema = pl.Schema(MEASUREMENTS)
    return rows if rows.schema == schema else rows.cast(schema)


# --- cells of text --------------------------------------------------------------------------------


def number(name: str) -> pl.Expr:
    """Returns a column of text as numbers; null for other text."""
    return pl.col(name).str.strip_chars().cast(pl.Float64, strict=False)


def count(name: str) -> pl.Expr:
    """Returns a column of text as integers from 0 to 2^53; null for other text, such as 4.5."""
    value = number(name)
    good = value.is_finite() & (value >= 0) & (value <= _MOST_COUNT) & (value == value.floor())
    return pl.when(good).then(value).cast(pl.Int64)


def text(name: str) -> pl.Expr:
    """Returns a column of text without surrounding spaces; null for empty text."""
    value = pl.col(name).str.strip_chars()
    return pl.when(value != "").then(value)


def translated(
    series: pl.Series, translate: Callable[[str], Any], dtype: type[pl.DataType]
) -> pl.Series:
    """Returns a column of text in translation; `translate` is called once per distinct text."""
    known = series.unique().drop_nulls()
    results = pl.Series([translate(one) for one in known], dtype=dtype)
    if known.is_empty():
        return pl.Series(series.name, [None] * len(series), dtype=dtype)
    return series.replace_strict(known, results, default=None, return_dtype=dtype)


_SHAPE = re.compile(r"\d{1,9}(?:[xX]\d{1,9})*")
_COLLECTIVES: Final = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "reducescatterblock": "reduce_scatter",
    "alltoall": "all_to_all",
    "bcast": "broadcast",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
    "barrier": "barrier",
}


def nodes_of(shape: str) -> int | None:
    """Returns the number of nodes of a count or a shape; None for other text.

    Examples:
        >>> nodes_of("64"), nodes_of("4x4x4"), nodes_of("many")
        (64, 64, None)
    """
    if not _SHAPE.fullmatch(shape):
        return None
    nodes = 1
    for factor in shape.lower().split("x"):
        nodes *= int(factor)
        if nodes > RANKS:
            return None
    return nodes


def collective_of(name: str) -> str | None:
    """Returns tutti's name of a collective; None if it is unknown.

    Examples:
        >>> collective_of("MPI_Allreduce"), collective_of("REDUCE_SCATTER"), collective_of("scan")
        ('all_reduce', 'reduce_scatter', None)
    """
    plain = re.sub(r"[\s_-]", "", name.lower())
    return _COLLECTIVES.get(plain.removeprefix("mpi").removeprefix("nccl"))


def flag_of(word: str) -> bool | None:
    """Returns whether a word means yes; None if it is neither yes nor no."""
    words = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
    return words.get(word.lower())


def as_text(row: str) -> str:
    """Returns a row as written, shortened for reports."""
    return shown(" ".join(row.split())) if row.strip() else ""
