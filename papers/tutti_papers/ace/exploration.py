"""Figure 9: speedup over scratchpad size and FSMs, and the active time of ACE."""

from __future__ import annotations

from itertools import product
from statistics import geometric_mean
from typing import TYPE_CHECKING

import polars as pl

from tutti.base.progress import at_once
from tutti.base.units import Size
from tutti_papers import Exhibit, ExhibitResult, looks
from tutti_papers.ace.conclusions import counts, of_activity, of_designs
from tutti_papers.ace.published import ACTIVE, CERTAINTY, SPEEDUPS, SURE, compared
from tutti_papers.ace.steps import all_steps
from tutti_papers.ace.system import BETWEEN, SAMPLE, SIZES, ace, alone, step
from tutti_papers.ace.timing import LARGEST, active_percent
from tutti_papers.ace.tori import designs_on_all_sizes
from tutti_papers.ace.workloads import BATCH
from tutti_papers.exhibits import COLUMN, Anchor, plot_bars, plot_curves

if TYPE_CHECKING:
    from pathlib import Path

SCRATCHPADS = ("1 MiB", "2 MiB", "4 MiB", "8 MiB")
FSMS = (4, 8, 12, 16, 20, 24)
CHOSEN = ("4 MiB", 16)
"""Beyond it the paper sees diminishing returns (B)."""
TRAINED = (
    *((sram, CHOSEN[1]) for sram in SCRATCHPADS),
    *((CHOSEN[0], fsms) for fsms in FSMS if fsms != CHOSEN[1]),
    (SCRATCHPADS[-1], FSMS[-1]),
)
"""The designs with which iterations are simulated: each choice alone, and both at most."""

Design = tuple[str, int]


def _figure_9(folder: Path) -> ExhibitResult:
    """Returns speedups of all_reduce and iterations over designs, and the active time of ACE."""
    designs = list(product(SCRATCHPADS, FSMS))
    alone_at = {between: _alone(designs, between) for between in (BETWEEN, SAMPLE)}
    trained = _trained()
    runs = all_steps()
    active = {model: active_percent(runs[model, LARGEST, "ace"]) for model in BATCH}
    claims = compared(
        [(published, active[model][1]) for model, published in ACTIVE.items()],
        "{}: backward pass in which ACE processes a chunk, %",
    )
    everywhere = designs_on_all_sizes(designs)
    conclusions = (
        *of_designs(_speeds(everywhere, trained)),
        *of_activity({model: active[model] for model in ACTIVE}),
    )
    figures = _drawn(folder, alone_at[BETWEEN], active, counts(claims, conclusions))
    return ExhibitResult(
        frame=_frame(designs, alone_at, trained),
        published=claims,
        conclusions=conclusions,
        source=f"the text on the figure; recalled values of its second half. {SURE}",
        figures=figures,
        notes=(
            "all values are relative to the design with 4 MiB and 16 FSMs",
            "all_reduce: bandwidth of 64 MiB on 4x4x4; also with links of 200 cycles",
            (
                "iterations: speed on 128 NPUs, geometric mean over the models; of designs that "
                "differ in one choice, and of the largest"
            ),
            "tori: microseconds of the all_reduce on each size",
            "published: per cent of the backward pass in which ACE processes a chunk",
        ),
        tables={
            "active": pl.DataFrame(
                [
                    {"model": model, "forward_percent": forward, "backward_percent": backward}
                    for model, (forward, backward) in active.items()
                ]
            ),
            "gains": _gains(alone_at[BETWEEN]),
            "tori": everywhere,
        },
    )


def _frame(
    designs: list[Design],
    alone_at: dict[int, dict[Design, float]],
    trained: dict[Design, float],
) -> pl.DataFrame:
    """Returns the speed of each design."""
    return pl.DataFrame(
        [
            {
                "sram": sram,
                "fsms": fsms,
                "all_reduce": round(alone_at[BETWEEN][sram, fsms], 3),
                "with_200_cycles": round(alone_at[SAMPLE][sram, fsms], 3),
                "iterations": round(speed, 3) if (speed := trained.get((sram, fsms))) else None,
            }
            for sram, fsms in designs
        ],
        schema_overrides={"iterations": pl.Float64},
    )


def _drawn(
    folder: Path,
    speed: dict[Design, float],
    active: dict[str, tuple[float, float]],
    verdict: str,
) -> tuple[Path, Path]:
    """Draws the speed of the designs, and the active time of ACE."""
    lines = {sram: (list(FSMS), [speed[sram, fsms] for fsms in FSMS]) for sram in SCRATCHPADS}
    drawn = plot_curves(
        folder / "figure_9.svg", lines, x="FSMs", y="all_reduce speedup over 4 MiB, 16 FSMs",
        verdict=verdict, anchors=[Anchor(CHOSEN[1], None, "quoted", CHOSEN[0])],
    )  # fmt: skip
    bars = plot_bars(
        folder / "figure_9_active.svg",
        {model: {"ace": {"active": backward}} for model, (_, backward) in active.items()},
        y="active in the backward pass (%)", verdict=verdict, looks=looks.ACE, width=COLUMN,
        mean=False,
        published={(model, "ace"): (one.value, CERTAINTY[one.sure])
                   for model, one in ACTIVE.items()},
    )  # fmt: skip
    return drawn, bars


def _alone(designs: list[Design], between: int) -> dict[Design, float]:
    """Returns the bandwidth of an all_reduce relative to the chosen design."""

    def rate(design: Design) -> float:
        sram, fsms = design
        return alone(ace(sram=Size.parse(sram), fsms=fsms), "4x4x4", between).rate

    rates = at_once(rate, designs)
    return {design: found / rates[CHOSEN] for design, found in rates.items()}


def _speeds(times: pl.DataFrame, trained: dict[Design, float]) -> dict[tuple[str, str, int], float]:
    """Returns the speed of an all_reduce by size and design, and of iterations by design."""
    rows = times.rows(named=True)
    found = {(size, row["sram"], row["fsms"]): 1 / row[size] for size in SIZES for row in rows}
    return found | {("workloads", *design): speed for design, speed in trained.items()}


def _trained() -> dict[Design, float]:
    """Returns the speed of iterations relative to the chosen design, averaged over the models."""

    def time(ask: tuple[str, Design]) -> int:
        model, (sram, fsms) = ask
        return step(model, LARGEST, ace(sram=Size.parse(sram), fsms=fsms)).total.ps

    times = at_once(time, product(SPEEDUPS, TRAINED))
    return {
        design: geometric_mean(times[model, CHOSEN] / times[model, design] for model in SPEEDUPS)
        for design in TRAINED
    }


def _gains(rates: dict[Design, float]) -> pl.DataFrame:
    """Returns the gain of each increment of scratchpad or FSMs."""
    rows = []
    for index, sram in enumerate(SCRATCHPADS[1:]):
        gain = rates[sram, 16] / rates[SCRATCHPADS[index], 16] - 1
        rows.append(
            {"step": f"{SCRATCHPADS[index]} to {sram}", "gain_percent": round(100 * gain, 1)}
        )
    for index, fsms in enumerate(FSMS[1:]):
        gain = rates["4 MiB", fsms] / rates["4 MiB", FSMS[index]] - 1
        rows.append({"step": f"{FSMS[index]} to {fsms} FSMs", "gain_percent": round(100 * gain, 1)})
    return pl.DataFrame(rows)


FIGURES = {9: Exhibit(title="scratchpad, FSMs and active time of ACE", make=_figure_9)}
