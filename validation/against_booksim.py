"""Networks flit by flit against BookSim 2: its configurations as they are.

`booksim/NAME.cfg` is run at some of the loads of `booksim/NAME.csv`, by the mapping that `tutti noc
from-booksim` uses. BookSim's seeds are averaged. Near saturation latencies depend on how long one
measures: those above the share in case.toml are shown, and not held.
"""

from __future__ import annotations

import csv
import functools
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from tutti import noc
from tutti.config.booksim import load

if TYPE_CHECKING:
    from tutti.config import Noc

FOLDER = Path(__file__).parent / "booksim"
NAMES = sorted(path.stem for path in FOLDER.glob("*.csv"))
PERIOD = {"anynet_example": 10_000}
"""Cycles of a period of the runs at an offered 1.0; 2,000 of the others."""


@dataclass(frozen=True)
class Point:
    """A load, with what BookSim says (means over its seeds) and our run.

    Attributes:
        name: the configuration.
        stable: whether BookSim was stable, with every seed.
        latency: of its packets, in cycles.
        accepted: flits per node and cycle.
        held: what the tolerance of the latency is called, if it has one.
    """

    name: str
    offered: float
    stable: bool
    latency: float
    accepted: float
    held: str | None
    run: noc.NocRun

    @property
    def off(self) -> float:
        """How far our latency is above (or, negative, below) BookSim's, in per cent."""
        return (self.run.latency.mean / self.latency - 1) * 100


@functools.cache
def about() -> dict[str, Any]:
    return tomllib.loads((FOLDER / "case.toml").read_text("utf-8"))


@functools.cache
def theirs(name: str) -> dict[float, tuple[bool, float, float]]:
    """By load: whether BookSim was stable, its latency, and what was accepted."""
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["experiment"] == name]
    found: dict[float, list[dict[str, str]]] = {}
    for row in rows:
        found.setdefault(float(row["offered_flits_per_node_cycle"]), []).append(row)

    def mean(rows: list[dict[str, str]], column: str) -> float:
        return fmean(float(row[column]) for row in rows)

    return {
        offered: (
            all(row["stable"] == "1" for row in rows),
            mean(rows, "pkt_latency_avg"),
            mean(rows, "accepted_flit_rate_avg"),
        )
        for offered, rows in sorted(found.items())
    }


def last_stable(name: str) -> float:
    return max(offered for offered, (stable, _, _) in theirs(name).items() if stable)


def chosen(name: str) -> list[float]:
    """The least load, every other one, the last that is stable, and the first that is not."""
    loads, last = list(theirs(name)), last_stable(name)
    first = min(offered for offered in loads if offered > last)
    return sorted({*(one for one in loads[::2] if one < last), last, first})


def ours(name: str) -> tuple[Noc, tuple[noc.Traffic, ...]]:
    """What the configuration is here, and the traffic in it."""
    given = load(FOLDER / f"{name}.cfg").noc
    assert isinstance(given.traffic, tuple)
    return given, given.traffic


@functools.cache
def points(name: str) -> list[Point]:
    given, traffic = ours(name)
    loads, share = chosen(name), about()["tolerance"]["share"]
    found = []
    for offered, run in zip(
        loads, noc.sweep(given.network, traffic, loads, given.plan), strict=True
    ):
        held = "latency" if offered <= share * last_stable(name) else None
        held = "zero_load" if offered == loads[0] else held
        found.append(Point(name, offered, *theirs(name)[offered], held, run))
    return found


@functools.cache
def at_one(name: str) -> tuple[float, float]:
    """What BookSim accepts at an offered 1.0, and what ours does in as many cycles."""
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        row = next(one for one in csv.DictReader(file) if one["experiment"] == f"{name}@saturation")
    given, traffic = ours(name)
    cycles = 3 * PERIOD.get(name, 2_000)
    plan = replace(given.plan, warmup=cycles, measure=cycles, drain=0, sample=0)
    (run,) = noc.sweep(given.network, traffic, [1.0], plan)
    return float(row["accepted_flit_rate_avg"]), run.accepted.mean


def section() -> str:
    """Its part of docs/validation.md."""
    given = about()
    limit = given["tolerance"]
    parts = [
        "## booksim",
        given["summary"],
        _facts(given),
        "Latencies in cycles, rates in flits per node and cycle.",
    ]
    lines = ["| configuration | offered | BookSim | ours | difference | held to |"]
    lines.append("|---|--:|--:|--:|--:|--:|")
    for name in NAMES:
        lines += [_row(point, limit) for point in points(name)]
        accepted, found = at_one(name)
        off = f"{(found / accepted - 1) * 100:+.2f} % | {limit['accepted']} %"
        lines.append(f"| {name} | accepted at 1.0 | {accepted:.4f} | {found:.4f} | {off} |")
    return "\n\n".join([*parts, "\n".join(lines)])


def _facts(given: dict[str, Any]) -> str:
    limit = given["tolerance"]
    return (
        f"- Source: {given['source']}, run on {given['date']}; see `validation/booksim/case.toml`."
        "\n- Model: [flit](models/flit.md), each configuration as `tutti noc from-booksim` has it."
        f"\n- Tolerance: latency at the least load within {limit['zero_load']} %, at loads up to "
        f"{limit['share']:.0%} of the last stable one within {limit['latency']} %; nearer to "
        "saturation it depends on how long one measures, and is shown only. Last stable load and "
        f"what is accepted at an offered 1.0 within {limit['accepted']} %."
    )


def _row(point: Point, limit: dict[str, float]) -> str:
    latency = f"{point.latency:.2f}" if point.stable else "unstable"
    ours = f"{point.run.latency.mean:.2f}" if point.run.is_stable else point.run.ending
    off = f"{point.off:+.2f} %" if point.stable and point.run.is_stable else ""
    held = f"{limit[point.held]} %" if point.held else ""
    return f"| {point.name} | {point.offered:g} | {latency} | {ours} | {off} | {held} |"
