"""`detail.out` of Open MPI's collectives tuning: the mean time of each algorithm of a collective.

A heading `#Nnodes  Message_size  ALGORITHM ...` is followed by a row per number of ranks and size,
with `MEAN(DEVIATION)` of each algorithm in us. The first column has the ranks of the jobs, whatever
its name (`number_of_ranks` of the tool's `config`), and sizes are those that OSU prints. `tuned` is
what the library chooses by itself. The collective is not stated.

Source: <https://github.com/open-mpi/ompi-collectives-tuning>, ``coltune_analyze.py``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from tutti.base.files.mistakes import mistake
from tutti.formats.benchmarks.rows import OF_ALL_SHARDS
from tutti.formats.measurements.schema import OMITTED, Measurements, as_text, finished

if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADING: Final = re.compile(r"#\s*N(?:nodes|procs|ranks)\s+Message_size\s+\S")
_CELL: Final = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)\(\d{1,12}(?:\.\d{1,9})?\)")
_DAMAGED: Final = "expected ranks, size and {} times such as 64.3(0.9)"
_CHOICE: Final = "tuned"
ONLY_BEST: Final = "states only the best algorithm of each size"
"""The problem of a file that has no times of the others."""
_BEST: Final = "Best_Algorithm"
"""Third column of `best.out` of the same tool."""
_MOST: Final = 1 << 40
_SCHEMA: Final = {
    "file": pl.String,
    "line": pl.Int64,
    "text": pl.String,
    "library_algorithm": pl.String,
    "ranks": pl.Int64,
    "size_bytes": pl.Int64,
    "time_us": pl.Float64,
}


def is_detail(text: str) -> bool:
    """Returns whether a text is such a file.

    Examples:
        >>> is_detail("#Nnodes    Message_size basic_linear  binomial")
        True
    """
    return _HEADING.match(text.lstrip()) is not None


def parse_detail(text: str, *, source: str, collective: str | None) -> Measurements:
    """Reads the means of algorithms.

    Args:
        text: The content of the file.
        source: The file, for errors.
        collective: The collective.

    Raises:
        ConfigError: The collective is unknown, or the file is `best.out` of the same tool.
    """
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    names = lines[0][1].split()[2:]
    if names[0] == _BEST:
        raise mistake(ONLY_BEST, source=source,
                      expected="detail.out of the same tool, with the times of all algorithms",
                      hint="name detail.out instead")  # fmt: skip
    if collective is None:
        raise mistake(
            "does not state its collective",
            source=source,
            expected="the collective of all rows",
            hint="--collective states it",
        )
    rows, omitted = [], []
    for number, line in lines[1:]:
        found = list(_cells(line, names))
        if found:
            rows += [(source, number, as_text(line), *one) for one in found]
        else:
            omitted.append((source, number, _DAMAGED.format(len(names)), as_text(line)))
    frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row").with_columns(
        pl.lit(collective).alias("collective"),
        pl.lit("ompi-collectives-tuning").alias("tool"),
        pl.lit("Open MPI").alias("library"),
        pl.lit("mean").alias("statistic"),
    )
    if collective in OF_ALL_SHARDS:
        frame = frame.with_columns(pl.col("size_bytes") * pl.col("ranks"))
    done = finished(frame)
    left = pl.DataFrame(omitted, schema=OMITTED, orient="row")
    return Measurements(done.rows, pl.concat([left, done.omitted]).sort("line"))


def _cells(line: str, names: list[str]) -> Iterator[tuple[Any, ...]]:
    """Algorithm, ranks, size and time of each cell of a line; nothing if it is damaged."""
    parts = line.split()
    times = [_CELL.fullmatch(one) for one in parts[2:]]
    numbers = [int(one) for one in parts[:2] if one.isascii() and one.isdigit() and len(one) < 16]
    if len(times) != len(names) or None in times or len(numbers) != 2 or max(numbers) > _MOST:
        return
    ranks, size = numbers
    for name, time in zip(names, times, strict=True):
        label = "default" if name == _CHOICE else name
        yield f"{label}_ompi", ranks, size, float(time[1]) if time else None
