"""Blocks that a rank started late: which times are used, and what is reported."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from tutti.view.quantity import plural


@dataclass(frozen=True)
class Lateness:
    """Measured blocks, and those that a rank started late.

    Attributes:
        blocks: All blocks.
        discarded: Late blocks of cases that have other blocks, too.
        cases: The number of cases.
        late_cases: Cases of which all blocks are late, and are used.
    """

    blocks: int = 0
    discarded: int = 0
    cases: int = 0
    late_cases: int = 0

    @classmethod
    def of(cls, times: pl.DataFrame, repetitions: int) -> Lateness:
        """Returns the lateness of cases.

        Args:
            times: With columns ``blocks`` and ``late``, as :func:`in_time` returns them.
            repetitions: The number of blocks of each case.
        """
        every_late = (pl.col("late") > 0) & (pl.col("blocks") == repetitions)
        discarded = times.filter(~every_late)["late"].sum()
        late_cases = len(times.filter(every_late))
        return cls(repetitions * len(times), int(discarded), len(times), late_cases)

    def plus(self, other: Lateness) -> Lateness:
        """Returns the sum of two."""
        return Lateness(
            self.blocks + other.blocks,
            self.discarded + other.discarded,
            self.cases + other.cases,
            self.late_cases + other.late_cases,
        )

    @property
    def text(self) -> str:
        """Which blocks were late, and the times that follow; empty if none was."""
        parts = []
        if self.discarded:
            parts.append(
                f"{self.discarded:,} of {plural(self.blocks, 'block')} started late and were "
                "discarded: the times are the medians of the others"
            )
        if self.late_cases:
            parts.append(
                f"in {self.late_cases:,} of {plural(self.cases, 'case')} all blocks started late "
                "and were used: these times are those of a busy machine"
            )
        return "; ".join(parts)


def in_time(blocks: pl.DataFrame, tolerance_s: float) -> pl.DataFrame:
    """Returns the median of each case over the blocks that all ranks started in time.

    Args:
        blocks: of :func:`tutti.mpi.bench.measure`.
        tolerance_s: maximum lateness of a rank, in seconds.

    Returns:
        Columns: schedule, size_bytes, time_ps, blocks (used), late (discarded). If all blocks of a
        case are late, all are used, and ``late`` is their number.
    """
    return (
        timely(blocks, tolerance_s)
        .group_by("schedule", "size_bytes", maintain_order=True)
        .agg(
            pl.col("time_ps").quantile(0.5, "lower"),
            pl.len().cast(pl.Int64).alias("blocks"),
            pl.col("late_count").first().alias("late"),
        )
    )


def timely(blocks: pl.DataFrame, tolerance_s: float) -> pl.DataFrame:
    """Returns the blocks that all ranks started in time, or all of a case if none is in time.

    Args:
        blocks: of :func:`tutti.mpi.bench.measure`.
        tolerance_s: maximum lateness of a rank, in seconds.

    Returns:
        The columns of the blocks, and: late_count, all (numbers of blocks of the case).
    """
    is_late = pl.col("late_ps") > tolerance_s * 1e12
    case = ["schedule", "size_bytes"]
    counted = blocks.with_columns(
        late_count=is_late.sum().over(case).cast(pl.Int64), all=pl.len().over(case)
    )
    return counted.filter(~is_late | (pl.col("late_count") == pl.col("all")))
