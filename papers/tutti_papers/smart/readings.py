"""Table 4: how many published values each reading reproduces. Table 5: gain by work per miss."""

from __future__ import annotations

from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING, Any

import polars as pl

from tutti.base.progress import at_once, watched
from tutti_papers import Exhibit, ExhibitResult
from tutti_papers.claims import Reading as Joint
from tutti_papers.smart import full_system, system, tables
from tutti_papers.smart.kernels import PROTOCOLS, READINGS, Reading, System, is_saturated, rate
from tutti_papers.smart.published import score
from tutti_papers.smart.system import BASELINE, DEFAULT, GREEDY, IN_BYPASS, IN_COMPLETE, REDUCTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tutti_papers.smart.published import Row

WORK = (0, 400)
"""Cycles of work after each miss, in addition to that of the kernels."""


def _line(part: str, reading: str, why: str, rows: Sequence[Row]) -> dict[str, Any]:
    agreeing, values = score(rows)
    missed = [row.quantity for row in rows if not row.variant and row.claim().verdict != "agrees"]
    return {
        "part": part,
        "reading": reading,
        "agree": agreeing,
        "of": values,
        "differ": "; ".join(missed),
        "why": why,
    }


def joint_readings() -> pl.DataFrame:
    """Returns the distinct published values that each reading reproduces, by part of the paper."""
    broadcasts = [*tables.corners(), *tables.all_nodes(), *tables.some(), *tables.abstract()[::2]]
    delays = f"credit delays {system.CREDIT_DELAY} and {system.FAN_OUT_CREDIT_DELAY}"
    lines = [_line("broadcasts", delays, "on-off signals (section III-B.2)", broadcasts)]
    others = [one for one in REDUCTIONS if one != DEFAULT]
    at_once(lambda pair: system.reductions(*pair), product(system.STATED, others), "readings")
    for reading in REDUCTIONS:
        rows = [*tables.to_one(reading), *tables.abstract(reading)[1::2]]
        lines.append(_line("reductions", reading, REDUCTIONS[reading].why, rows))
    names: tuple[Reading, ...] = tuple(READINGS)
    for name in names:
        rows = full_system.rows(name, variants=False)
        lines.append(_line("full system", name, READINGS[name], rows))
    return pl.DataFrame(lines)


def totals(frame: pl.DataFrame) -> tuple[int, int, int]:
    """Returns the values that the default readings and the best ones reproduce, and all values."""
    default = frame.filter(
        (pl.col("part") == "broadcasts") | pl.col("reading").is_in([DEFAULT, next(iter(READINGS))])
    )
    best = frame.group_by("part").agg(pl.col("agree").max())
    first, most, values = (
        int(part.sum()) for part in (default["agree"], best["agree"], default["of"])
    )
    return first, most, values


def _table_4(_: Path) -> ExhibitResult:
    frame = joint_readings()
    default, best, values = totals(frame)
    chosen = f"reductions {DEFAULT}, full system {next(iter(READINGS))}: the default"
    return ExhibitResult(
        frame=frame,
        readings=(
            Joint(name="default", meaning=chosen, met=default, values=values),
            Joint(name="best", meaning="the most of each part", met=best, values=values),
        ),
        source="sections I and V and the abstract",
        notes=(
            f"default readings: {default} of {values} distinct published values agree",
            f"best joint reading: {best} of {values}",
        ),
    )


def by_work() -> pl.DataFrame:
    """Returns the runtime saved by cycles of work per miss, mean over all kernels."""
    lines = []
    for work in watched("work per miss", WORK):
        tokens, home = (System(one, work_per_miss=work) for one in PROTOCOLS)
        of_tokens, of_home = tokens.each(BASELINE), home.each(BASELINE)
        lines.append(
            {
                "work_per_miss": work,
                "mpki": fmean(run.mpki for run in of_home),
                "ht_saturated": sum(map(is_saturated, of_home)),
                "ht_broadcasts_per_cycle": fmean(map(rate, of_home)),
                "ht_by_network": fmean(run.network_stall for run in of_home),
                "ht_SFI_Greedy_saved_%": home.saved(IN_BYPASS, BASELINE),
                "ht_SFI_Complete_saved_%": home.saved(IN_COMPLETE, BASELINE),
                "ht_left_by_full_connection_%": home.behind(IN_COMPLETE),
                "tc_saturated": sum(map(is_saturated, of_tokens)),
                "tc_broadcasts_per_cycle": fmean(map(rate, of_tokens)),
                "tc_by_network": fmean(run.network_stall for run in of_tokens),
                "tc_SFO_Greedy_saved_%": tokens.saved(GREEDY, BASELINE),
            }
        )
    return pl.DataFrame(lines)


def _table_5(_: Path) -> ExhibitResult:
    return ExhibitResult(
        frame=by_work(),
        source="section V-C: 16 % under TC, 11 and 14 % under HT, means over SPLASH-2 and PARSEC",
        notes=(
            "means over all nine kernels, with `work_per_miss` cycles of work after each miss",
            "saturated: kernels whose broadcasts or ACKs take three times their zero-load latency",
        ),
    )


TABLES = {
    4: Exhibit(title="published values by reading", make=_table_4),
    5: Exhibit(title="runtime saved by work per miss", make=_table_5),
}
"""The tables of this module, by number."""
