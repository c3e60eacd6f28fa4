"""Reads the output of OSU micro-benchmarks, IMB and nccl-tests into one tidy frame.

Sizes follow the convention of tutti and nccl-tests. For all_reduce, reduce and broadcast, the size
is one rank's buffer. For all_gather, reduce_scatter, gather, scatter and all_to_all, it is the sum
of all shards. OSU and IMB report the shard of one rank for all_gather, gather, scatter and
all_to_all: such rows require the number of ranks.

Examples:
    >>> frame = parse(
    ...     '''
    ... # OSU MPI Latency Test v7.4
    ... # Datatype: MPI_CHAR.
    ... # Size       Avg Latency(us)
    ... 8                       1.52
    ... ''',
    ...     source="osu.txt",
    ... )
    >>> frame.select("operation", "ranks", "size_bytes", "time_us").row(0)
    ('ping_pong', 2, 8, 1.52)
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from tutti.base.files import limits
from tutti.base.files.mistakes import mistake, shown
from tutti.base.files.reader import check_lines, read_text
from tutti.formats.benchmarks import imb, nccl_tests, osu
from tutti.formats.benchmarks.rows import BENCHMARKS, BenchmarkInput

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["BENCHMARKS", "parse", "read", "read_all"]

_EXPECTED = "the output of OSU micro-benchmarks, IMB or nccl-tests (text or JSON)"


def read(
    path: str | Path, *, ranks: int | None = None, operation: str | None = None
) -> pl.DataFrame:
    """Reads the output of any of the tools.

    Args:
        path: The file.
        ranks: The number of ranks, if the file does not state it (OSU).
        operation: The collective, if the file does not state it (old nccl-tests).

    Returns:
        A row per measurement, with the columns of :data:`BENCHMARKS`.

    Raises:
        ConfigError: The file cannot be read or parsed, or the number of ranks is missing. The
            message has file, line and the expected value.
    """
    path = Path(path)
    text = read_text(path, limits.Bytes.LOG, _EXPECTED)
    return parse(text, source=str(path), ranks=ranks, operation=operation)


def read_all(
    paths: Iterable[str | Path], *, ranks: int | None = None, operation: str | None = None
) -> pl.DataFrame:
    """Reads several files into one frame, as :func:`read`."""
    frames = [read(path, ranks=ranks, operation=operation) for path in paths]
    return pl.concat(frames) if frames else pl.DataFrame(schema=BENCHMARKS)


def parse(
    text: str, *, source: str, ranks: int | None = None, operation: str | None = None
) -> pl.DataFrame:
    """Reads the output of a benchmark from text, as :func:`read`; errors name `source`."""
    given = BenchmarkInput(source=source, ranks=ranks, operation=operation)
    if not text.lstrip().startswith("{"):  # JSON may be one line
        check_lines(text, limits.LOG_LINE, source=source)
    for tool in (nccl_tests, osu, imb):
        if tool.recognises(text):
            rows = list(tool.rows(text, given))
            if not rows:
                raise mistake(
                    "has a heading but no results",
                    source=source,
                    expected="a line per size below the heading",
                    hint="check that the benchmark completed",
                )
            return pl.DataFrame(rows, schema=BENCHMARKS, orient="row")
    first = next((line for line in text.splitlines() if line.strip()), "")
    raise mistake(
        "unknown benchmark output",
        source=source,
        value=shown(first.strip()),
        expected=_EXPECTED,
        hint="keep the headings, which state the operation and the units",
    )
