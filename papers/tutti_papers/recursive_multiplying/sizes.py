"""Message sizes on 8 and on 64 ranks: Figs 10 and 11.

The paper states neither rates nor the time of a reduction. Each combination of a network and a
reduction is a reading. The exhibits use the last one, the machine of `fitting` with shared links:
section 5.4 suspects that stages of several messages use more links of the network at once. Vectors
of up to 4 KiB fit into the L1 cache (32 KiB), so a core adds an element per cycle.
"""

from __future__ import annotations

import functools
import math
from itertools import product
from typing import TYPE_CHECKING

import polars as pl

import tutti
from tutti.base.progress import watched
from tutti.base.units import TimePerByte
from tutti.platforms import platform
from tutti.platforms.conditions import Conditions
from tutti_papers import Exhibit, ExhibitResult
from tutti_papers.claims import verdict_line
from tutti_papers.exhibits import Anchor, plot_curves
from tutti_papers.recursive_multiplying.archer import RATE
from tutti_papers.recursive_multiplying.conclusions import (
    elements_of,
    fastest,
    of_64_ranks,
    of_eight_ranks,
)
from tutti_papers.recursive_multiplying.fitting import FITTED
from tutti_papers.recursive_multiplying.published import (
    ALLOCATIONS,
    BLOCK,
    DATATYPE,
    PICTURE,
    compared,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tutti.platforms.machine import Platform

ELEMENTS = (1, 2, 4, 8, 16, 24, 32, 64, 128, 256, 512)
"""Counts of 8-byte elements: 1 to 512, and 24, which the text names (section 5.4)."""
FINE = (1, *range(4, 513, 4))
"""Counts at which the onset of the bandwidth limit is determined."""
SUBSET_64 = ("a2,a2,a2,a2,a2,a2", "a4,a4,a4", "a8,a8", "a16,a4", "a2,a4,a8")
"""tutti's subset; the paper's is in the legend of Fig. 11, which was not read."""
SCHEDULES = {8: ("a2,a2,a2", "a2,a4", "a4,a2", "a8"), 64: SUBSET_64}
DOUBLING = {ranks: schedules[0] for ranks, schedules in SCHEDULES.items()}
BLOCKS = 5
"""Blocks per allocation."""

GAMMAS = {"memory": "0.345 ns/B", "cache": "0.046 ns/B"}
"""Time of a reduction per byte: three accesses to memory, as in the platform `cray_xc30`; or an
element of 8 bytes per cycle of 2.7 GHz (E5-2697 v2)."""
NETWORKS = ("Table 1", "Table 1, links", "fit, links")
"""Endpoints of Table 1 without a topology, on the links of the machine, and those of the fit."""
DEFAULT = ("fit, links", "cache")
DEFINITIONS = (0.02, 0.05, 0.10, 0.50)
"""Relative additional time that defines the onset of the bandwidth limit."""
DEFINITION = 0.05
RATES = ("5 GB/s", "10 GB/s", "15.75 GB/s")
"""Rates of a node: a link between routers, the platform's assumption, 16 lanes of PCI Express 3."""

Times = dict[tuple[str, int], float]


def machine(network: str, reduction: str, rate: str = RATE) -> Platform:
    """Returns the platform of a reading."""
    gamma = GAMMAS[reduction]
    if network == "fit, links":
        return FITTED.platform_of_sizes(gamma, rate)
    preset = platform("cray_xc30" if network == "Table 1" else "cray_xc30_dragonfly")
    values = {"gamma": TimePerByte.parse(gamma), "beta": TimePerByte.parse(rate)}
    return preset.model_copy(update={"model": preset.model.model_copy(update=values)})


@functools.cache
def quiet(
    network: str, reduction: str, ranks: int, counts: tuple[int, ...] = ELEMENTS, rate: str = RATE
) -> Times:
    """Returns times without detours in us, by schedule and elements."""
    frame = _compared(machine(network, reduction, rate), ranks, counts)
    return {(name, e): time / 1e6 for name, e, time in frame.iter_rows()}


def _compared(
    on: Platform, ranks: int, counts: tuple[int, ...], allocation: int | None = None
) -> pl.DataFrame:
    """Returns schedule, elements and time_ps of an all_reduce, in blocks with detours."""
    quiet = Conditions(wait_for_sends=True)
    each = 1 if allocation is None else BLOCK
    schedules = [
        tutti.schedule(f"recursive_multiplying:{name}", ranks=ranks).repeated(each)
        for name in SCHEDULES[ranks]
    ]
    names = dict(zip([one.name for one in schedules], SCHEDULES[ranks], strict=True))
    found = tutti.compare(
        on,
        collective="all_reduce",
        ranks=[ranks],
        sizes=[f"{8 * count} B" for count in counts],
        algorithms=schedules,
        datatype=DATATYPE,
        conditions=quiet if allocation is None else FITTED.conditions(allocation),
        repetitions=1 if allocation is None else BLOCKS,
        seed=1000 * (allocation or 0),
    )
    return found.select(
        pl.col("schedule").replace_strict(names),
        elements=pl.col("size_bytes") // 8,
        time_ps=pl.col("time_ps") // each,
    )


@functools.cache
def disturbed(ranks: int) -> Times:
    """Returns medians over blocks with detours in us, by schedule and elements."""
    frames = [
        _compared(machine(*DEFAULT), ranks, ELEMENTS, allocation)
        for allocation in watched("allocations", range(ALLOCATIONS))
    ]
    found = (
        pl.concat(frames)
        .group_by("schedule", "elements", maintain_order=True)
        .agg(median=pl.col("time_ps").quantile(0.5, "lower"))
    )
    return {(name, e): time / 1e6 for name, e, time in found.iter_rows()}


def onset(times: Times, schedule: str, definition: float = DEFINITION) -> float:
    """Returns the smallest count that takes longer than the first one by a fraction, or NaN."""
    first = times[schedule, min(elements_of(times))]
    slow = [e for e in elements_of(times) if times[schedule, e] > (1 + definition) * first]
    return float(slow[0]) if slow else math.nan


def _figure_10(folder: Path) -> ExhibitResult:
    """Returns times on 8 ranks: without detours, and medians with them."""
    minima, medians = quiet(*DEFAULT, 8), disturbed(8)
    lines = {
        **{f"{name}, minimum": _line(minima, name) for name in SCHEDULES[8]},
        **{f"{name}, median": _line(medians, name) for name in SCHEDULES[8]},
    }
    conclusions = of_eight_ranks(minima, medians)
    quantity = f"N = 8: elements where {DOUBLING[8]} is bandwidth-bound"
    ours = onset(quiet(*DEFAULT, 8, FINE), DOUBLING[8])
    claims = compared([(quantity, (24.0, 32.0), "section 5.4", ours)])
    drawn = plot_curves(
        folder / "figure_10.svg", lines, x="elements of 8 bytes", y="time (us)",
        verdict=verdict_line(claims, conclusions), doubling=True,
        anchors=[Anchor((24, 32), None, "text", DOUBLING[8])],
    )  # fmt: skip
    return ExhibitResult(
        frame=_frame(lines),
        published=claims,
        conclusions=conclusions,
        source=f"Fig. 10 and section 5.4; {PICTURE}",
        figures=(drawn,),
        tables={"readings": _readings(8), "onset": _onsets()},
        notes=(
            f"""The onset is the smallest count that takes {100 * DEFINITION:.0f} % longer than \
one element at {RATE}. It depends on both: see the table `onset`. The paper states neither. A put \
of more than 64 bytes consists of several packets, which the model does not have.""",
        ),
    )


def _figure_11(folder: Path) -> ExhibitResult:
    """Returns times on 64 ranks without detours."""
    times = quiet(*DEFAULT, 64)
    lines = {name: _line(times, name) for name in SCHEDULES[64]}
    conclusions = of_64_ranks(times)
    drawn = plot_curves(
        folder / "figure_11.svg", lines, x="elements of 8 bytes", y="time (us)",
        verdict=verdict_line((), conclusions), doubling=True,
    )  # fmt: skip
    return ExhibitResult(
        frame=_frame(lines),
        conclusions=conclusions,
        source=f"Fig. 11 and section 5.4; {PICTURE}",
        figures=(drawn,),
        tables={"readings": _readings(64)},
    )


def _line(times: Times, schedule: str) -> tuple[list[int], list[float]]:
    return list(ELEMENTS), [times[schedule, elements] for elements in ELEMENTS]


def _frame(lines: Mapping[str, tuple[list[int], list[float]]]) -> pl.DataFrame:
    return pl.DataFrame(
        {"elements": ELEMENTS} | {f"{name}, us": ys for name, (_, ys) in lines.items()}
    )


def _readings(ranks: int) -> pl.DataFrame:
    """Returns a row per reading, without detours: fastest schedules, gains, and onset."""
    rows = []
    for network, reduction in product(NETWORKS, GAMMAS):
        times = quiet(network, reduction, ranks)
        last = fastest(times, ELEMENTS[-1])
        row: dict[str, object] = {
            "network": network,
            "reduction": reduction,
            "fastest at 1": fastest(times, 1),
            "fastest at 512": last,
            "gain at 512, %": 100 * (1 - times[last, 512] / times[DOUBLING[ranks], 512]),
        }
        if ranks == 8:
            best = [fastest(times, e) == "a2,a4" for e in ELEMENTS]
            row["a2,a4 best"] = f"{sum(best)} of {len(best)}"
            row["onset"] = onset(quiet(network, reduction, ranks, FINE), DOUBLING[ranks])
        rows.append(row)
    return pl.DataFrame(rows)


def _onsets() -> pl.DataFrame:
    """Returns the onset on 8 ranks by rate of a node, time of reductions, and definition."""
    return pl.DataFrame(
        [
            {"rate": rate, "reduction": reduction}
            | {
                f"{100 * definition:.0f} %": onset(
                    quiet(DEFAULT[0], reduction, 8, FINE, rate), DOUBLING[8], definition
                )
                for definition in DEFINITIONS
            }
            for rate, reduction in product(RATES, GAMMAS)
        ]
    )


FIGURES: dict[int, Exhibit] = {
    10: Exhibit(
        title="message sizes on 8 ranks, all factored schedules",
        make=_figure_10,
    ),
    11: Exhibit(
        title="message sizes on 64 ranks, some schedules",
        make=_figure_11,
    ),
}
