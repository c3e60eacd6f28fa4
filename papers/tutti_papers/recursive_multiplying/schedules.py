"""Schedules and blocks on the machine of `fitting`: Figs 13, 14 and 15."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import polars as pl

from tutti.base.progress import watched
from tutti_papers import Exhibit, ExhibitResult
from tutti_papers.claims import verdict_line
from tutti_papers.exhibits import plot_curves
from tutti_papers.recursive_multiplying.archer import measured
from tutti_papers.recursive_multiplying.conclusions import (
    CLUSTERED,
    of_blocks,
    of_choices,
    of_orders,
    of_the_model,
)
from tutti_papers.recursive_multiplying.fitting import FITTED
from tutti_papers.recursive_multiplying.published import (
    PICTURE,
    TABLE_1,
    TABLE_2,
    compared,
    modelled,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tutti_papers import Conclusion

FEW_BLOCKS = 5
"""Blocks per allocation of Figs 14 and 15: 200 in total."""
BLOCKS = 10
"""Blocks per allocation of Fig. 13."""
BLOCK_SIZES = (1, 2, 5, 10, 20)
"""All_reduces of a block in Fig. 13; those of the paper are in the figure."""
SCATTERED = (4, 6, 8, 12, 16, 24, 32)
WIDEST = 16
"""Maximum stage width in the scatter plots; wider stages are far off the scale."""


def _figure_13(folder: Path) -> ExhibitResult:
    """Returns the (a8,a8) schedule on 64 ranks, over the all_reduces of a block."""
    rows = [
        measured(FITTED, 64, ("a8,a8",), BLOCKS, each)
        .with_columns(each=pl.lit(each))
        .drop("schedule")
        for each in watched("block sizes", BLOCK_SIZES)
    ]
    frame = pl.concat(rows)
    minima = dict(frame.select("each", "minimum_us").iter_rows())
    medians = dict(frame.select("each", "median_us").iter_rows())
    quantity = "median of blocks of 10 over that of blocks of 1, us"
    claims = compared([(quantity, 10.0, "section 5.6", medians[10] - medians[1])])
    conclusions = of_blocks(minima, medians)
    drawn = plot_curves(
        folder / "figure_13.svg",
        {which: (frame["each"], frame[f"{which}_us"])
         for which in ("minimum", "lower_quartile", "median", "upper_quartile")},
        x="all_reduces in a block", y="time of one (us)",
        verdict=verdict_line(claims, conclusions),
    )  # fmt: skip
    return ExhibitResult(
        frame=frame.select("each", pl.exclude("each")),
        published=claims,
        conclusions=conclusions,
        source=f"Fig. 13 and section 5.6; {PICTURE}",
        figures=(drawn,),
    )


def factored(ranks: int) -> list[str]:
    """Returns all ordered factorisations into stages of at most `WIDEST`."""
    if ranks == 1:
        return [""]
    return [
        f"a{width},{rest}".rstrip(",")
        for width in range(2, min(ranks, WIDEST) + 1)
        if ranks % width == 0
        for rest in factored(ranks // width)
    ]


@functools.cache
def _measured(ranks: int, blocks: int) -> pl.DataFrame:
    return measured(FITTED, ranks, tuple(factored(ranks)), blocks)


def _scattered(which: str) -> pl.DataFrame:
    """Returns measured times of all factored schedules, and those of the paper's model."""
    frames = []
    for ranks in watched("rank counts", SCATTERED):
        found = _measured(ranks, FEW_BLOCKS)
        names = [name.split(":")[1].split(" x ")[0] for name in found["schedule"]]
        frames.append(
            pl.DataFrame(
                {
                    "ranks": [ranks] * found.height,
                    "schedule": names,
                    "model_us": [modelled(name, *TABLE_1[which]) for name in names],
                    "measured_us": found[f"{which}_us"],
                }
            )
        )
    return pl.concat(frames)


def _scatter(folder: Path, number: int, which: str) -> ExhibitResult:
    """Returns measured times of all factored schedules, and those of the paper's model."""
    frame = _scattered(which)
    dots = {
        f"N = {ranks}": (part["model_us"], part["measured_us"])
        for ranks in SCATTERED
        for part in [frame.filter(pl.col("ranks") == ranks)]
    }
    conclusions = _conclusions(frame, which)
    longest = max(frame["model_us"])
    drawn = plot_curves(
        folder / f"figure_{number}.svg", {"model = measured": ([0, longest], [0, longest])},
        x="model (us)", y=f"measured, {which} (us)", points=dots,
        verdict=verdict_line((), conclusions),
    )  # fmt: skip
    return ExhibitResult(
        frame=frame,
        conclusions=conclusions,
        source=f"Fig. {number} and section 5.7; {PICTURE}",
        figures=(drawn,),
        notes=(f"Limited to stages of at most a{WIDEST} and N up to {SCATTERED[-1]}.",),
    )


def _conclusions(frame: pl.DataFrame, which: str) -> tuple[Conclusion, ...]:
    parts = {
        int(str(ranks)): part for (ranks,), part in frame.group_by(["ranks"], maintain_order=True)
    }
    loss = 100 * max(_lost(part) for part in parts.values())
    least, ranks = min((_correlation(part), ranks) for ranks, part in parts.items())
    why = f"rank correlation of at least {least:.2f}, at N = {ranks} (cluster: {CLUSTERED})"
    if least < CLUSTERED:
        why += (
            "; the model would need detours, which cost a wide stage less than several narrow ones"
        )
    found = of_the_model(loss, which, holds=least >= CLUSTERED, why=why)
    if which != "median":
        return found
    return (*found, of_orders(_order_spreads(parts)), of_choices(_choices(parts)))


def _lost(part: pl.DataFrame) -> float:
    """Returns the relative time that the model's best schedule loses to the fastest one."""
    times: list[float] = part.sort("model_us", maintain_order=True)["measured_us"].to_list()
    return times[0] / min(times) - 1


def _correlation(part: pl.DataFrame) -> float:
    return float(part.select(pl.corr("model_us", "measured_us", method="spearman")).item())


def _order_spreads(parts: Mapping[int, pl.DataFrame]) -> dict[int, float]:
    """Returns by N how much the orders of the same stages differ at most, as a fraction."""
    stages = pl.col("schedule").str.split(",").list.sort().list.join(",")
    spreads = {}
    for ranks, part in parts.items():
        found = part.group_by(stages.alias("stages")).agg(
            orders=pl.len(), spread=pl.col("measured_us").max() / pl.col("measured_us").min() - 1
        )
        several = found.filter(pl.col("orders") > 1)
        if several.height:
            spreads[ranks] = float(several["spread"].max())  # type: ignore[arg-type]
    return spreads


def _choices(parts: Mapping[int, pl.DataFrame]) -> dict[int, float]:
    """Returns by N what the schedule of Table 2 loses to the fastest one, as a fraction."""
    losses = {}
    for row in TABLE_2:
        if row.ranks in parts:
            times = dict(parts[row.ranks].select("schedule", "measured_us").iter_rows())
            losses[row.ranks] = times[row.schedule] / min(times.values()) - 1
    return losses


FIGURES: dict[int, Exhibit] = {
    13: Exhibit(title="(a8,a8) on 64 ranks over block sizes", make=_figure_13),
    14: Exhibit(
        title="all factored schedules: minimum over model time",
        make=lambda folder: _scatter(folder, 14, "minimum"),
    ),
    15: Exhibit(
        title="all factored schedules: median over model time",
        make=lambda folder: _scatter(folder, 15, "median"),
    ),
}
