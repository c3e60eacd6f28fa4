"""The quantities of flit-level runs: each is declared once, for all renderings."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tutti.base.files.typed import every_of
from tutti.networks.errors import NocError
from tutti.networks.flit.network import class_names, every
from tutti.networks.flit.results import QUANTILES, NocRun
from tutti.networks.flit.settings import Trace
from tutti.view.quantity import (
    count,
    counted,
    estimate,
    format_share,
    format_time,
    mean,
    number,
    plural,
    three,
)
from tutti.view.tables import Column, ReportTable, frame_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl

    from tutti.networks.flit.capacity import Capacity
    from tutti.networks.flit.results import Estimate, FlitMeasurement, RoundTrips

RATE = "flits per node and cycle"
CAPTION = (
    f"load, accepted: {RATE}; latencies: cycles; hops: routers on the route; ±: 95 % CI half-width"
)
_OF_CLASSES = {
    "offered", "accepted", "latency", "latency_99", "hops", "round_trip",
}  # fmt: skip
"""Quantities of the table of classes in the terminal."""
_OF_LOOPS = {"round_trip", "round_trip_99", "makespan"}


class Part(NamedTuple):
    """A run, or one traffic class of it.

    Attributes:
        run: The run.
        name: The number of the class, or `all`.
        measured: Its measured values.
    """

    run: NocRun
    name: str
    measured: FlitMeasurement

    @classmethod
    def complete(cls, run: NocRun) -> Part:
        """Returns all classes of a run together."""
        return cls(run, "all", run.all)

    @classmethod
    def every(cls, run: NocRun) -> list[Part]:
        """Returns all classes of a run together, and each if there are several."""
        classes = run.classes if len(run.classes) > 1 else ()
        names = class_names(run.traffic)
        each = (cls(run, name, measured) for name, measured in zip(names, classes, strict=False))
        return [cls.complete(run), *each]


def rate_text(text: str) -> str:
    """Returns a formatted rate with its unit."""
    return f"{counted(text, 'flit')} per node and cycle"


def frame(runs: Iterable[NocRun]) -> pl.DataFrame:
    """Returns a row per run, by ascending load; times in cycles, rates in flits per node and cycle.

    Latencies are null if the network is not stable, since they then depend on the length of the
    run. If it deadlocked, all measured values are null.
    """
    runs = every_of("frame", NocError, "runs", runs, NocRun)
    ordered = sorted(runs, key=lambda run: run.load or 0.0)
    return frame_of(QUANTITIES, map(Part.complete, ordered))


def with_class(columns: Sequence[Column[Part]], parts: Sequence[Part]) -> list[Column[Part]]:
    """Returns the columns of parts of runs, with the class if a run has several.

    Columns of closed loops and batches are left out if no part has a value.
    """
    several = any(part.name != "all" for part in parts)
    shown = [
        column for column in columns
        if column.key not in _OF_LOOPS or any(column.value(part) is not None for part in parts)
    ]  # fmt: skip
    return [*([CLASS] if several else []), *shown]


def capacity_text(found: Capacity, load: float | None = None) -> str:
    """Returns the ideal capacity, its bottleneck, and the share of it that a load is."""
    share = (
        "" if load is None else f"; {number(load, 4)} is {format_share(load / found.load)} of it"
    )
    capacity = rate_text(number(found.load, 4))
    return f"{capacity}, bounded by the channel load of {found.bottleneck}{share}"


def requested(run: NocRun) -> float | None:
    """Returns the offered load without replies; in a closed loop or a batch, the measured one."""
    supply = run.traffic
    if run.load is None or isinstance(supply, Trace):
        return None
    if not any(load.outstanding or load.requests for load in every(supply)):
        return run.load
    names = class_names(supply)
    return sum(measured.offered for name, measured in zip(names, run.classes, strict=True)
               if not name.endswith("replies"))  # fmt: skip


def by_class(parts: Sequence[Part]) -> ReportTable[Part]:
    """Returns a table of one run for the terminal, with a row per class."""
    columns = [column for column in QUANTITIES if column.key in _OF_CLASSES]
    return ReportTable(with_class(columns, parts), parts, caption=CAPTION)


def cycles(value: Estimate, cycle_ps: int) -> str:
    """Returns a mean in cycles, and converted to a time."""
    if math.isnan(value.mean):
        return "no packet arrived"
    return f"{counted(estimate(value), 'cycle')} ({format_time(value.mean * cycle_ps)})"


def state(run: NocRun) -> str:
    """Returns the state in which a run ended, with the offered load and accepted throughput."""
    if run.ending == "deadlocked":
        return (
            "deadlocked: packets were in flight, but no flit moved after cycle "
            f"{max(run.cycles - run.plan.patience, 0):,}"
        )
    if run.ending == "empty":
        return "empty: no packet was created in the measurement window, so nothing was measured"
    if run.ending == "undecided":
        return (
            f"undecided: {run.too_short}; offered load {number(run.offered)}, accepted throughput "
            f"{estimate(run.accepted)} {RATE}"
        )
    undefined = "; queues grow without bound, so latency is undefined"
    if run.has_end and not run.plan.warmup:
        undefined = (
            f"; packets had not arrived after {plural(run.cycles, 'cycle')}, which are `measure` "
            "and `drain` together, so latency is undefined"
        )
    return (
        f"{run.ending}: offered load {number(run.offered)}, accepted throughput "
        f"{rate_text(estimate(run.accepted))}{'' if run.is_stable else undefined}"
    )


def _moved(part: Part) -> bool:
    return part.run.ending != "deadlocked"


def _stable(part: Part) -> bool:
    return part.run.is_stable


def _answered(part: Part) -> bool:
    return part.run.is_stable and part.measured.round_trips is not None


def _trips(part: Part) -> RoundTrips:
    """Returns the round trips of requests that have replies."""
    assert part.measured.round_trips is not None  # noqa: S101 - `when` of the columns
    return part.measured.round_trips


def _round_trip(part: Part) -> str:
    """Returns the time from a request to its reply."""
    trips = _trips(part)
    return f"{_cycles(part, trips.latency)}, p99 {plural(trips.quantiles['99'], 'cycle')}"


def _quantile(name: str, part: Part) -> int:
    return part.measured.quantiles[name]


def _cycles(part: Part, value: Estimate) -> str:
    return cycles(value, part.run.network.cycle_ps)


def _per_node(part: Part) -> tuple[str, str]:
    least, most = part.measured.accepted_extremes
    upper = counted(number(most, 3), "flit")
    return "accepted per node", f"{number(least, 3)} to {upper} per cycle"


def _percentiles(part: Part) -> tuple[str, str]:
    values = [f"p{name} {value:,}" for name, value in part.measured.quantiles.items()]
    most = part.measured.latency_extremes[1]
    return "percentiles", f"{', '.join(values)}, maximum {plural(most, 'cycle')}"


CLASS: Column[Part] = Column("traffic class", lambda part: part.name, key="traffic_class",
                             short="class", fact=False)  # fmt: skip
"""The class of a row; files and `--json` have it if a run has several classes."""

QUANTITIES: tuple[Column[Part], ...] = (
    Column("topology", lambda part: part.run.network.topology.name, key="topology", scope="file"),
    Column("routing", lambda part: part.run.network.routing, key="routing", scope="file"),
    Column("offered load", lambda part: part.run.load, number, key="load", scope="runs",
           short="load", exported=RATE),
    Column("state", lambda part: part.run.ending, key="ending", scope="runs",
           fact=lambda part: ("state", state(part.run))),
    Column("offered load", lambda part: part.measured.offered, number, key="offered", scope="run",
           when=_moved, fact=False, short="offered", exported=RATE),
    Column("accepted throughput", lambda part: part.measured.accepted, estimate, key="accepted",
           when=_moved, fact=False, short="accepted", exported=RATE),
    Column("lowest throughput of a node", lambda part: part.measured.accepted_extremes[0], three,
           key="accepted_least", scope="run", when=_moved, fact=_per_node, exported=RATE),
    Column("highest throughput of a node", lambda part: part.measured.accepted_extremes[1], three,
           key="accepted_most", scope="run", when=_moved, fact=False, exported=RATE),
    Column("mean latency", lambda part: part.measured.latency, estimate, key="latency",
           when=_stable, short="latency", exported="cycles",
           fact=lambda part: ("mean latency", _cycles(part, part.measured.latency))),
    Column("minimum latency", lambda part: part.measured.latency_extremes[0], count,
           key="latency_least", scope="run", when=_stable, fact=False, exported="cycles"),
    *(Column(f"p{name} latency", partial(_quantile, name), count, key=f"latency_{name}",
             scope="" if name in {"50", "99"} else "run", when=_stable, short=f"p{name}",
             spare=name == "50",
             fact=_percentiles if name == "50" else False, exported="cycles")
      for name in QUANTILES),
    Column("maximum latency", lambda part: part.measured.latency_extremes[1], count,
           key="latency_most", scope="run", when=_stable, fact=False, exported="cycles"),
    Column("network latency", lambda part: part.measured.network_latency, estimate,
           key="network_latency", when=_stable, terminal=mean, spare=True, exported="cycles",
           fact=lambda part: ("network latency", _cycles(part, part.measured.network_latency))),
    Column("hops", lambda part: part.measured.hops, mean, key="hops", when=_stable, terminal=three,
           fact=lambda part: ("hops",
                              f"{counted(estimate(part.measured.hops), 'router')} on the route")),
    Column("round trip", lambda part: _trips(part).latency, estimate,
           key="round_trip", when=_answered, exported="cycles",
           fact=lambda part: ("round trip", _round_trip(part))),
    Column("p99 round trip", lambda part: _trips(part).quantiles["99"], count,
           key="round_trip_99", scope="file", when=_answered, exported="cycles"),
    Column("makespan", lambda part: part.run.makespan, count, key="makespan", scope="run",
           when=lambda part: part.name == "all", exported="cycles"),
    Column("packets", lambda part: part.measured.packets, count, key="packets", when=_moved,
           terminal=False),
    Column("cycles", lambda part: part.run.cycles, count, key="cycles", scope="file"),
    Column("cycles of a long enough window", lambda part: part.run.long_enough, count,
           key="long_enough", scope="file", when=lambda part: part.run.ending == "undecided",
           exported="cycles"),
    Column("seed", lambda part: part.run.network.seed, count, key="seed", scope="file"),
)  # fmt: skip
"""The quantities of a run or a traffic class; times in cycles.

A quantity added here appears in the terminal, in `--json`, in reports, in notebooks and in files.
"""
