"""Published values of tables, values of figures stated in the text, and the method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti_papers.claims import Claim

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tutti_papers.claims import Method

CITATION = (
    "M. Ruefenacht, M. Bull, S. Booth, Generalisation of recursive doubling for AllReduce: Now "
    "with simulation, Parallel Computing 69 (2017)"
)

SIZE = "8 B"
"""One integer of 8 bytes, as in all of the paper's latency figures (section 5)."""
DATATYPE = "int64"

BLOCK = 10
"""Consecutive all_reduces per timing (section 5.2)."""
ALLOCATIONS = 40
"""Minimum number of node allocations (section 5.2)."""

PICTURE = "no values were read from the curves"

TABLE_1 = {"minimum": (1.34, 0.34), "median": (1.51, 0.38)}
"""alpha_p and alpha_r in us, non-blocking sends (Table 1)."""


@dataclass(frozen=True)
class Table2Row:
    """A row of Table 2; times in us, of recursive doubling and of recursive multiplying.

    Attributes:
        ranks: The process count.
        schedule: The schedule of recursive multiplying.
        minimum: Both minimum times.
        median: Both median times.
        reductions: Reduction of minimum and median in per cent.
    """

    ranks: int
    schedule: str
    minimum: tuple[float, float]
    median: tuple[float, float]
    reductions: tuple[float, float]


TABLE_2 = (
    Table2Row(4, "a4", (2.36, 1.87), (4.55, 3.65), (21.1, 19.7)),
    Table2Row(6, "a6", (4.76, 2.87), (8.72, 5.75), (40.0, 34.1)),
    Table2Row(8, "a2,a4", (4.37, 3.54), (9.38, 7.23), (18.9, 23.0)),
    Table2Row(12, "a3,a4", (7.03, 4.43), (15.3, 11.6), (37.0, 24.4)),
    Table2Row(16, "a4,a4", (6.85, 4.98), (19.1, 13.8), (27.3, 27.6)),
    Table2Row(24, "a4,a6", (9.99, 6.91), (29.7, 25.5), (30.8, 14.2)),
    Table2Row(32, "a8,a4", (12.9, 8.95), (30.9, 25.2), (30.8, 18.4)),
    Table2Row(48, "a8,a6", (19.8, 13.3), (38.7, 32.1), (33.2, 17.1)),
    Table2Row(64, "a8,a8", (24.2, 16.5), (47.4, 39.9), (31.9, 15.9)),
    Table2Row(96, "a8,a3,a4", (25.3, 20.7), (51.7, 47.6), (18.1, 7.96)),
    Table2Row(128, "a8,a4,a4", (25.1, 17.9), (101.0, 88.4), (28.9, 12.5)),
)
"""Table 2, where N = 128 has a median of 101.0 us."""


TIMES = {
    "rd_minimum": "recursive doubling, minimum",
    "rm_minimum": "recursive multiplying, minimum",
    "rd_median": "recursive doubling, median",
    "rm_median": "recursive multiplying, median",
}
"""The times of a row of Table 2, and their titles."""


def times_of(row: Table2Row) -> dict[str, float]:
    """Returns the published times of a row of Table 2 in us, by the names of `TIMES`."""
    return {
        "rd_minimum": row.minimum[0],
        "rm_minimum": row.minimum[1],
        "rd_median": row.median[0],
        "rm_median": row.median[1],
    }


def reduction(times: Mapping[str, float], which: str) -> float:
    """Returns the time reduction of recursive multiplying over recursive doubling in per cent."""
    return 100 * (1 - times[f"rm_{which}"] / times[f"rd_{which}"])


def doubling(ranks: int) -> str:
    """Returns MPICH's recursive doubling in the notation of recursive multiplying."""
    power = 1 << (ranks.bit_length() - 1)
    stages = ",".join(["a2"] * (power.bit_length() - 1))
    rest = ranks - power
    return f"c{2 * rest}m2,{stages},e{2 * rest}m2" if rest else stages


def modelled(schedule: str, alpha_p: float, alpha_r: float) -> float:
    """Returns the time of the paper's model, in the unit of its parameters (section 3)."""
    stages = schedule.split(",")
    widths = [int(stage[1:]) - 1 if stage[0] == "a" else 1 for stage in stages]
    return len(widths) * alpha_p + sum(widths) * alpha_r


def compared(
    rows: Sequence[tuple[str, float | tuple[float, float], str, float]],
    method: Method = "simulated",
) -> tuple[Claim, ...]:
    """Returns published values with tutti's values.

    Args:
        rows: quantity, published value or range, its place, ours. A value whose place starts with
            "derived" is derived.
        method: How all of tutti's values are computed.
    """
    return tuple(
        Claim(
            quantity=quantity,
            published=published,
            computed=float(ours),
            certainty="derived" if where.startswith("derived") else "text",
            source=where,
            method=method,
        )
        for quantity, published, where, ours in rows
    )
