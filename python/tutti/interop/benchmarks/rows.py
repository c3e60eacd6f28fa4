"""What the readers of benchmarks share: the columns, the meaning of sizes, cells and mistakes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import polars as pl

from tutti.files.mistakes import mistake, shown
from tutti.files.reader import parse_count
from tutti.mpi.sizes import DEALT_OUT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.errors import ConfigError

BENCHMARKS: dict[str, type[pl.DataType]] = {
    "file": pl.String,
    "line": pl.Int64,
    "tool": pl.String,
    "benchmark": pl.String,
    "operation": pl.String,
    "blocking": pl.Boolean,
    "ranks": pl.Int64,
    "size_bytes": pl.Int64,
    "datatype": pl.String,
    "in_place": pl.Boolean,
    "time_us": pl.Float64,
    "min_us": pl.Float64,
    "max_us": pl.Float64,
    "bytes_per_s": pl.Float64,
    "iterations": pl.Int64,
    "wrong": pl.Int64,
}
"""The columns of what benchmarks measured; what a tool does not tell is null.

``benchmark`` is the name that the tool gives it. ``operation`` is the collective in tutti's words,
or ``ping_pong`` (time of one way), ``window`` (many messages in flight to one peer),
``bidirectional`` (the same both ways), ``send_recv`` (every rank sends to the next one); null where
tutti has no word for it. ``line`` counts from 1; in JSON it is the place among the results.
``time_us`` is the average over iterations, and over ranks where the tool says so; ``min_us`` and
``max_us`` are the extremes that it tells of, over ranks. ``bytes_per_s`` is what it calls
bandwidth: of nccl-tests, algbw. ``wrong`` counts wrong elements; where a tool only says pass or
fail, it is 0 or 1."""

_OF_ALL_SHARDS = DEALT_OUT - {"reduce_scatter"}
"""Where OSU and IMB count the shard of one rank."""

_MOST = (1 << 53) - 1
_MOST_NUMBER = 1e15


@dataclass(frozen=True)
class BenchmarkInput:
    """What is known of a file beside its text.

    Attributes:
        source: what errors call it.
        ranks: how many ranks took part, if anyone said so.
        operation: which collective it was, if anyone said so.
    """

    source: str
    ranks: int | None = None
    operation: str | None = None

    def refuse(
        self, line: int, problem: str, *, value: str = "", expected: str = "", hint: str = ""
    ) -> NoReturn:
        """Ends reading with a mistake on a line.

        Raises:
            ConfigError: always.
        """
        raise self.mistake(line, problem, value=value, expected=expected, hint=hint)

    def mistake(
        self, line: int, problem: str, *, value: str = "", expected: str = "", hint: str = ""
    ) -> ConfigError:
        """A mistake on a line."""
        return mistake(
            problem,
            source=f"{self.source}, line {line}",
            value=shown(value) if value else "",
            expected=expected,
            hint=hint,
        )

    def by_column(self, cells: Sequence[str], columns: Sequence[str], line: int) -> dict[str, str]:
        """The cells of a line under the names of their columns."""
        if len(cells) != len(columns):
            self.refuse(
                line,
                f"has {len(cells)} numbers where the heading has {len(columns)} columns",
                value=" ".join(cells),
                expected=", ".join(columns),
                hint="output of the job may have got in between: "
                "remove what is not the benchmark's",
            )
        return dict(zip(columns, cells, strict=True))

    def parse_count(self, cell: str, line: int, what: str, most: int = _MOST) -> int:
        """A cell that holds a whole number from 0."""
        number = parse_count(cell, most)
        if number is None:
            expected = f"0 to {most}"
            self.refuse(line, f"{what} is no whole number", value=cell, expected=expected)
        return number

    def number(self, cell: str, line: int, what: str) -> float:
        """A cell that holds a number that is not negative."""
        try:
            value = float(cell)
        except ValueError:
            value = math.nan
        if not 0 <= value <= _MOST_NUMBER or "_" in cell:  # as no comparison with NaN is true
            self.refuse(line, f"{what} is no number", value=cell, expected="a number such as 1.52")
        return value

    def size(self, written: int, line: int, operation: str | None, ranks: int | None) -> int:
        """A size of a tool that counts one rank's shard, by the convention of nccl-tests."""
        if operation not in _OF_ALL_SHARDS:
            return written
        if ranks is None:
            self.refuse(
                line,
                f"sizes of {operation} are those of one rank's shard here, and the file does not "
                "say how many ranks took part",
                expected="the number of ranks",
                hint="give it: --ranks N",
            )
        return written * ranks


def row(given: BenchmarkInput, line: int, tool: str, **cells: Any) -> dict[str, Any]:  # noqa: ANN401
    """A row with the columns of :data:`BENCHMARKS`; what is not given is null."""
    empty: dict[str, Any] = dict.fromkeys(BENCHMARKS)
    return empty | {"file": given.source, "line": line, "tool": tool, "blocking": True} | cells
