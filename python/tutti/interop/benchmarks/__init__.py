"""Results of the benchmarks that people run: OSU, IMB and nccl-tests, read into one tidy frame.

Each tool has its own idea of what a size is. Here a size is what it is everywhere in tutti, which
is the convention of nccl-tests: for all_reduce, reduce, broadcast the bytes of one rank's buffer,
for all_gather, reduce_scatter, gather, scatter and all_to_all those of all shards together. OSU and
IMB count the shard of one rank for all_gather, gather, scatter and all_to_all: such rows are only
read where the number of ranks is known.

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

from tutti.files import limits
from tutti.files.mistakes import mistake, shown
from tutti.files.reader import check_lines, read_text
from tutti.interop.benchmarks import imb, nccl_tests, osu
from tutti.interop.benchmarks.rows import BENCHMARKS, BenchmarkInput

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["BENCHMARKS", "parse", "read", "read_all"]

_EXPECTED = "the output of OSU micro-benchmarks, IMB or nccl-tests (text or JSON)"


def read(
    path: str | Path, *, ranks: int | None = None, operation: str | None = None
) -> pl.DataFrame:
    """Reads the output of a benchmark, whichever of the tools wrote it.

    Args:
        path: the file.
        ranks: how many ranks took part, where the file does not say (OSU never does).
        operation: which collective it was, where the file does not say (old nccl-tests).

    Returns:
        A row per measurement, with the columns of :data:`BENCHMARKS`.

    Raises:
        ConfigError: the file cannot be read, is of none of the tools, has a line that cannot be
            understood, or lacks the number of ranks: with file, line and what was expected.
    """
    path = Path(path)
    text = read_text(path, limits.Bytes.LOG, _EXPECTED)
    return parse(text, source=str(path), ranks=ranks, operation=operation)


def read_all(
    paths: Iterable[str | Path], *, ranks: int | None = None, operation: str | None = None
) -> pl.DataFrame:
    """Reads several files, one after the other; as :func:`read`."""
    frames = [read(path, ranks=ranks, operation=operation) for path in paths]
    return pl.concat(frames) if frames else pl.DataFrame(schema=BENCHMARKS)


def parse(
    text: str, *, source: str, ranks: int | None = None, operation: str | None = None
) -> pl.DataFrame:
    """Reads the output of a benchmark from text; `source` names it in errors. As :func:`read`."""
    given = BenchmarkInput(source=source, ranks=ranks, operation=operation)
    if not text.lstrip().startswith("{"):  # JSON may be one line
        check_lines(text, limits.LOG_LINE, source=source)
    for tool in (nccl_tests, osu, imb):
        if tool.recognises(text):
            rows = list(tool.rows(text, given))
            if not rows:
                raise mistake(
                    "has a heading and no results",
                    source=source,
                    expected="a line for each size below it",
                    hint="did the benchmark run to its end?",
                )
            return pl.DataFrame(rows, schema=BENCHMARKS, orient="row")
    first = next((line for line in text.splitlines() if line.strip()), "")
    raise mistake(
        "is of none of the benchmarks that are known here",
        source=source,
        value=shown(first.strip()),
        expected=_EXPECTED,
        hint="headings are needed: they say what was measured, and in which unit",
    )
