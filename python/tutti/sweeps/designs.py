"""Sweeps of networks: a point is a design, with saturation, latency, area and energy.

A design has two measurements: the search for its saturation load, which points with other rates of
the same traffic share, and the run at its rate. Designs that are invalid or can deadlock are not
simulated; the result lists them with the reason.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from tutti.base.errors import ConfigError, TuttiError
from tutti.base.files.mistakes import mistake
from tutti.sweeps.errors import WorkerError
from tutti.sweeps.keys import digest
from tutti.sweeps.points import PointPlan
from tutti.sweeps.version import FORMAT, simulator
from tutti.sweeps.worker import Done, Item, check_version

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from tutti.sweeps.files import Sweep, Template
    from tutti.sweeps.worker import Batch, Row

_SEARCH, _RUN = "saturation", "load"
"""The two measurements of a design."""
_SEARCHES = 8
"""The work of a search, in runs."""
_MISSPELT = frozenset({
    "allocator", "arbiter", "argument", "fan_in", "fan_out", "file", "format", "kind", "malformed",
    "members", "priority", "protocol", "routing_argument", "sources", "unknown_allocator",
    "unknown_arbiter", "unknown_design", "unknown_family", "unknown_parameter", "unknown_pattern",
    "unknown_priority", "unknown_process", "unknown_routing", "unknown_technology",
})  # fmt: skip
"""Errors of names and notations, which no network accepts: they end a sweep before it starts. With
other errors, a design is invalid, and the others are simulated."""
State = Literal["invalid", "can deadlock"]


class Design(Protocol):
    """A network with its traffic, of routers or of single-cycle multi-hop links."""

    @property
    def nodes(self) -> int:
        """Number of nodes."""

    @property
    def work(self) -> int:
        """Cycles of a run, times nodes and replications."""

    def label(self) -> Row:
        """Returns what is known without a simulation."""

    def deadlock(self) -> str | None:
        """Returns how packets can form a cyclic dependency, or None."""

    def inputs(self, *, at_load: bool) -> tuple[object, ...]:
        """Returns what a measurement depends on; a search does not depend on the total load."""

    def search(self, tolerance: float | None) -> Row:
        """Returns the saturation load, the latency at zero load and the area."""

    def run(self) -> Row:
        """Returns latency, throughput and energy at the load."""


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

        The columns are those of :func:`tutti.sweeps.design_view.design_columns`, and ``sweep.KEY``
        with the value of each swept key, as in :func:`tutti.sweeps.frame.sweep_frame`.
        """
        import polars as pl

        from tutti.sweeps.design_front import unit_of, with_front
        from tutti.sweeps.design_view import design_columns
        from tutti.sweeps.frame import swept_columns
        from tutti.view.tables import frame_of

        shown = with_front(self._rows(rows), self.sweep.keys)
        points = pl.Series([row["design"] - 1 for row in shown], dtype=pl.UInt32)
        designs = frame_of(design_columns(unit_of(shown)), shown)
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
    errors = [_add(plan, point) for point in range(len(sweep.points))]
    if not plan.measurements:
        raise _none_valid(plan, errors[0])
    nodes = {label["nodes"] for label in plan.labels.values()}
    if len(nodes) > 1:
        plan.remarks.append(
            f"designs have {min(nodes):,} to {max(nodes):,} nodes; area and power are totals"
        )
    return plan


def _none_valid(plan: DesignPlan, first: TuttiError | None) -> ConfigError:
    """Returns the error of a sweep without a design to simulate.

    Args:
        plan: The plan.
        first: The error of the first design; None if it can deadlock.
    """
    place = f"no design of {len(plan.sweep.points):,} can be simulated; point 1"
    expected = first.fields.get("expected") if first else "a valid, deadlock-free network"
    key = ": ".join(filter(None, ["sweep", first.fields.get("key") if first else ""]))
    return mistake(
        f"{place}: {plan.refused[0].reason}", source=plan.sweep.source, key=key,
        expected=expected or "", hint=first.hint if first else "",
    )  # fmt: skip


def _add(plan: DesignPlan, point: int) -> TuttiError | None:
    """Adds a design: its measurements, or why it is not simulated.

    Returns:
        The error of an invalid design.
    """
    sweep = plan.sweep
    tables, source = sweep.template.tables(point + 1, sweep.points[point])
    _check_schema(sweep.template, tables, source)
    try:
        design = _design(sweep.template, point + 1, sweep.points[point])
    except TuttiError as error:
        if _is_misspelt(error):
            raise
        plan.refused[point] = Refused("invalid", str(error.fields.get("problem", error.problem)))
        return error
    plan.labels[point] = design.label()
    cycle = design.deadlock()
    if cycle:
        plan.refused[point] = Refused("can deadlock", cycle)
        return None
    for what, runs in ((_SEARCH, _SEARCHES), (_RUN, 1)):
        key = _key(what, design, sweep.template.tolerance)
        plan.measurements.append(Item(key, point, what, design.nodes, 0, 0, runs * design.work))
    return None


def _check_schema(template: Template, tables: Mapping[str, Any], source: str) -> None:
    """Refuses unknown keys, and values of a wrong type or range, which no network accepts."""
    from tutti.base.files.kinds import validated_file
    from tutti.networks.flit.files.tables import RawNoc
    from tutti.networks.mesh.files import RawSmart

    validated_file(RawSmart if template.is_smart else RawNoc, tables, source=source)


def _is_misspelt(error: TuttiError) -> bool:
    """Returns whether an error is one of names and notations."""
    cause = error.__cause__
    return (cause.kind if isinstance(cause, TuttiError) else error.kind) in _MISSPELT


def _design(template: Template, number: int, values: Mapping[str, Any]) -> Design:
    """Returns the network of a point.

    Args:
        template: Builds the tables of points.
        number: The number of the point, from 1.
        values: The values of the point, by key path.

    Raises:
        ConfigError: The network or its traffic is invalid; the message names the point.
    """
    tables, source = template.tables(number, values)
    if template.is_smart:
        from tutti.sweeps.mesh_design import MeshDesign

        return MeshDesign.of(tables, source)
    from tutti.sweeps.flit_design import FlitDesign

    return FlitDesign.of(tables, source, Path(template.folder))


def _key(what: str, design: Design, tolerance: float | None) -> str:
    """Returns the cache key of a measurement: a hash of all its inputs."""
    width = tolerance if what == _SEARCH else None
    return digest(what, FORMAT, simulator(), *design.inputs(at_load=what == _RUN), width)


def run_designs(batch: Batch) -> Done:
    """Runs all items of a batch.

    Raises:
        WorkerError: The worker has another version of tutti than the sweep.
    """
    check_version(batch)
    template = batch.template
    results: list[Row | TuttiError] = []
    seconds = 0.0
    for item in batch.items:
        started = time.perf_counter()
        try:
            design = _design(template, item.point + 1, batch.values[item.point])
            if _key(item.notation, design, template.tolerance) != item.key:
                problem = f"the inputs changed during the sweep: {item.notation}"
                raise WorkerError(problem, kind="other_input")
            searches = item.notation == _SEARCH
            results.append(design.search(template.tolerance) if searches else design.run())
        except TuttiError as error:
            results.append(error)
        seconds += time.perf_counter() - started
    return Done(results, seconds)
