"""Networks that a file and options define; options alone add defaults."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from tutti.base.errors import TuttiError
from tutti.base.files.mistakes import mistake, shown
from tutti.base.files.overrides import with_changes, with_values
from tutti.base.files.reader import read_toml
from tutti.base.units import Size, Time
from tutti.networks.flit.default_routing import default_routing
from tutti.networks.flit.files.network_file import resolve_noc
from tutti.networks.flit.files.tables import LinksTable, RawNoc
from tutti.study.console import remark
from tutti.topologies.graph import link_classes
from tutti.topologies.notation import is_notation, split
from tutti.topologies.table import with_link_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from pydantic import BaseModel

    from tutti.networks.experiment import Experiment

Values = dict[str, tuple[str, Any]]
"""Option and value by key path."""

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

_NETWORK = {"topology.build", "mesh.design", "mesh.columns", "mesh.rows"}
"""Keys of options that are required without a file, also where these keys vary."""

_CLASS_KEY = re.compile(r"links\[([0-9]{1,3})\]\.(\w+)")
_GRID = re.compile(r"mesh:([0-9]{1,4})x([0-9]{1,4})")


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
        has_own = {"rate", "trace", "outstanding", "requests"}
        return not isinstance(traffic, dict) or bool(has_own & traffic.keys())

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
            from tutti.networks.mesh.files import resolve_smart

            return resolve_smart(self.tables, source=self.source)
        return resolve_noc(self.tables, source=self.source, folder=self.folder)


def define(
    file: Path | None,
    options: Callable[[int], Values],
    changes: Sequence[str] = (),
    *,
    is_smart: bool = False,
    varying: Collection[str] = (),
    files: bool = True,
) -> NetworkTables:
    """Returns the tables of the network that a file and options define; prints the defaults.

    Args:
        file: The file; None for the defaults.
        options: Returns the values of options, of a single-cycle multi-hop mesh if its argument is
            1.
        changes: Key paths and values, each ``KEY=VALUE``.
        is_smart: Whether the network without a file is a single-cycle multi-hop mesh.
        varying: Keys of a design space, which get no default.
        files: Whether the command writes files.

    Raises:
        ConfigError: The file, an option or a change is invalid.
    """
    tables = _start(file, is_smart=is_smart)
    model = _model(tables)
    example = "mesh.design=sfo_complete" if "mesh" in tables else "router.vcs=8"
    values = options(int("mesh" in tables))
    named = list(dict.fromkeys(option for option, _ in values.values()))
    named += ["--set"] if changes else []
    named += ["--vary"] if varying else []
    values = (_of_mesh if "mesh" in tables else _of_flits)(values)
    tables = _with_values(tables, values)
    first = int(file is not None)  # of options, `links[0]` is the first class
    for change in changes:
        tables = with_link_tables(tables, [change.partition("=")[0]], first=first)
        tables = with_changes(tables, [change], model, example=example)
    tables = with_link_tables(tables, varying, first=first)
    _remark_varied({key: option for key, (option, _) in values.items()}, changes, varying)
    source = str(file or "options")
    if file is None:
        if not named:
            raise mistake(
                "missing argument: neither a file nor an option defines the network",
                source="FILE",
                expected="a network file, or options such as --mesh 8x8 --rate 0.2",
            )
        tables = _with_links(tables, source=f"{source} with {' '.join(named)}")
        tables = _with_routing(tables, varying)
        changed = [change.partition("=")[0].strip() for change in changes] + list(varying)
        tables = _of_trace(tables, {*values, *changed})
        _remark_defaults(tables, [*values, *changed, *([] if files else ["output"])])
    else:
        if "topology.build" in values:
            tables = _with_links(tables, source=source)
        tables = _remarked_routing(tables, varying)
    source = f"{source} with {' '.join(named)}" if named else source
    return NetworkTables(tables, source, file.parent if file else Path(), str(file or source))


def _remark_varied(
    options: Mapping[str, str], changes: Sequence[str], varying: Collection[str]
) -> None:
    """Prints which options have no effect, as the design space has values of their keys."""
    given = {key: option for key, option in options.items() if key not in _NETWORK}
    given |= {key: f"--set {key}" for key in (text.partition("=")[0].strip() for text in changes)}
    for key in varying:
        if key in given:
            remark(f"{given[key]} has no effect: --vary gives the values of {key}")


def _model(tables: Mapping[str, Any]) -> type[BaseModel]:
    """Returns the class of a file with these tables."""
    if "mesh" not in tables:
        return RawNoc
    from tutti.networks.mesh.files import RawSmart  # networks of flits do not load it

    return RawSmart


def _start(file: Path | None, *, is_smart: bool) -> dict[str, Any]:
    """Returns the tables of the file, or the defaults."""
    if file is None:
        return dict(MESH_DEFAULTS if is_smart else DEFAULTS)
    hint = ""
    if is_notation(str(file)) and not file.exists():
        hint = f"a topology is an option: --topology {file}"
    return read_toml(file, "a network file (TOML)", hint=hint)


def _of_flits(values: Values) -> Values:
    """Returns the values with links that the notation of the topology has."""
    option, text = values.get("topology.build", ("", ""))
    if not option:
        return values
    listed = f"{', '.join(LinksTable.model_fields)}, links[CLASS].KEY"
    build, given = split(text, [*LinksTable.model_fields, "links"], source=option, listed=listed)
    more: Values = {"topology.links": (option, _links(build, given, option))} if given else {}
    return {**values, "topology.build": (option, build), **more}


def _links(build: str, given: dict[str, str], option: str) -> list[dict[str, str]]:
    """Returns the tables of links: one for all classes, or one per class with `links[0].rate`."""
    shared = {key: value for key, value in given.items() if key in LinksTable.model_fields}
    if len(shared) == len(given):
        return [shared]
    try:
        classes = link_classes(build)
    except TuttiError as error:
        raise mistake(error.problem, source=option, hint=error.hint) from None
    links = [dict(shared) for _ in classes]
    for key, value in given.items():
        if key in shared:
            continue
        place = _CLASS_KEY.fullmatch(key)
        if not place or int(place[1]) >= len(links) or place[2] not in LinksTable.model_fields:
            names = ", ".join(f"links[{number}]: {name}" for number, name in enumerate(classes))
            raise mistake("there is no such key of links", source=option, key=key,
                          expected=f"{', '.join(LinksTable.model_fields)} of {names}")  # fmt: skip
        links[int(place[1])][place[2]] = value
    return links


def _of_mesh(values: Values) -> Values:
    """Returns the values as keys of a single-cycle multi-hop mesh."""
    values = dict(values)
    option, text = values.pop("topology.build", ("", ""))
    if option:
        grid = _GRID.fullmatch(text)
        if grid is None:
            raise mistake("is not a mesh of two dimensions, as a single-cycle multi-hop mesh is",
                          source=option, value=shown(text), expected="--mesh 8x8")  # fmt: skip
        values |= {"mesh.columns": (option, int(grid[1])), "mesh.rows": (option, int(grid[2]))}
    option, pattern = values.get("traffic.pattern", ("", ""))
    if option:
        from tutti.networks.mesh.traffic import Kind

        is_kind = pattern in get_args(Kind)
        values["traffic.kind"] = (option, pattern if is_kind else "unicast")
        if is_kind:
            del values["traffic.pattern"]
    return values


def _with_values(tables: dict[str, Any], values: Values) -> dict[str, Any]:
    if "topology.build" in values and isinstance(tables.get("topology"), dict):
        tables = {**tables, "topology": {**tables["topology"]}}
        tables["topology"].pop("file", None)
    for key, (option, value) in values.items():
        if key.startswith("traffic.") and isinstance(tables.get("traffic"), list):
            hint = f"--set {key.replace('traffic', 'traffic[0]')}={value}"
            raise mistake("the file has several classes of traffic", source=option, hint=hint)
    return with_values(tables, values)


def _with_routing(tables: dict[str, Any], varying: Collection[str]) -> dict[str, Any]:
    """Returns the tables with the default routing of the family, if absent.

    Topologies that vary each have their own default.
    """
    topology = tables.get("topology")
    if not isinstance(topology, dict) or {"topology.build", "topology.routing"} & set(varying):
        return tables
    routing = {"routing": default_routing(str(topology.get("build")))}
    return {**tables, "topology": routing | topology}


def _of_trace(tables: dict[str, Any], given: set[str]) -> dict[str, Any]:
    """Returns the tables without the defaults that a trace or a batch replaces."""
    traffic, measure = tables.get("traffic"), tables.get("measure")
    if not isinstance(traffic, dict) or "trace" not in traffic:
        is_batch = isinstance(traffic, dict) and "requests" in traffic
        if not is_batch or not isinstance(measure, dict) or {"measure", "measure.warmup"} & given:
            return tables
        return {**tables, "measure": {key: measure[key] for key in measure if key != "warmup"}}
    kept = {
        name: {key: value for key, value in tables[name].items()
               if key not in DEFAULTS[name] or {name, f"{name}.{key}"} & given}
        for name in ("traffic", "measure") if isinstance(tables.get(name), dict)
    }  # fmt: skip
    return {**tables, **kept}


def _remarked_routing(tables: dict[str, Any], varying: Collection[str]) -> dict[str, Any]:
    """Returns the tables with the default routing, which it names, if a file states none."""
    complete = _with_routing(tables, varying)
    if "mesh" in tables or complete.get("topology") == tables.get("topology"):
        return tables
    remark(f"defaults: topology.routing {complete['topology']['routing']}")
    return complete


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
    if not flit.bytes:
        raise mistake("a flit has no bytes", source=source, key=key, value=str(flit),
                      expected="1 B or more, such as 16 B")  # fmt: skip
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
