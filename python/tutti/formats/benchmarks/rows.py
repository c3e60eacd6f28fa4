"""Columns, conversion of sizes and cells, and errors of all benchmark readers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn

from tutti.base.files.limits import parse_count
from tutti.base.files.mistakes import mistake, shown
from tutti.collectives.sizes import DEALT_OUT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tutti.base.errors import ConfigError

FIELDS: Final = (
    "file", "line", "tool", "benchmark", "operation", "blocking", "ranks", "size_bytes",
    "written_bytes", "datatype", "in_place", "time_us", "min_us", "max_us", "bytes_per_s",
    "bus_per_alg", "iterations", "wrong",
)  # fmt: skip
"""The fields of a row; None for values that a tool does not report.

- ``benchmark``: the name of the benchmark in the tool.
- ``operation``: the collective, ``ping_pong`` (one-way time), ``window`` (many messages in flight
  to one peer), ``bidirectional`` (the same in both directions) or ``send_recv`` (each rank sends to
  the next one). None for other benchmarks.
- ``line``: the line from 1, or the index among the results in JSON.
- ``written_bytes``: the size as OSU prints it.
- ``time_us``: the mean over iterations, and over ranks if the tool reports it.
- ``min_us``, ``max_us``: the extremes over ranks.
- ``bytes_per_s``: the bandwidth, algbw of nccl-tests.
- ``bus_per_alg``: bounds of busbw / algbw of nccl-tests.
- ``wrong``: the number of wrong elements, or 0 and 1 for pass and fail."""

OF_ALL_SHARDS = DEALT_OUT - {"reduce_scatter"}
"""Collectives for which OSU and IMB report the shard of one rank."""

_MOST = (1 << 53) - 1
_MOST_NUMBER = 1e15


@dataclass(frozen=True)
class BenchmarkInput:
    """The known properties of a file in addition to its text.

    Attributes:
        source: The name of the file in errors.
        ranks: The number of ranks, if known.
        operation: The collective, if known.
        first: The number of the first line of the text in the file.
        datatypes: The datatypes that the heading of IMB states in front of all sections.
    """

    source: str
    ranks: int | None = None
    operation: str | None = None
    first: int = 1
    datatypes: tuple[str, ...] = ()

    def lines(self, text: str) -> Iterator[tuple[int, str]]:
        """Yields the lines of the text with their numbers in the file."""
        return enumerate(text.splitlines(), start=self.first)

    def attempt(
        self, line: int, make: Callable[[], Iterable[dict[str, Any]]]
    ) -> Iterator[dict[str, Any]]:
        """Yields the rows that `make` returns for a line; readers of logs leave out invalid lines.

        Raises:
            ConfigError: The line is invalid.
        """
        del line
        yield from make()

    def refuse(
        self, line: int, problem: str, *, value: str = "", expected: str = "", hint: str = ""
    ) -> NoReturn:
        """Raises the error of a line.

        Raises:
            ConfigError: Always.
        """
        raise self.mistake(line, problem, value=value, expected=expected, hint=hint)

    def mistake(
        self, line: int, problem: str, *, value: str = "", expected: str = "", hint: str = ""
    ) -> ConfigError:
        """Returns the error of a line."""
        return mistake(
            problem,
            source=f"{self.source}, line {line}",
            value=shown(value) if value else "",
            expected=expected,
            hint=hint,
        )

    def by_column(self, cells: Sequence[str], columns: Sequence[str], line: int) -> dict[str, str]:
        """Returns the cells of a line by the names of their columns."""
        if len(cells) != len(columns):
            self.refuse(
                line,
                f"has {len(cells)} numbers, but the heading has {len(columns)} columns",
                value=" ".join(cells),
                expected=", ".join(columns),
                hint="remove lines that are not output of the benchmark",
            )
        return dict(zip(columns, cells, strict=True))

    def integer(self, cell: str, line: int, what: str, most: int = _MOST) -> int:
        """Returns a cell as an integer, 0 or more."""
        number = parse_count(cell, most)
        if number is None:
            expected = f"0 to {most}"
            self.refuse(line, f"{what} is not an integer", value=cell, expected=expected)
        return number

    def number(self, cell: str, line: int, what: str) -> float:
        """Returns a cell as a number, 0 or more."""
        try:
            value = float(cell)
        except ValueError:
            value = math.nan
        if not 0 <= value <= _MOST_NUMBER or "_" in cell:  # Also refuses NaN.
            self.refuse(line, f"{what} is not a number", value=cell, expected="such as 1.52")
        return value

    def size(
        self, written: int, line: int, operation: str | None, ranks: int | None, *, shard: bool
    ) -> int:
        """Converts a size to the convention of nccl-tests; `shard`: it is that of one rank."""
        if not shard:
            return written
        if ranks is None:
            self.refuse(
                line,
                f"sizes of {operation} are shards of one rank, and the file does not state the "
                "number of ranks: use --ranks N",
                expected="the number of ranks",
            )
        if written * ranks > _MOST:
            problem = f"the size of {operation} on {ranks} ranks is too large"
            self.refuse(line, problem, value=str(written), expected=f"0 to {_MOST} in total")
        return written * ranks


def row(given: BenchmarkInput, line: int, tool: str, **cells: Any) -> dict[str, Any]:  # noqa: ANN401
    """Returns a row with the fields of :data:`FIELDS`; None for missing cells."""
    empty: dict[str, Any] = dict.fromkeys(FIELDS)
    return empty | {"file": given.source, "line": line, "tool": tool, "blocking": True} | cells
