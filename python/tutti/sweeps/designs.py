"""Sweeps of networks of routers: a point is a design, with saturation, latency, area and energy.

A design has two measurements: the search for its saturation load, which points with other rates of
the same traffic share, and the run at its rate. Designs that are invalid or can deadlock are not
simulated; the result lists them with the reason.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from math import fsum, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tutti.base.errors import ConfigError, TuttiError
from tutti.base.files import limits
from tutti.base.files.kinds import validated_file
from tutti.base.files.mistakes import mistake
from tutti.base.files.reader import read_text
from tutti.base.units import Size
from tutti.sweeps.errors import WorkerError
from tutti.sweeps.keys import digest
from tutti.sweeps.points import PointPlan
from tutti.sweeps.version import FORMAT, simulator
from tutti.sweeps.worker import Done, Item, check_version

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from tutti.networks.flit import NocRun, Traffic
    from tutti.networks.flit.files.network_file import Noc
    from tutti.networks.flit.files.tables import RawNoc
    from tutti.sweeps.files import Sweep
    from tutti.sweeps.worker import Batch, Row

_SEARCH, _RUN = "saturation", "load"
"""The two measurements of a design."""
_SEARCHES = 8
"""The work of a search, in runs."""
_COMBINATIONS = frozenset({
    "buffer_smaller_than_packet", "can_deadlock", "clash", "deadlock_unknown", "flit_too_wide",
    "grid", "grid_size", "groups", "no_destination", "no_grid", "no_such_vcs", "nodes",
    "out_of_reach", "routing_does_not_fit", "too_few_vcs", "too_many_ports", "topology",
    "unknown_node", "unreachable",
})  # fmt: skip
"""Errors of values that are valid in other networks; other errors, such as names, end a sweep."""
State = Literal["invalid", "can deadlock"]


class Refused(NamedTuple):
    """A design that is not simulated.

    Attributes:
        state: Why, in a word.
        reason: Why, in a sentence.
    """

    state: State
    reason: str


@dataclass
class DesignPlan(PointPlan):
    """All measurements of a sweep of networks: a search and a run per point that can be simulated.

    Attributes:
        refused: The other points.
        labels: What is known of each point without a simulation, by point.
    """

    refused: dict[int, Refused] = field(default_factory=dict)
    labels: dict[int, Row] = field(default_factory=dict)

    def _rows(self, rows: Mapping[str, Mapping[str, Any]]) -> list[Row]:
        """Returns a row per finished or refused design, in the order of the points."""
        measured: dict[int, Row] = {}
        unfinished = set()
        for item in self.measurements:
            if item.key in rows:
                measured.setdefault(item.point, {}).update(rows[item.key])
            else:
                unfinished.add(item.point)
        found = []
        for point, values in enumerate(self.sweep.points):
            row = {"design": point + 1, **self.labels.get(point, {})}
            row |= {f"sweep.{key}": values.get(key) for key in self.sweep.keys}
            if point in self.refused:
                found.append(row | self.refused[point]._asdict())
            elif point not in unfinished:
                found.append(row | measured[point])
        return found

    def frame(self, rows: Mapping[str, Mapping[str, Any]]) -> pl.DataFrame:
        """Returns a row per finished or refused design, in the order of the points.

        The columns are those of :data:`tutti.sweeps.design_view.DESIGN`, and ``sweep.KEY`` with the
        value of each swept key, as in :func:`tutti.sweeps.frame.sweep_frame`.
        """
        import polars as pl

        from tutti.sweeps.design_view import DESIGN, with_front
        from tutti.sweeps.frame import swept_columns
        from tutti.view.tables import frame_of

        shown = with_front(self._rows(rows), self.sweep.keys)
        points = pl.Series([row["design"] - 1 for row in shown], dtype=pl.UInt32)
        designs = frame_of(DESIGN, shown)
        return pl.concat([designs, swept_columns(self.sweep)[points]], how="horizontal")


def plan_designs(sweep: Sweep, *, verify: bool = True) -> DesignPlan:
    """Validates all points, and plans their measurements.

    Raises:
        ConfigError: A point is not a network file, a name is unknown, no design can be simulated,
            or verification is disabled.
    """
    if not verify:
        raise ConfigError("a sweep of networks has no schedules to verify", kind="invalid",
                          hint="remove the option `--no-verify`")  # fmt: skip
    plan = DesignPlan(sweep)
    for point in range(len(sweep.points)):
        _add(plan, point)
    if not plan.measurements:
        first = plan.refused[0]
        raise mistake(
            f"no design of {len(sweep.points):,} can be simulated; point 1: {first.reason}",
            source=sweep.source, key="sweep", expected="a valid, deadlock-free network",
        )  # fmt: skip
    nodes = {label["nodes"] for label in plan.labels.values()}
    if len(nodes) > 1:
        plan.remarks.append(
            f"designs have {min(nodes):,} to {max(nodes):,} nodes; area and power are totals"
        )
    return plan


def _add(plan: DesignPlan, point: int) -> None:
    """Adds a design: its measurements, or why it is not simulated."""
    from tutti.networks.flit.files.tables import RawNoc

    sweep = plan.sweep
    tables, source = sweep.template.tables(point + 1, sweep.points[point])
    raw = validated_file(RawNoc, tables, source=source)
    try:
        noc = sweep.template.network(point + 1, sweep.points[point])
    except ConfigError as error:
        if getattr(error.__cause__, "kind", "") not in _COMBINATIONS:
            raise
        plan.refused[point] = Refused("invalid", str(error.fields["problem"]))
        return
    traffic = _open_loop(noc)
    plan.labels[point] = _label(noc, traffic)
    cycle = noc.network.can_deadlock(_classes(traffic))
    if cycle:
        plan.refused[point] = Refused("can deadlock", cycle)
        return
    folder = Path(sweep.template.folder)
    nodes = noc.network.topology.ranks
    work = nodes * (noc.plan.warmup + noc.plan.measure)
    for what, runs in ((_SEARCH, _SEARCHES), (_RUN, 1)):
        key = _key(what, raw, noc, folder, sweep.template.tolerance)
        plan.measurements.append(Item(key, point, what, nodes, 0, 0, runs * work))


def _open_loop(noc: Noc) -> tuple[Traffic, ...]:
    """Returns the traffic, which has an offered load.

    Raises:
        ConfigError: It is a trace, a closed loop or a batch, or has no load.
    """
    traffic = noc.scalable
    key = "traffic[0]" if len(traffic) > 1 else "traffic"
    for load in traffic:
        for name in ("outstanding", "requests"):
            if getattr(load, name) is not None:
                raise mistake(
                    "closed loops and batches have no offered load to sweep", source=noc.source,
                    key=f"{key}.{name}", expected="traffic with a `rate` only",
                )  # fmt: skip
    if not fsum(load.rate for load in traffic) > 0:
        raise mistake(
            "the load is 0", source=noc.source, key=f"{key}.rate",
            expected="the load at which latency and energy are compared, above 0",
        )  # fmt: skip
    return traffic


def _classes(traffic: tuple[Traffic, ...]) -> list[tuple[int, int] | None]:
    from tutti.networks.flit.network import classes_of

    return classes_of(traffic)


def _label(noc: Noc, traffic: tuple[Traffic, ...]) -> Row:
    network = noc.network
    return {
        "topology": network.topology.name,
        "routing": network.routing,
        "nodes": network.topology.ranks,
        "cycle_ps": network.cycle_ps,
        "flit_bytes": Size.of_any(network.flit).bytes,
        "load": fsum(load.rate for load in traffic),
    }


def _key(what: str, raw: RawNoc, noc: Noc, folder: Path, tolerance: float | None) -> str:
    """Returns the cache key of a measurement: a hash of all its inputs."""
    traffic = noc.scalable
    if what == _SEARCH:
        total = fsum(load.rate for load in traffic)
        traffic = tuple(replace(load, rate=load.rate / total) for load in traffic)
    file = raw.topology.file
    graph = read_text(folder / file, limits.Bytes.TABLE, "a graph") if file else None
    settings = raw.model_dump_json(exclude={"title", "output", "traffic"})
    width = tolerance if what == _SEARCH else None
    return digest(what, FORMAT, simulator(), settings, graph, repr(traffic), width)


def run_designs(batch: Batch) -> Done:
    """Runs all items of a batch.

    Raises:
        WorkerError: The worker has another version of tutti than the sweep.
    """
    from tutti.networks.flit.files.tables import RawNoc

    check_version(batch)
    template = batch.template
    results: list[Row | TuttiError] = []
    seconds = 0.0
    for item in batch.items:
        started = time.perf_counter()
        try:
            values = batch.values[item.point]
            tables, source = template.tables(item.point + 1, values)
            raw = validated_file(RawNoc, tables, source=source)
            noc = template.network(item.point + 1, values)
            folder = Path(template.folder)
            if _key(item.notation, raw, noc, folder, template.tolerance) != item.key:
                problem = f"the inputs changed during the sweep: {item.notation}"
                raise WorkerError(problem, kind="other_input")
            measure = _searched if item.notation == _SEARCH else _run_at_load
            results.append(measure(noc, template.tolerance))
        except TuttiError as error:
            results.append(error)
        seconds += time.perf_counter() - started
    return Done(results, seconds)


def _searched(noc: Noc, tolerance: float | None) -> Row:
    """Returns the saturation load, the latency at zero load and the area of a design."""
    from tutti.networks.flit.placement import placed

    found = placed(noc.network, noc.scalable, noc.plan, tolerance)
    saturation, zero_load, ideal = found.saturation, found.zero_load, found.ideal
    row: Row = {
        "saturation": saturation.load,
        "unstable_load": saturation.below,
        "tolerance": found.tolerance,
        "capacity": ideal.load if ideal else None,
        "bottleneck": ideal.bottleneck if ideal else None,
        "zero_load_latency": _number(zero_load.latency.mean) if zero_load.is_stable else None,
        "zero_load_latency_half_width": (
            _number(zero_load.latency.half_width) if zero_load.is_stable else None
        ),
        "hops": _number(zero_load.hops.mean) if zero_load.is_stable else None,
        "runs": len(saturation.runs),
    }
    if noc.technology is not None:
        area = zero_load.area(noc.technology).total_um2
        row |= {
            "area_mm2": area.nominal / 1e6,
            "area_low_mm2": area.low / 1e6,
            "area_high_mm2": area.high / 1e6,
        }
    return row


def _run_at_load(noc: Noc, _tolerance: float | None) -> Row:
    """Returns latency, throughput and energy of a design at its load."""
    run = noc.run()
    row: Row = {"state": run.ending}
    if run.ending == "deadlocked":
        return row
    row |= {"accepted": run.accepted.mean}
    if run.is_stable:
        row |= {
            "latency": run.latency.mean,
            "latency_half_width": _number(run.latency.half_width),
            "latency_99": run.quantiles["99"],
        }
    return row | _energy(noc, run)


def _energy(noc: Noc, run: NocRun) -> Row:
    """Returns mean power, and energy per bit that arrives."""
    if noc.technology is None:
        return {}
    total = run.energy(noc.technology).total
    network = noc.network
    seconds = run.window * network.cycle_ps * 1e-12
    flits = run.accepted.mean * network.topology.ranks * run.window
    bits = flits * 8 * Size.of_any(network.flit).bytes
    row: Row = {"power_w": total.nominal / seconds}
    if bits > 0:
        names = ("energy_low_pj_per_bit", "energy_pj_per_bit", "energy_high_pj_per_bit")
        row |= {name: joules * 1e12 / bits for name, joules in zip(names, total, strict=True)}
    return row


def _number(value: float) -> float | None:
    """Returns a number that JSON can represent."""
    return None if isnan(value) else value
