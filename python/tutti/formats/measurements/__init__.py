"""Measured collectives of any tool, in one frame, with every row that was left out and the reason.

Reads logs of OSU micro-benchmarks, IMB and nccl-tests, CSV files of PICO, CSV files of OSU results,
`detail.out` of Open MPI's collectives tuning, and results of `tutti mpi bench`.

Examples:
    >>> found = parse_log(
    ...     '''
    ... mpirun -n 8 --npernode 4 osu_allreduce
    ... # OSU MPI Allreduce Latency Test v7.4
    ... # Size       Avg Latency(us)
    ... 8                       4.52
    ... 16                      killed
    ... ''',
    ...     source="job.log",
    ... )
    >>> found.rows.select("collective", "nodes", "ranks", "size_bytes", "time_us").row(0)
    ('all_reduce', 2, 8, 8, 4.52)
    >>> found.omitted.select("line", "reason").row(0)
    (6, 'Avg Latency(us) is not a number')
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tutti.base.errors import capped
from tutti.base.files import limits
from tutti.base.files.log_files import read_log
from tutti.base.files.mistakes import mistake, shown
from tutti.base.files.reader import read_bytes
from tutti.formats.measurements import bench, osu_frames, pico, tuning
from tutti.formats.measurements.logs import parse_log
from tutti.formats.measurements.schema import MEASUREMENTS, OMITTED, Measurements, concatenated
from tutti.formats.measurements.tables import header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = [
    "MEASUREMENTS",
    "NOT_MEASUREMENTS",
    "OMITTED",
    "Measurements",
    "parse_log",
    "read_measurements",
    "read_reported",
]


class _Absent(NamedTuple):
    """What the user states of rows that do not."""

    ranks: int | None
    ranks_per_node: int | None
    collective: str | None


NOT_MEASUREMENTS = ("unknown benchmark output", "unknown columns", tuning.ONLY_BEST)
"""The problems of files that are of another kind."""

_EXPECTED = (
    "output of OSU micro-benchmarks, IMB or nccl-tests, a CSV file of PICO or of OSU results, or "
    "results.parquet of `tutti mpi bench`"
)


def read_measurements(
    paths: str | Path | Iterable[str | Path],
    *,
    ranks: int | None = None,
    ranks_per_node: int | None = None,
    collective: str | None = None,
    strict: bool = False,
    agree: bool = True,
) -> Measurements:
    """Reads measurements of any supported tool.

    Args:
        paths: A file, or several; a file that is named twice is read once.
        ranks: The number of ranks of rows that do not state it.
        ranks_per_node: That of rows of CSV files that state the number of nodes alone.
        collective: The collective of files that do not state it.
        strict: Raise an error instead of leaving rows out.
        agree: Raise an error if a file states another number than `ranks`, and none needs it.

    Returns:
        The rows, and those that were left out with their reasons.

    Raises:
        ConfigError: A file cannot be read, is of no known format, lacks a column, or states another
            number of ranks than `ranks`; or `strict`, and a row cannot be attributed. The message
            has file and line.
    """
    if isinstance(paths, str | Path):
        paths = [paths]
    files = dict.fromkeys(Path(path) for path in paths)
    given = _Absent(ranks, ranks_per_node, collective)
    found = concatenated([_read(path, given) for path in files])
    if agree:
        found.require_agreement()
    if strict:
        found.require_complete()
    return found


def read_reported(
    paths: Sequence[Path],
    remark: Callable[[str], None],
    *,
    ranks: int | None = None,
    collective: str | None = None,
    agree: bool = True,
) -> Measurements:
    """Reads measurements as :func:`read_measurements`, and reports what was left out or merged.

    Args:
        paths: The files.
        remark: Reports a line.
        ranks: The number of ranks of rows that do not state it.
        collective: The collective of files that do not state it.
        agree: As in :func:`read_measurements`.

    Raises:
        ConfigError: As :func:`read_measurements`, or no row can be used.
    """
    measured = read_measurements(paths, ranks=ranks, collective=collective, agree=agree)
    measured.require_rows(", ".join(map(str, paths)), _EXPECTED)
    for line in measured.remarks():
        remark(capped(line))
    if text := measured.without(collective):
        remark(text)
    return measured


def _read(path: Path, given: _Absent) -> Measurements:
    if path.suffix == ".parquet":
        return bench.read_bench(path)
    if path.suffix == ".csv":
        return _read_csv(path, given)
    # A replaced character is never part of a row.
    text = read_log(path, _EXPECTED)
    if tuning.is_detail(text):
        return tuning.parse_detail(text, source=str(path), collective=given.collective)
    return parse_log(text, source=str(path), ranks=given.ranks, collective=given.collective)


def _read_csv(path: Path, given: _Absent) -> Measurements:
    data = read_bytes(path, limits.Bytes.TABLE, _EXPECTED)
    text = data[: limits.LINE].decode("utf-8", "replace").removeprefix("\ufeff")
    first = next((line for line in text.split("\n") if line.strip()), "")
    if not first:
        raise mistake("is empty", source=str(path), expected=_EXPECTED)
    columns = header(first)
    if pico.is_run(columns):
        return pico.read_run(path, ranks=given.ranks, collective=given.collective)
    if osu_frames.is_frame(columns):
        return osu_frames.read_frame_of_osu(
            path, ranks=given.ranks, ranks_per_node=given.ranks_per_node
        )
    if pico.is_table(columns):
        return pico.read_series(path, **given._asdict())
    raise mistake(
        "unknown columns",
        source=str(path),
        value=shown(first.strip()),
        expected="columns such as collective, algorithm, nodes, vector_bytes and median_us",
        hint="`tutti advise --manifest FILE` reads a list of files" if "path" in columns else "",
    )
