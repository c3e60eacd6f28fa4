"""PICO: tables of series of collectives, and the times of one run.

A table has a row per series. Columns: `collective`, `nodes` (a number, or a shape such as 4x4x4) or
`ranks`, `vector_bytes`, and a time with its unit, such as `median_us`; all others are optional. The
summary that PICO writes (`aggregated_results_summary.csv`) has times in ns under names without a
unit. `vector_bytes` is the full vector, so it needs no conversion.

A run is a file `COUNT_ALGORITHM_DATATYPE.csv` with a row per repetition: `highest`, the time of the
slowest rank in ns, and at the output level `all` a column per rank (`rank0`, ...). Its collective
and nodes are in `SYSTEM_metadata.csv`, three folders up. PICO discards the first 20 % of the
repetitions as warm-up, and so does this reader.

Source: ``pico_core/pico_core_utils.c`` and ``plot/summarize_data.py`` of HLC-Lab/pico.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import polars as pl

from tutti.base.datatypes import DATATYPES, NCCL_NAMES
from tutti.base.files.mistakes import mistake, shown
from tutti.formats.measurements.schema import (
    MEASUREMENTS,
    Measurements,
    collective_of,
    count,
    finished,
    flag_of,
    nodes_of,
    number,
    partition,
    text,
    translated,
)
from tutti.formats.measurements.tables import LOCATION, read_table, time_column

if TYPE_CHECKING:
    from pathlib import Path

_NAMES: Final = {
    "collective": ("collective", "collective_type"),
    "library_algorithm": ("library_algorithm", "algorithm", "algo_name"),
    "nodes": ("nodes", "nnodes"),
    "ranks_per_node": ("ranks_per_node", "tasks_per_node"),
    "ranks": ("ranks",),
    "size_bytes": ("vector_bytes", "buffer_size", "size_bytes", "bytes"),
    "library": ("library", "mpi_lib"),
    "gpu": ("gpu_buffers", "gpu", "cuda"),
    "system": ("system",),
    "job": ("job", "timestamp"),
    "notes": ("notes",),
    "datatype": ("datatype",),
    "repetitions": ("repetitions", "n_iter"),
}
"""Names of each column, by preference."""
_MEDIANS: Final = ("median", "time")
_MEANS: Final = ("mean", "avg", "avg_latency", "latency", "out_of_place")
"""The last is of tables of nccl-tests."""
_TIMES: Final = {
    "low_us": ("p10", "low", "percentile_10"),
    "high_us": ("p90", "high", "percentile_90"),
    "min_us": ("min",),
}
_NANOSECONDS: Final = dict.fromkeys(
    ("median", "mean", "min", "percentile_10", "percentile_90"), "ns"
)
_PER_NODE: Final = r"(?i)\b(\d{1,4}) tasks per node\b"
_TOTAL: Final = r"(?i)\b(\d{1,7}) tasks\b(?: on\b|$)"
_EXPECTED: Final = (
    "columns such as collective, algorithm, nodes, ranks_per_node, vector_bytes and median_us"
)


def is_table(columns: list[str]) -> bool:
    """Returns whether columns are those of a table of series."""
    return _first(columns, "size_bytes") is not None


def is_run(columns: list[str]) -> bool:
    """Returns whether columns are those of the times of one run."""
    return columns[:1] == ["highest"]


def _first(columns: list[str], name: str) -> str | None:
    return next((one for one in _NAMES[name] if one in columns), None)


def read_series(
    path: Path,
    *,
    ranks: int | None = None,
    ranks_per_node: int | None = None,
    collective: str | None = None,
) -> Measurements:
    """Reads a table of series.

    Args:
        path: The CSV file.
        ranks: The number of ranks of rows that do not state it.
        ranks_per_node: That of rows that state the number of nodes alone.
        collective: The collective, if the table has no such column.

    Raises:
        ConfigError: The file cannot be read, or lacks a column.
    """
    raw, damaged = read_table(path)
    columns = raw.columns
    times = _times(columns, str(path))
    _require(columns, str(path), ranks=ranks, collective=collective)
    frame = raw.select("file", pl.col("_line").alias("line"), "text", *_cells(columns), *times)
    frame = _translated(frame, collective)
    valid, omitted = partition(frame, _checks(frame.columns))
    found = finished(
        valid.select(name for name in valid.columns if name in MEASUREMENTS or name == "text"),
        ranks=ranks,
        ranks_per_node=ranks_per_node,
    )
    return Measurements(found.rows, pl.concat([damaged, omitted, found.omitted]).sort("line"))


def series_without_times(raw: pl.DataFrame, *, source: str) -> Measurements:
    """Returns the series of a table whose times are not read.

    Args:
        raw: The columns as text, as :func:`read_table` returns them.
        source: The file, for errors.

    Returns:
        The rows, with some columns of :data:`MEASUREMENTS` and `text`, and those left out.

    Raises:
        ConfigError: The table lacks a column.
    """
    columns = raw.columns
    _require(columns, source, ranks=None, collective=None)
    frame = raw.select("file", pl.col("_line").alias("line"), "text", *_cells(columns))
    frame = _translated(frame, None)
    valid, omitted = partition(frame, _checks(frame.columns))
    kept = valid.select(name for name in valid.columns if name in MEASUREMENTS or name == "text")
    return Measurements(kept, omitted)


def _require(columns: list[str], source: str, *, ranks: int | None, collective: str | None) -> None:
    """Checks that a table has the columns without which no row can be used."""
    lacking = []
    if collective is None and _first(columns, "collective") is None:
        lacking.append("collective")
    if ranks is None and not any(_first(columns, name) for name in ("nodes", "ranks")):
        lacking.append("nodes")
    if lacking:
        named = f"column{'s' if len(lacking) > 1 else ''} {' and '.join(lacking)}"
        hint = "options state the collective, or the number of ranks, of all rows"
        raise mistake(f"lacks the {named}", source=source, expected=_EXPECTED, hint=hint)


def _times(columns: list[str], source: str) -> list[pl.Expr]:
    """Returns the columns of times, in us.

    Raises:
        ConfigError: No column has a time and its unit.
    """
    # Only PICO's own summary has times without a unit in their names: they are ns.
    units = _NANOSECONDS if {"algo_name", "buffer_size"} <= set(columns) else None
    median = time_column(columns, _MEDIANS, units)
    main = median or time_column(columns, _MEANS, units)
    if main is None:
        raise mistake(
            "has no column of times with a unit",
            source=source,
            value=shown(", ".join(one for one in columns if one not in LOCATION)),
            expected=f"{_EXPECTED}; the unit of a time is ns, us, ms or s",
        )
    found = [
        (number(main[0]) * main[1]).alias("time_us"),
        pl.lit("median" if median else "mean").alias("statistic"),
    ]
    for name, stems in _TIMES.items():
        column = time_column(columns, stems, units)
        if column is not None:
            found += [
                (number(column[0]) * column[1]).alias(name),
                (text(column[0]).is_not_null() & number(column[0]).is_null()).alias(f"_bad_{name}"),
            ]
    return found


_COUNTS: Final = ("ranks_per_node", "ranks", "size_bytes", "repetitions")


def _cells(columns: list[str]) -> list[pl.Expr]:
    """Returns the other columns by their names in `MEASUREMENTS`, as text or counts."""
    found = [pl.lit("pico").alias("tool")]
    for name in _NAMES:
        column = _first(columns, name)
        if column is None:
            continue
        if name in _COUNTS:
            bad = text(column).is_not_null() & count(column).is_null()
            found += [count(column).alias(name), bad.alias(f"_bad_{name}")]
        else:
            found.append(text(column).alias(name))
    if "library" not in columns and {"mpi_lib", "mpi_lib_version"} <= set(columns):
        both = pl.concat_str(text("mpi_lib"), text("mpi_lib_version"), separator=" ")
        found = [one for one in found if one.meta.output_name() != "library"]
        found.append(both.alias("library"))
    if "job" not in columns and {"timestamp", "test_id"} <= set(columns):
        both = pl.concat_str(text("timestamp"), text("test_id"), separator="/")
        found = [one for one in found if one.meta.output_name() != "job"]
        found.append(both.alias("job"))
    return found


def _translated(frame: pl.DataFrame, collective: str | None) -> pl.DataFrame:
    """Translates collectives, nodes and flags; columns `_bad_...` mark text without a meaning."""
    if "collective" not in frame.columns:
        frame = frame.with_columns(pl.lit(collective).alias("collective"))
    for name, translate, dtype in (
        ("collective", collective_of, pl.String),
        ("gpu", flag_of, pl.Boolean),
        ("nodes", nodes_of, pl.Int64),
    ):
        if name not in frame.columns:
            continue
        written = frame[name]
        found = translated(written, translate, dtype)
        bad = written.is_not_null() & found.is_null()
        frame = frame.with_columns(found.alias(name), bad.alias(f"_bad_{name}"))
        if name == "nodes":
            shape = pl.when(written.str.contains("x", literal=True)).then(written)
            frame = frame.with_columns(shape.alias("shape"))
    return _with_noted_ranks(frame)


_MEANINGS: Final = {
    "collective": "unknown collective",
    "gpu": "gpu is neither yes nor no",
    "nodes": "nodes is neither a number nor a shape such as 4x4x4, or is too large",
}


def _checks(columns: list[str]) -> list[tuple[pl.Expr, str]]:
    marks = [name for name in columns if name.startswith("_bad_")]
    plain = [name.removeprefix("_bad_") for name in marks]
    return [
        (pl.col(mark), _MEANINGS.get(name, f"{name} is not a number"))
        for mark, name in zip(marks, plain, strict=True)
    ]


# --- one run --------------------------------------------------------------------------------------

_FILE = re.compile(r"(?P<count>\d{1,15})_(?P<algorithm>.+)_(?P<datatype>[a-z]+\d*)\.csv")
_WIDTHS: Final = DATATYPES | {"char": 1, "int": 4, "float": 4, "double": 8}
_WARM_UP: Final = 0.2


class _Test(NamedTuple):
    """What the metadata state of a run."""

    system: str | None = None
    job: str | None = None
    collective: str | None = None
    nodes: str | None = None
    ranks_per_node: str | None = None
    library: str | None = None
    gpu: str | None = None
    notes: str | None = None


def read_run(
    path: Path, *, ranks: int | None = None, collective: str | None = None
) -> Measurements:
    """Reads the times of one run.

    Args:
        path: The CSV file; its name states count, algorithm and datatype.
        ranks: The number of ranks, if neither the file nor the metadata state it.
        collective: The collective, if there are no metadata.

    Raises:
        ConfigError: The file cannot be read, its name is not one of PICO, or the collective is
            unknown.
    """
    named = _named(path)
    test = _metadata(path)
    raw, damaged = read_table(path)
    times = raw.select("file", pl.col("_line").alias("line"), "text", time=number("highest"))
    bad = ~(pl.col("time").is_finite() & (pl.col("time") > 0)).fill_null(value=False)
    valid, omitted = partition(times, [(bad, "the time is not a number above 0")])
    kept = valid.slice(int(valid.height * _WARM_UP))
    of = {"collective": _collective(path, test, collective)}
    row = _summary(kept, raw, test) | named | of
    frame = pl.DataFrame([row], schema_overrides=MEASUREMENTS | {"text": pl.String})
    found = finished(frame if kept.height else frame.clear(), ranks=ranks)
    return Measurements(found.rows, pl.concat([damaged, omitted, found.omitted]).sort("line"))


def _named(path: Path) -> dict[str, Any]:
    """Returns what the name of the file states: algorithm, size and datatype.

    Raises:
        ConfigError: The name has another form.
    """
    found = _FILE.fullmatch(path.name)
    width = _WIDTHS.get(found["datatype"]) if found else None
    if found is None or width is None:
        raise mistake(
            "the name of the file does not state count, algorithm and datatype",
            source=str(path),
            expected="a name such as 1024_ring_ompi_int32.csv",
        )
    return {
        "library_algorithm": found["algorithm"],
        "size_bytes": int(found["count"]) * width,
        "datatype": NCCL_NAMES.get(found["datatype"], found["datatype"]),
    }


def _collective(path: Path, test: _Test, given: str | None) -> str:
    found = collective_of(test.collective or given or "")
    if found is None:
        raise mistake(
            "the collective of the run is unknown",
            source=str(path),
            value=shown(test.collective) if test.collective else "",
            expected="metadata in SYSTEM_metadata.csv, three folders up",
            hint="set it: --collective all_reduce",
        )
    return found


def _summary(kept: pl.DataFrame, raw: pl.DataFrame, test: _Test) -> dict[str, Any]:
    times = kept["time"] / 1e3
    per_rank = sum(bool(re.fullmatch(r"rank\d+", name)) for name in raw.columns)
    shape = test.nodes or ""
    per_node = test.ranks_per_node or ""
    return {
        "file": raw["file"].first() if raw.height else None,
        "line": kept["line"].first() if kept.height else None,
        "text": "",
        "tool": "pico",
        "system": test.system,
        "job": test.job,
        "library": test.library,
        "nodes": nodes_of(shape),
        "shape": shape if "x" in shape else None,
        "ranks_per_node": int(per_node) if re.fullmatch(r"\d{1,9}", per_node) else None,
        "ranks": per_rank or None,
        "gpu": flag_of(test.gpu or ""),
        "notes": test.notes,
        "time_us": times.median(),
        "statistic": "median",
        "low_us": times.quantile(0.1, "linear"),
        "high_us": times.quantile(0.9, "linear"),
        "min_us": times.min(),
        "repetitions": kept.height,
    }


def _metadata(path: Path) -> _Test:
    """Returns what the metadata state of a run in SYSTEM/TIMESTAMP/TEST; nothing without them."""
    parents = path.absolute().parents
    if len(parents) < 4:
        return _Test()
    test, job, system = (one.name for one in parents[:3])
    file = parents[3] / f"{system}_metadata.csv"
    if not file.is_file():
        return _Test()
    table, _ = read_table(file)
    if not {"timestamp", "test_id"} <= set(table.columns):
        return _Test()
    mine = table.filter((text("timestamp") == job) & (text("test_id") == test))
    if mine.height != 1:
        return _Test()
    row = {name: (cell or "").strip() or None for name, cell in mine.row(0, named=True).items()
           if isinstance(cell, str | None)}  # fmt: skip
    library = " ".join(filter(None, (row.get("mpi_lib"), row.get("mpi_lib_version"))))
    return _Test(
        system=system,
        job=f"{job}/{test}",
        collective=row.get("collective_type"),
        nodes=row.get("nnodes"),
        ranks_per_node=row.get("tasks_per_node"),
        library=library or None,
        gpu=row.get("cuda"),
        notes=row.get("notes"),
    )


def _with_noted_ranks(frame: pl.DataFrame) -> pl.DataFrame:
    """Takes rank counts from notes such as `4 tasks per node` or `Test 2048 tasks`.

    PICO's tables state one rank per node for such jobs; their allocations agree with the notes.
    """
    if "notes" not in frame.columns:
        return frame
    per_node = pl.col("notes").str.extract(_PER_NODE).cast(pl.Int64)
    total = pl.col("notes").str.extract(_TOTAL).cast(pl.Int64)
    found = {"ranks_per_node": per_node, "ranks": total}
    for name, noted in found.items():
        stated = pl.col(name) if name in frame.columns else pl.lit(None, pl.Int64)
        frame = frame.with_columns(pl.coalesce(noted, stated).alias(name))
    return frame
