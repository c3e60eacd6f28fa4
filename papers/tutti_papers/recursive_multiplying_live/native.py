"""Fig. 16: both schedules and the MPI's all_reduce on real ranks, without emulated distance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tutti.base.progress import watched
from tutti.mpi.machine import this_machine
from tutti.view.plot import plot_boxes
from tutti_papers import ExhibitResult
from tutti_papers.recursive_multiplying.conclusions import Quartiles, of_native
from tutti_papers.recursive_multiplying.published import TABLE_2, doubling
from tutti_papers.recursive_multiplying_live import runs

if TYPE_CHECKING:
    from pathlib import Path

CANDIDATES = {
    "rd": "recursive doubling",
    "rm": "recursive multiplying",
    "own": "MPI",
}
"""The compared all_reduces of Fig. 16."""


def figure_16(folder: Path, blocks: int | None = None) -> ExhibitResult:
    """Returns both schedules and the MPI's all_reduce, on real ranks without emulated distance.

    Args:
        folder: The folder of the drawing.
        blocks: Blocks to measure, as in `runs.native`.
    """
    series: dict[str, list[list[float]]] = {title: [] for title in CANDIDATES.values()}
    found: dict[int, pl.DataFrame] = {}
    for row in watched("rank counts", [row for row in TABLE_2 if row.ranks in runs.NATIVE_RANKS]):
        stages = (doubling(row.ranks), row.schedule)
        names = dict(zip((*map(runs.multiplying, stages), ""), CANDIDATES, strict=True))
        measured = runs.native(row.ranks, stages, blocks)
        found[row.ranks] = measured.with_columns(
            candidate=pl.col("schedule").replace_strict(names), time_us=pl.col("time_ps") / 1e6
        )
        for name, title in CANDIDATES.items():
            series[title].append(found[row.ranks].filter(candidate=name)["time_us"].to_list())
    drawn = plot_boxes(
        folder / "figure_16.svg", [str(ranks) for ranks in found], series,
        x="N", y="time (us)", title="all_reduce of 8 bytes on this machine", logarithmic=True,
    )  # fmt: skip
    crowded = [ranks for ranks, one in found.items() if one["crowded"].any()]
    more = f" More ranks than cores: N = {', '.join(map(str, crowded))}." if crowded else ""
    return ExhibitResult(
        frame=pl.concat([_rows(ranks, one) for ranks, one in found.items()]),
        conclusions=of_native({ranks: _pairs(one) for ranks, one in found.items()}),
        source="Fig. 16 and section 5.8; no values were read from the figure",
        figures=(drawn,),
        notes=(
            f"""Real ranks of {runs.mpi()} on one machine ({this_machine()}), without emulated \
distance: messages travel through shared memory. No network was measured.{more}""",
            """Ratios are of pairs of consecutive blocks. `--repetitions 250` measures \
as many as the paper, however long that takes.""",
        ),
    )


def _rows(ranks: int, blocks: pl.DataFrame) -> pl.DataFrame:
    """Returns a row per candidate: times, and their scatter."""
    times = pl.col("time_us")
    return blocks.group_by("candidate", maintain_order=True).agg(
        pl.lit(ranks).alias("ranks"),
        blocks=pl.len(),
        minimum_us=times.min(),
        lower_quartile_us=times.quantile(0.25),
        median_us=times.median(),
        upper_quartile_us=times.quantile(0.75),
        wrong=pl.col("wrong").sum(),
    )


def _pairs(blocks: pl.DataFrame) -> dict[str, Quartiles]:
    """Returns the ratios of paired blocks: lower quartile, median, upper quartile."""
    pairs = blocks.pivot("candidate", index="block", values="time_us")
    return {
        f"{one}/{other}": Quartiles(
            *(float(ratio.quantile(part) or 0) for part in (0.25, 0.5, 0.75))
        )
        for one, other in (("rm", "rd"), ("rm", "own"), ("own", "rd"))
        for ratio in [pairs[one] / pairs[other]]
    }
