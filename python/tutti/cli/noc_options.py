"""Options of `tutti noc` that define a network, with or without a file."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from tutti.base.errors import TuttiError
from tutti.base.files import key_paths as paths
from tutti.base.files.mistakes import mistake, shown
from tutti.base.files.overrides import value_of, with_changes
from tutti.base.files.reader import read_toml
from tutti.base.units import Size, Time
from tutti.cli import options
from tutti.networks.flit.files.network_file import resolve_noc
from tutti.networks.flit.files.tables import LinksTable, RawNoc
from tutti.networks.mesh.files import RawSmart, resolve_smart
from tutti.networks.mesh.traffic import Kind
from tutti.platforms.files.notation import is_notation, split
from tutti.study.console import remark

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tutti.networks.experiment import Experiment

__all__ = [
    "DEFAULTS",
    "MESH_DEFAULTS",
    "NetworkOptions",
    "NetworkTables",
    "RunOptions",
    "SweepOptions",
    "network",
]  # fmt: skip

DEFAULTS: dict[str, Any] = {
    "topology": {"build": "mesh:8x8"},
    "cycle": "1 ns",
    "flit": "16 B",
    "router": {"vcs": 4, "buffer": 8},
    "traffic": {"pattern": "uniform", "packet": 1},
    "measure": {"warmup": 5000, "measure": 20000},
    "output": "out/noc",
}
"""The network without a file, apart from links and routing."""

MESH_DEFAULTS: dict[str, Any] = {
    "mesh": {"design": "sfo_greedy", "columns": 8, "rows": 8},
    "traffic": {"kind": "broadcast"},
    "output": "out/noc",
}
"""The single-cycle multi-hop mesh without a file."""

_ROUTING = {
    "mesh": "dimension_order",
    "torus": "dimension_order",
    "cmesh": "dimension_order",
    "flattened_butterfly": "dimension_order",
    "hyperx": "dimension_order",
    "dragonfly": "minimal",
    "fat_tree": "nca",
}
"""The default routing without a file; `shortest_path` for other families."""
_GRID = re.compile(r"mesh:([0-9]{1,4})x([0-9]{1,4})")


@dataclass
class NetworkOptions:
    """The network and its traffic."""

    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="The network file (TOML). Default: options alone.",
            show_default=False,
        ),
    ] = None
    mesh: Annotated[
        str | None, typer.Option("--mesh", metavar="SIZE", help="A mesh, such as 8x8 or 4x4x4.")
    ] = None
    torus: Annotated[
        str | None, typer.Option("--torus", metavar="SIZE", help="A torus, such as 8x8.")
    ] = None
    topology: Annotated[
        str | None,
        typer.Option(
            "--topology",
            metavar="FAMILY:ARGUMENT",
            help="Topology, such as cmesh:4x4:2x2 or mesh:8x8,latency=2ns.",
        ),
    ] = None
    design: Annotated[
        str | None,
        typer.Option(
            "--design",
            help="Mesh design with single-cycle multi-hop links (`tutti noc list`), such as "
            "sfo_greedy.",
        ),
    ] = None
    routing: Annotated[
        str | None, typer.Option("--routing", help="Routing algorithm: `tutti noc list`.")
    ] = None
    vcs: Annotated[int | None, typer.Option("--vcs", help="VCs of an input port.")] = None
    buffer: Annotated[int | None, typer.Option("--buffer", help="Flits of a VC.")] = None
    traffic: Annotated[
        str | None,
        typer.Option(
            "--traffic",
            metavar="PATTERN",
            help="The traffic pattern (`tutti noc list`); with --design also broadcast, multicast "
            "or reduction.",
        ),
    ] = None
    packet: Annotated[
        str | None,
        typer.Option("--packet", metavar="FLITS", help="Packet size in flits: 4, or 1,5."),
    ] = None
    changes: options.Changes = None
    to: options.Out = None

    @property
    def build(self) -> tuple[str, str]:
        """The topology and its option; empty if none is given.

        Raises:
            ConfigError: Several options give a topology.
        """
        given = {
            "--mesh": f"mesh:{self.mesh}" if self.mesh else "",
            "--torus": f"torus:{self.torus}" if self.torus else "",
            "--topology": self.topology or "",
        }
        found = [(text, option) for option, text in given.items() if text]
        if len(found) > 1:
            problem = f"conflicts with {found[0][1]}"
            raise mistake(problem, source=found[1][1], expected="one topology")
        return found[0] if found else ("", "")


@dataclass
class RunOptions:
    """The load of a run."""

    rate: Annotated[
        float | None,
        typer.Option(
            "--rate",
            help="Offered load in flits per node and cycle; broadcasts and multicasts per source "
            "and cycle; reductions per cycle.",
        ),
    ] = None


@dataclass
class SweepOptions:
    """The loads of a sweep, and the search for the saturation load."""

    loads: Annotated[
        str | None,
        typer.Option(
            "--loads",
            metavar="LOADS",
            help="Offered loads: a list 0.1,0.2,0.4 or a range FROM:TO:STEP, in flits per node and "
            "cycle (with a table [mesh], in the unit of the first traffic's rate). Default: "
            "0.05:0.5:0.05; with a table [mesh], twelve loads up to the ideal throughput.",
        ),
    ] = None
    search: Annotated[
        bool,
        typer.Option("--saturation/--no-saturation", help="Search for the saturation load."),
    ] = True
    tolerance: Annotated[
        float | None,
        typer.Option(
            "--tolerance",
            help="Tolerance of the saturation load, in the unit of the loads. Default: 0.01; with "
            "a table [mesh], 2 % of the largest load.",
        ),
    ] = None
    threads: options.Threads = 0


@dataclass(frozen=True)
class NetworkTables:
    """The tables of a network, and where they come from.

    Attributes:
        tables: The tables.
        source: The file and the options, for messages.
        folder: The base of relative paths.
        name: The file without options, for messages on results.
    """

    tables: dict[str, Any]
    source: str
    folder: Path
    name: str

    @property
    def is_smart(self) -> bool:
        """Whether the network is a single-cycle multi-hop mesh."""
        return "mesh" in self.tables

    @property
    def has_rate(self) -> bool:
        """Whether the traffic has a load: a rate, or classes or a trace with their own."""
        traffic = self.tables.get("traffic")
        return not isinstance(traffic, dict) or "rate" in traffic or "trace" in traffic

    def at(self, rate: float) -> NetworkTables:
        """Returns the tables at a rate, which a sweep replaces; traffic with a load keeps it."""
        if self.has_rate:
            return self
        return replace(
            self, tables={**self.tables, "traffic": {**self.tables["traffic"], "rate": rate}}
        )

    def resolve(self) -> Experiment[Any, Any, Any, Any]:
        """Returns the network and its traffic.

        Raises:
            ConfigError: The tables are invalid.
        """
        if self.is_smart:
            return resolve_smart(self.tables, source=self.source)
        return resolve_noc(self.tables, source=self.source, folder=self.folder)


def network(given: NetworkOptions, rate: float | None = None) -> NetworkTables:
    """Returns the tables of the network that a file and options define; prints the defaults.

    Args:
        given: The file and the options.
        rate: The offered load, if given.

    Raises:
        ConfigError: An option is invalid, or does not apply to the network.
    """
    tables = _start(given)
    values = _values(given, rate, is_smart="mesh" in tables)
    tables = _with_values(tables, values)
    model = RawSmart if "mesh" in tables else RawNoc
    example = "mesh.design=sfo_complete" if "mesh" in tables else "router.vcs=8"
    tables = with_changes(tables, given.changes or (), model, example=example)
    named = list(dict.fromkeys(option for option, _ in values.values()))
    named += ["--set"] if given.changes else []
    source = str(given.file or "options")
    if given.file is None:
        if not named:
            raise mistake(
                "missing argument: neither a file nor an option defines the network",
                source="FILE",
                expected="a network file, or options such as --mesh 8x8 --rate 0.2",
            )
        tables = _with_links(_with_routing(tables), source=f"{source} with {' '.join(named)}")
        changed = [change.partition("=")[0].strip() for change in given.changes or ()]
        _remark_defaults(tables, [*values, *changed])
    elif "topology.build" in values:
        tables = _with_links(tables, source=source)
    if given.to is not None:
        tables = {**tables, "output": str(given.to)}
    source = f"{source} with {' '.join(named)}" if named else source
    folder = given.file.parent if given.file else Path()
    return NetworkTables(tables, source, folder, str(given.file or source))


def _start(given: NetworkOptions) -> dict[str, Any]:
    """Returns the tables of the file, or the defaults."""
    if given.file is None:
        return dict(MESH_DEFAULTS if given.design else DEFAULTS)
    hint = ""
    if is_notation(str(given.file)) and not given.file.exists():
        hint = f"a topology is an option: --topology {given.file}"
    tables = read_toml(given.file, "a network file (TOML)", hint=hint)
    if given.build[0] and isinstance(tables.get("topology"), dict):
        tables["topology"].pop("file", None)
    return tables


Values = dict[str, tuple[str, Any]]
"""Option and value by key path."""


def _values(given: NetworkOptions, rate: float | None, *, is_smart: bool) -> Values:
    """Returns the values of the options that are given."""
    found: Values = {"traffic.rate": ("--rate", rate)}
    packet = None if given.packet is None else value_of(given.packet)
    found["traffic.packet"] = ("--packet", packet)
    if is_smart:
        return {key: one for key, one in (found | _of_mesh(given)).items() if one[1] is not None}
    found |= {
        "router.vcs": ("--vcs", given.vcs),
        "router.buffer": ("--buffer", given.buffer),
        "topology.routing": ("--routing", given.routing),
        "traffic.pattern": ("--traffic", given.traffic),
    }
    if given.design is not None:
        expected = "a file with a table `[mesh]`"
        raise mistake("does not apply to this file", source="--design", expected=expected)
    text, option = given.build
    if text:
        build, links = split(text, LinksTable.model_fields, source=option)
        found["topology.build"] = (option, build)
        if links:
            found["topology.links"] = (option, [links])
    return {key: one for key, one in found.items() if one[1] is not None}


def _of_mesh(given: NetworkOptions) -> Values:
    """Returns the values of options for a single-cycle multi-hop mesh."""
    found: Values = {
        "mesh.design": ("--design", given.design),
        "mesh.vcs": ("--vcs", given.vcs),
        "mesh.depth": ("--buffer", given.buffer),
    }
    if given.routing is not None:
        raise mistake("does not apply to a single-cycle multi-hop mesh", source="--routing",
                      hint="its routing is XY, or YX with --set mesh.yx=true")  # fmt: skip
    text, option = given.build
    if text:
        grid = _GRID.fullmatch(text)
        if grid is None:
            raise mistake("is not a mesh of two dimensions, as a single-cycle multi-hop mesh is",
                          source=option, value=shown(text), expected="--mesh 8x8")  # fmt: skip
        found |= {"mesh.columns": (option, int(grid[1])), "mesh.rows": (option, int(grid[2]))}
    if given.traffic in get_args(Kind):
        found["traffic.kind"] = ("--traffic", given.traffic)
    elif given.traffic is not None:
        found["traffic.kind"] = ("--traffic", "unicast")
        found["traffic.pattern"] = ("--traffic", given.traffic)
    return found


def _with_values(tables: dict[str, Any], values: Values) -> dict[str, Any]:
    for key, (option, value) in values.items():
        if key.startswith("traffic.") and isinstance(tables.get("traffic"), list):
            hint = f"--set {key.replace('traffic', 'traffic[0]')}={value}"
            raise mistake("the file has several classes of traffic", source=option, hint=hint)
        try:
            tables = paths.with_value(tables, paths.parse(key) or (), value)
        except paths.NoSuchPlaceError as error:
            raise mistake(error.problem, source=option, key=paths.written(error.at)) from None
    return tables


def _with_routing(tables: dict[str, Any]) -> dict[str, Any]:
    """Returns the tables with the default routing of the family, if absent."""
    topology = tables.get("topology")
    if not isinstance(topology, dict):
        return tables
    family = str(topology.get("build")).partition(":")[0]
    routing = {"routing": _ROUTING.get(family, "shortest_path")}
    return {**tables, "topology": routing | topology}


def _with_links(tables: dict[str, Any], *, source: str) -> dict[str, Any]:
    """Returns the tables with links that transfer a flit per cycle, where values are absent."""
    topology = tables.get("topology")
    if not isinstance(topology, dict):
        return tables
    links = topology.get("links", [{}])
    if isinstance(links, list) and all(isinstance(link, dict) for link in links):
        default = _link(tables, source)
        missing = [key for key in default if any(key not in link for link in links)]
        if missing:
            remark(f"defaults of links: {'; '.join(f'{key} {default[key]}' for key in missing)}")
        links = [default | link for link in links]
    return {**tables, "topology": {**topology, "links": links}}


def _link(tables: Mapping[str, Any], source: str) -> dict[str, str]:
    """Returns a link with a latency of one cycle and a rate of one flit per cycle."""
    key = "cycle"
    try:
        cycle = Time.of_any(tables.get("cycle", DEFAULTS["cycle"]))
        key = "flit"
        flit = Size.of_any(tables.get("flit", DEFAULTS["flit"]))
    except TuttiError as error:
        raise mistake(error.problem, source=source, key=key, hint=error.hint) from None
    rate = math.ceil(1000 * flit.bytes / max(cycle.ps, 1))
    return {"rate": f"{rate} GB/s", "latency": str(cycle)}


def _remark_defaults(tables: Mapping[str, Any], changed: list[str]) -> None:
    """Names the values that no option gives."""
    known = MESH_DEFAULTS if "mesh" in tables else DEFAULTS
    found = []
    for table, value in tables.items():
        for key, one in (value if isinstance(value, dict) else {"": value}).items():
            path = f"{table}.{key}" if key else table
            is_default = table in known and not any(
                path == given or path.startswith(f"{given}.") for given in changed
            )
            if is_default and path != "topology.links":
                found.append(f"{path} {one}")
    if found:
        remark(f"defaults: {'; '.join(found)}")
