"""Resolves network files: the network, its traffic and the measurement."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tutti.base.errors import TuttiError
from tutti.base.files import limits
from tutti.base.files.kinds import validated_file
from tutti.base.files.mistakes import mistake
from tutti.base.files.overrides import read_changed
from tutti.base.files.reader import read_text
from tutti.networks.experiment import Experiment
from tutti.networks.flit.files.energy_table import check_links, technology_of
from tutti.networks.flit.files.matrix import matrix_pattern, parse_matrix
from tutti.networks.flit.files.tables import MeasureTable, RawNoc
from tutti.networks.flit.idle import idle_traffic
from tutti.networks.flit.network import Network, classes_of, longest_of
from tutti.networks.flit.settings import (
    Reply,
    Router,
    RouterBuffers,
    RouterClock,
    Trace,
    mean_flits,
)
from tutti.networks.flit.traces import plan_of_trace
from tutti.networks.loads import SearchPlan, runs_of_search
from tutti.topologies.table import topology_of
from tutti.view.quantity import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tutti.energy.link_classes import Technologies
    from tutti.networks.flit import MeasurementPlan, NocRun, Traffic
    from tutti.networks.flit.files.tables import ReplyTable, TrafficTable
    from tutti.topologies import Topology
    from tutti.view.view import View

_STEP = 0.05
"""The distance of the default loads of a sweep."""
_TOLERANCE = 0.01
"""The default tolerance of the saturation load."""


@dataclass(frozen=True, kw_only=True)
class Noc(Experiment[Network, "tuple[Traffic, ...] | Trace", "MeasurementPlan", "NocRun"]):
    """A resolved network and its traffic.

    Attributes:
        technology: Energy of events, if given.
    """

    package = "tutti.networks.flit"

    technology: Technologies | None

    @property
    def default_loads(self) -> list[float]:
        """The loads of a sweep, in flits per node and cycle."""
        return [round(_STEP * index, 12) for index in range(1, 11)]

    def search_plan(self, runs: Sequence[NocRun], tolerance: float | None) -> SearchPlan:
        """Returns a search up to the largest load of runs, at least 1."""
        most, width = max(1.0, *(run.load or 0 for run in runs)), tolerance or _TOLERANCE
        return SearchPlan(most, width, runs_of_search(most / width))

    def remarks(self) -> list[str]:
        """Returns warnings: deadlock, low buffers, paths by hops, options without effect.

        Raises:
            NocError: The network is invalid.
        """
        found = self.network.remarks(classes_of(self.traffic), longest_of(self.traffic))
        return [*found, *idle_traffic(self.network, self.traffic)]

    @property
    def has_saturation(self) -> bool:
        """Whether more load can be offered than the network accepts: not by closed loops only."""
        return any(load.outstanding is None and load.requests is None for load in self.scalable)

    @property
    def scalable(self) -> tuple[Traffic, ...]:
        """The traffic, for runs at several loads.

        Raises:
            ConfigError: The traffic is a trace.
        """
        if isinstance(self.traffic, Trace):
            raise mistake(
                "a trace has a fixed load and cannot be swept", source=self.source,
                key="traffic.trace", expected="generated traffic",
                hint="replay the trace with `tutti noc run`",
            )  # fmt: skip
        return self.traffic

    def run_view(self, run: NocRun, remarks: Sequence[str]) -> View:
        """Returns what a run shows."""
        from tutti.networks.flit.view.run import run_view

        return run_view(run, technology=self.technology, title=self.title, remarks=remarks)


def load_noc(path: Path, changes: Sequence[str] = (), *, output: Path | None = None) -> Noc:
    """Reads a network file.

    Args:
        path: The file.
        changes: Key paths and values, each ``KEY=VALUE``.
        output: Replaces the folder for results of the file.

    Raises:
        ConfigError: The file or a change is invalid.
    """
    example = "router.vcs=8 or topology.routing=valiant"
    tables, source = read_changed(path, changes, RawNoc, example=example, output=output)
    return resolve_noc(tables, source=source, folder=path.parent)


def resolve_noc(
    tables: dict[str, Any],
    *,
    source: str,
    folder: Path,
    topology: Topology | None = None,
    texts: Mapping[str, str] | None = None,
) -> Noc:
    """Validates the tables of a network file.

    Args:
        tables: The tables of the file.
        source: The file, for messages.
        folder: The base of relative paths in the tables.
        topology: Replaces the topology that the tables describe.
        texts: Contents of traces and matrices by name; others are read from `folder`.

    Raises:
        ConfigError: The network or its traffic is invalid.
    """
    raw = validated_file(RawNoc, tables, source=source)
    try:
        topology = topology or topology_of(raw.topology, folder)
    except TuttiError as error:
        raise mistake(error.problem, source=source, key="topology", hint=error.hint) from error
    traffic = _traffic(raw, source, folder, _Files(texts or {}, topology.ranks))
    found = Noc(
        source=source,
        title=raw.title,
        network=_network(raw, topology),
        traffic=traffic,
        plan=_plan(raw.measure, traffic),
        technology=technology_of(raw.energy, source=source, key="energy"),
        output=Path(raw.output),
    )
    if found.technology is not None:
        check_links(found.technology, topology, source=source, key="energy", links="topology.links")
    _check(found)
    return found


def _network(raw: RawNoc, topology: Topology) -> Network:
    return Network(
        topology=topology,
        routing=raw.topology.routing or "",
        router=raw.router,
        routers=tuple(
            RouterBuffers(at=tuple(table.at), **table.model_dump(exclude={"at"}))
            for table in raw.routers
        ),
        clocks=tuple(
            RouterClock(
                at=tuple(table.at),
                period=table.period,
                **table.model_dump(exclude={"at", "period"}),
            )
            for table in raw.clocks
        ),
        cycle=raw.cycle,
        flit=raw.flit,
        grid=tuple(raw.topology.grid) if raw.topology.grid else None,
        seed=raw.seed,
        narrow_links=raw.topology.narrow_links,
        deadlock=raw.topology.deadlock,
    )


def _plan(table: MeasureTable, traffic: tuple[Traffic, ...] | Trace) -> MeasurementPlan:
    from tutti.networks.flit import MeasurementPlan
    from tutti.networks.flit.network import is_batch

    plan = MeasurementPlan(**table.model_dump())
    if isinstance(traffic, Trace):
        return plan_of_trace(traffic.text, plan, table.model_fields_set)
    if is_batch(traffic) and "warmup" not in table.model_fields_set:
        return replace(plan, warmup=0)  # a batch has no steady state
    return plan


class _Files(NamedTuple):
    """Contents of files by name, and the nodes of the network."""

    texts: Mapping[str, str]
    nodes: int

    def read(self, name: str, folder: Path, expected: str) -> str:
        """Returns the content of a file in a folder."""
        if name in self.texts:
            return self.texts[name]
        return read_text(folder / name, limits.Bytes.TABLE, expected, line=limits.LINE)

    def pattern(self, name: str, folder: Path) -> str:
        """Returns the traffic pattern of a matrix."""
        rows = parse_matrix(self.read(name, folder, "a traffic matrix"), source=name)
        if len(rows) != self.nodes:
            raise mistake(
                f"the matrix has {plural(len(rows), 'row')}, and the network has "
                f"{plural(self.nodes, 'node')}",
                source=name,
                expected="a row and a column for each node",
            )
        return matrix_pattern(rows)


def _traffic(raw: RawNoc, source: str, folder: Path, files: _Files) -> tuple[Traffic, ...] | Trace:
    from tutti.networks.flit import Traffic

    tables = raw.traffic if isinstance(raw.traffic, list) else [raw.traffic]
    names = [
        f"traffic[{number}]" if isinstance(raw.traffic, list) else "traffic"
        for number in range(len(tables))
    ]
    traces = {table.trace for table in tables}
    if traces != {None}:
        _refuse_keys_of_trace(tables, names, source)
        if not tables[0].trace:
            raise mistake("is empty", source=source, key=f"{names[0]}.trace",
                          expected="the name of a CSV file")  # fmt: skip
        text = files.read(tables[0].trace, folder, "a trace as CSV")
        given = [table.vcs for table in tables]
        every = (0, max(raw.router.vcs - 1, 0))
        ranges = tuple(every if one is None else (one[0], one[1]) for one in given)
        return Trace(text=text, vcs=ranges)
    loads = []
    for table, name in zip(tables, names, strict=True):
        values = table.model_dump(exclude={"trace", "vcs", "matrix", "reply"})
        values["rate"] = _rate(values, name, source)
        if table.reply is not None:
            values["reply"] = _reply(table.reply)
        if table.matrix is not None:
            _refuse_pattern(table, name, source)
            values["pattern"] = files.pattern(table.matrix, folder)
        vcs = None if table.vcs is None else (table.vcs[0], table.vcs[1])
        loads.append(Traffic(**values, vcs=vcs))
    return tuple(loads)


def _rate(values: dict[str, Any], name: str, source: str) -> float:
    """Returns the rate of a class; with a limit, a packet per cycle if none is given."""
    if values["rate"] is not None:
        return float(values["rate"])
    if values["outstanding"] is None and values["requests"] is None:
        raise mistake("`rate` is missing", source=source, key=f"{name}.rate",
                      expected="flits per node and cycle, such as 0.1")  # fmt: skip
    try:
        return mean_flits(values["packet"])
    except (ValueError, ZeroDivisionError):
        return 1.0  # the core refuses the size


def _reply(table: ReplyTable) -> Reply:
    vcs = None if table.vcs is None else (table.vcs[0], table.vcs[1])
    return Reply(**table.model_dump(exclude={"vcs"}), vcs=vcs)


def _refuse_pattern(table: TrafficTable, name: str, source: str) -> None:
    """Rejects a pattern that a matrix replaces."""
    if "pattern" in table.model_fields_set:
        problem = "`pattern` conflicts with `matrix`"
        raise mistake(problem, source=source, key=name, expected="one of `pattern` and `matrix`")


def _refuse_keys_of_trace(tables: list[TrafficTable], names: list[str], source: str) -> None:
    """Rejects keys that a trace replaces, and a second trace."""
    for table, name in zip(tables, names, strict=True):
        replaced = sorted(table.model_fields_set - {"trace", "vcs"})
        if replaced:
            problem = f"`{replaced[0]}` conflicts with `trace`"
            raise mistake(problem, source=source, key=name, expected="`trace` and `vcs` only")
        if table.trace != tables[0].trace:
            problem = "names another trace than the first class, or none"
            raise mistake(problem, source=source, key=name, expected="one trace for all classes")


def _check_ports(found: Noc) -> None:
    """Rejects NPUs of several ports, which traffic does not support."""
    router = found.network.router
    for name in ("injection", "ejection"):
        if getattr(router, name) > 1:
            raise mistake(
                "in traffic, an NPU has one port",
                source=found.source,
                key=f"router.{name}",
                value=f"{getattr(router, name):g}",
                expected="at most 1 flit per cycle",
                hint="schedules on a platform with flits may have more",
            )


def _key_of_class(error: TuttiError, traffic: tuple[Traffic, ...] | Trace) -> str:
    """Returns the key of the VCs of a class that an error names; empty if it states none.

    An error of an entry of `routers` belongs to the entry.
    """
    index, _, part = str(error.fields.get("traffic_class", "")).partition(" ")
    if error.kind not in {"no_such_vcs", "too_few_vcs"} or not index:
        return ""
    if isinstance(traffic, Trace):
        return f"traffic[{index}].vcs" if len(classes_of(traffic)) > 1 else "traffic.vcs"
    load = traffic[int(index)]
    states = load if part != "replies" else load.reply
    if states is None or states.vcs is None:
        return ""
    table = f"traffic[{index}]" if len(traffic) > 1 else "traffic"
    return f"{table}.{'reply.' if part == 'replies' else ''}vcs"


def _key_of_text(error: TuttiError, traffic: tuple[Traffic, ...] | Trace) -> str:
    """Returns the key of traffic whose text cannot be read; empty if none has this text."""
    if error.kind != "malformed" or isinstance(traffic, Trace):
        return ""
    text = error.fields.get("text")
    for index, load in enumerate(traffic):
        table = f"traffic[{index}]" if len(traffic) > 1 else "traffic"
        for name, states in ((table, load), (f"{table}.reply", load.reply)):
            for key in ("pattern", "packet", "process"):
                if text is not None and getattr(states, key, None) == text:
                    return f"{name}.{key}"
    return ""


def _check(found: Noc) -> None:
    """Checks the network, its traffic and the measurement in the core."""
    from tutti.networks.errors import NocError, TrafficError, keys_of_errors
    from tutti.networks.flit.runs import check

    _check_ports(found)
    try:
        check(found.network, found.traffic, found.plan)
    except TuttiError as error:
        key = _key_of_class(error, found.traffic) or _key_of_text(error, found.traffic)
        key = key or keys_of_errors("flit").get(error.kind, "")
        if error.fields.get("what") == "clocks":
            key = "clocks"
        elif error.kind == "clash" and error.fields.get("what") == "vcs":
            key = "routers"  # the routing divides VCs that single routers do not have
        elif error.kind == "out_of_range":
            what = str(error.fields.get("what", ""))
            key = f"measure.{what}" if what in MeasureTable.model_fields else f"router.{what}"
            key = key if what in {*MeasureTable.model_fields, *Router.model_fields} else ""
        elif not key:
            key = {NocError: "router", TrafficError: "traffic.pattern"}.get(type(error), "topology")
        problem = error.problem
        if key and (entry := re.match(rf"{key}(\[[0-9]+\])?: ", problem)):
            key, problem = f"{key}{entry[1] or ''}", problem[entry.end() :]
        raise mistake(problem, source=found.source, key=key, hint=error.hint) from error
