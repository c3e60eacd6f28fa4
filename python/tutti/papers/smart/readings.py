"""Tables 2 and 3: what the buffers were chosen by, and what the results depend on."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Any

import polars as pl

from tutti.noc import smart
from tutti.papers import Exhibit, ExhibitResult, watched
from tutti.papers.smart import system
from tutti.papers.smart.system import (
    ALL,
    BASELINE,
    FEW,
    GREEDY,
    IN_BYPASS,
    IN_COMPLETE,
    PRIVATE,
    TO_ONE,
    TRAFFIC,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.noc.smart import Saturation

PUBLISHED = {ALL: 0.58, TO_ONE: 0.44}
"""Where the baseline saturates: the part of the ideal broadcast throughput, 0.70 / 1.22 and 0.90 /
1.55 (V-A); reductions per cycle (V-B)."""

BUFFERS = tuple((vcs, delay) for vcs in (3, 4, 5, 6) for delay in range(2 * vcs - 6, 2 * vcs - 2))
"""What is tried: single-flit VCs, and the credit delays at which so many carry about as much."""


def _search(experiment: str, name: str, **changed: Any) -> Saturation:  # noqa: ANN401 - settings
    return smart.saturation(
        system.mesh(name, **changed), TRAFFIC[experiment], FEW, tolerance=0.02,
        most=min(1.05 * system.ideal_load(experiment), 1.0 if experiment == TO_ONE else 0.1),
    )  # fmt: skip


def calibration() -> pl.DataFrame:
    """The baseline under broadcasts and reductions, with several numbers of VCs and delays."""
    rows = []
    for vcs, delay in watched("buffers", BUFFERS):
        row: dict[str, Any] = {"vcs": vcs, "credit_delay": delay}
        off = []
        for experiment, published in PUBLISHED.items():
            top = system.ideal_load(ALL) if experiment == ALL else 1.0
            found = _search(experiment, BASELINE, vcs=vcs, credit_delay=delay)
            parts = (found.by_latency / top, found.by_throughput / top)
            row[f"{experiment}: by_latency"] = round(parts[0], 3)
            row[f"{experiment}: by_throughput"] = round(parts[1], 3)
            off.append(abs(fmean(parts) / published - 1))
        rows.append({**row, "off": round(max(off), 3)})
    return pl.DataFrame(rows).sort("off", "vcs", "credit_delay")


def _table_2(_: Path) -> ExhibitResult:
    return ExhibitResult(
        frame=calibration(),
        source="section V-A: greedy over SVT is 1.22 times the baseline and 30 % off the ideal, "
        "over PVT 1.55 times and 10 % off: both say 0.58; section V-B: the baseline saturates at "
        "0.44 reductions per cycle",
        notes=(
            (
                f"chosen: {system.VCS} VCs and a credit delay of {system.CREDIT_DELAY} cycles: of "
                "both numbers, the one that the mean of both criteria misses by more is missed by "
                "the least; held in every other exhibit"
            ),
        ),
    )


@dataclass(frozen=True)
class Reading:
    """One thing read otherwise."""

    name: str
    changed: dict[str, Any] = field(default_factory=dict)
    baseline: bool = True
    """Whether the baseline is changed too."""


READINGS = (
    Reading("as it stands"),
    Reading("5 VCs, credit delay 6", {"vcs": 5, "credit_delay": 6}),
    Reading("4 VCs, credit delay 4", {"vcs": 4, "credit_delay": 4}),
    Reading("4 VCs, credit delay 2", {"vcs": 4, "credit_delay": 2}),
    Reading("12 VCs", {"vcs": 12}),
    Reading("credit delay 0", {"credit_delay": 0}),
    Reading("18 VCs in all, shared out to stages", {"vcs": 18, "split_vcs": True}, baseline=False),
    Reading("6 VCs in all, shared out to stages", {"split_vcs": True}),
    Reading("the other priority", {"priority": "?"}, baseline=False),
    Reading("a cycle more to set a path up", {"sag_extra_cycle": 1}, baseline=False),
    Reading("a cycle to eject", {"eject_cost": 1}),
    Reading("4 hops per cycle", {"hpc_max": 4}, baseline=False),
)
"""What the paper leaves open, one after the other."""


def sensitivity() -> pl.DataFrame:
    """Latency at low load and throughput in every reading."""
    rows = []
    for reading in watched("readings", READINGS):
        row: dict[str, Any] = {"reading": reading.name}
        shown = ((ALL, (BASELINE, GREEDY, PRIVATE)), (TO_ONE, (BASELINE, IN_BYPASS, IN_COMPLETE)))
        for experiment, names in shown:
            for name in names:
                changed = {} if name == BASELINE and not reading.baseline else dict(reading.changed)
                if changed.get("priority"):
                    usual = system.mesh(name).settings["priority"]
                    changed["priority"] = "local" if usual == "bypass" else "bypass"
                found = _search(experiment, name, **changed)
                scale = 1.0 if experiment == TO_ONE else 64.0
                row[f"{experiment}, {name}: latency"] = round(found.zero_load.mean, 2)
                row[f"{experiment}, {name}: throughput"] = round(scale * found.by_throughput, 3)
        rows.append(row)
    return pl.DataFrame(rows)


def _table_3(_: Path) -> ExhibitResult:
    return ExhibitResult(
        frame=sensitivity(),
        source="no published values: what the paper does not give",
        notes=(
            (
                "latency at next to no load, in cycles; throughput in messages per cycle of the "
                "whole mesh where 97 % is accepted, searched up to 1.05 of the ideal (63-to-1: 1.0)"
            ),
        ),
    )


TABLES = {
    2: Exhibit(title="how the buffers were chosen", make=_table_2),
    3: Exhibit(title="what the results depend on", make=_table_3),
}
"""The tables of this module, by number."""
