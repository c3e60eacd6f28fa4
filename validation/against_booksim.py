"""Compares flit networks with BookSim 2, from its configurations.

`booksim/NAME.cfg` is run at some of the loads of `booksim/NAME.csv`, by the mapping that `tutti noc
from-booksim` uses. BookSim's seeds are averaged. Near saturation, latencies depend on
the length of the measurement: those above the share in case.toml are shown, but not checked.
"""

from __future__ import annotations

import csv
import functools
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from prose import bullets, paragraph

from tutti.formats.booksim.network import load
from tutti.networks import flit as noc

if TYPE_CHECKING:
    from tutti.networks.flit.files.network_file import Noc

FOLDER = Path(__file__).parent / "booksim"
NAMES = sorted(path.stem for path in FOLDER.glob("*.csv"))
PERIOD = {"anynet_example": 10_000}
"""Cycles of a period of the runs at an offered 1.0; 2,000 of the others."""


@dataclass(frozen=True)
class Point:
    """A load, with BookSim's results (means over its seeds) and the run of tutti.

    Attributes:
        name: the configuration.
        stable: whether BookSim was stable, with every seed.
        latency: the mean latency of its packets, in cycles.
        accepted: flits per node and cycle.
        limit: the key of the latency's tolerance, if it is checked.
    """

    name: str
    offered: float
    stable: bool
    latency: float
    accepted: float
    limit: str | None
    run: noc.NocRun

    @property
    def off(self) -> float:
        """Returns how far tutti's latency is above (or, negative, below) BookSim's, in per cent."""
        return (self.run.latency.mean / self.latency - 1) * 100


@functools.cache
def about() -> dict[str, Any]:
    return tomllib.loads((FOLDER / "case.toml").read_text("utf-8"))


@functools.cache
def theirs(name: str) -> dict[float, tuple[bool, float, float]]:
    """Returns, by load, whether BookSim was stable, its latency and its accepted rate."""
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
    """Returns the lowest load, every other one, the last stable one and the first unstable one."""
    loads, last = list(theirs(name)), last_stable(name)
    first = min(offered for offered in loads if offered > last)
    return sorted({*(one for one in loads[::2] if one < last), last, first})


def ours(name: str) -> tuple[Noc, tuple[noc.Traffic, ...]]:
    """Returns the network of the configuration, and its traffic."""
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
        limit = "latency" if offered <= share * last_stable(name) else None
        limit = "zero_load" if offered == loads[0] else limit
        found.append(Point(name, offered, *theirs(name)[offered], limit, run))
    return found


@functools.cache
def at_one(name: str) -> tuple[float, float]:
    """Returns the rates that BookSim and tutti accept at an offered 1.0, in equal cycles."""
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        row = next(one for one in csv.DictReader(file) if one["experiment"] == f"{name}@saturation")
    given, traffic = ours(name)
    cycles = 3 * PERIOD.get(name, 2_000)
    plan = replace(given.plan, warmup=cycles, measure=cycles, drain=0, sample=0)
    (run,) = noc.sweep(given.network, traffic, [1.0], plan)
    return float(row["accepted_flit_rate_avg"]), run.accepted.mean


def section() -> str:
    """Returns the section of docs/validation.md."""
    given = about()
    limit = given["tolerance"]
    parts = [
        "## booksim",
        paragraph(given["summary"]),
        _facts(given),
        "Latencies are in cycles, rates in flits per node and cycle.",
    ]
    lines = ["| configuration | offered | BookSim | tutti | difference | tolerance |"]
    lines.append("|---|--:|--:|--:|--:|--:|")
    for name in NAMES:
        lines += [_row(point, limit) for point in points(name)]
        accepted, found = at_one(name)
        off = f"{(found / accepted - 1) * 100:+.2f} % | {limit['accepted']} %"
        lines.append(f"| {name} | accepted at 1.0 | {accepted:.4f} | {found:.4f} | {off} |")
    return "\n\n".join([*parts, "\n".join(lines)])


def _facts(given: dict[str, Any]) -> str:
    limit = given["tolerance"]
    tolerance = (
        f"Tolerance: latency within {limit['zero_load']} % at the lowest load, within "
        f"{limit['latency']} % at loads up to {limit['share']:.0%} of the last stable load. "
        "Nearer to saturation, latency depends on the length of the measurement and is shown "
        "only. The last stable load, and the rate accepted at an offered 1.0, are within "
        f"{limit['accepted']} %."
    )
    case = "validation/booksim/case.toml"
    source = f"Source: {given['source']}, run on {given['date']}; see `{case}`."
    model = "Model: [flit](models/flit.md), each configuration by `tutti noc from-booksim`."
    return bullets([source, model, tolerance])


def _row(point: Point, limit: dict[str, float]) -> str:
    latency = f"{point.latency:.2f}" if point.stable else "unstable"
    ours = f"{point.run.latency.mean:.2f}" if point.run.is_stable else point.run.ending
    off = f"{point.off:+.2f} %" if point.stable and point.run.is_stable else ""
    tolerance = f"{limit[point.limit]} %" if point.limit else ""
    return f"| {point.name} | {point.offered:g} | {latency} | {ours} | {off} | {tolerance} |"
