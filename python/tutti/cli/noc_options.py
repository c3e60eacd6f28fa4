"""Options of `tutti noc` that define a network, with or without a file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tutti.base.files.mistakes import mistake, shown
from tutti.base.files.overrides import value_of
from tutti.cli import options
from tutti.cli.keyed import Key, keyed
from tutti.networks.definition import NetworkTables, define

if TYPE_CHECKING:
    from collections.abc import Collection


@dataclass
class NetworkOptions:
    """The network and its traffic."""

    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", show_default=False,
                       help="The network file (TOML). Default: options alone."),
    ] = None  # fmt: skip
    mesh: Annotated[
        str | None, typer.Option("--mesh", metavar="SIZE", help="A mesh, such as 8x8 or 4x4x4."),
        Key("topology.build", read="mesh:{}".format),
    ] = None  # fmt: skip
    torus: Annotated[
        str | None, typer.Option("--torus", metavar="SIZE", help="A torus, such as 8x8."),
        Key("topology.build", read="torus:{}".format),
    ] = None  # fmt: skip
    topology: Annotated[
        str | None,
        typer.Option("--topology", metavar="FAMILY:ARGUMENT",
                     help="Topology, such as cmesh:4x4:2x2 or mesh:8x8,latency=2ns."),
        Key("topology.build"),
    ] = None  # fmt: skip
    design: Annotated[
        str | None,
        typer.Option("--design",
                     help="Mesh design with single-cycle multi-hop links (`tutti noc list`), such"
                     " as sfo_greedy."),
        Key("", "mesh.design", hint="files with a table `[mesh]` have designs"),
    ] = None  # fmt: skip
    routing: Annotated[
        str | None, typer.Option("--routing", help="Routing algorithm: `tutti noc list`."),
        Key("topology.routing", "", hint="the routing is XY, or YX with --set mesh.yx=true"),
    ] = None  # fmt: skip
    vcs: Annotated[int | None, typer.Option("--vcs", help="VCs of an input port."),
                   Key("router.vcs", "mesh.vcs")] = None  # fmt: skip
    buffer: Annotated[int | None, typer.Option("--buffer", help="Flits of a VC."),
                      Key("router.buffer", "mesh.depth")] = None  # fmt: skip
    traffic: Annotated[
        str | None,
        typer.Option("--traffic", metavar="PATTERN",
                     help="The traffic pattern (`tutti noc list`); with --design also broadcast, "
                     "multicast or reduction."),
        Key("traffic.pattern"),
    ] = None  # fmt: skip
    packet: Annotated[
        str | None,
        typer.Option("--packet", metavar="FLITS", help="Packet size in flits: 4, or 1,5."),
        Key("traffic.packet", read=value_of),
    ] = None
    changes: options.Changes = None
    to: options.Out = None
    report: options.Report = True


@dataclass
class RunOptions:
    """The load of a run."""

    rate: Annotated[
        float | None,
        typer.Option("--rate",
                     help="Offered load in flits per node and cycle; broadcasts and multicasts "
                     "per source and cycle; reductions per cycle."),
        Key("traffic.rate"),
    ] = None  # fmt: skip
    files: options.Files = True


@dataclass
class SweepOptions:
    """The loads of a sweep, and the search for the saturation load."""

    loads: Annotated[
        str | None,
        typer.Option("--loads", metavar="LOADS",
                     help="Offered loads: a list 0.1,0.2,0.4 or a range FROM:TO:STEP, in flits "
                     "per node and cycle (with a table [mesh], in the unit of the first "
                     "traffic's rate). Default: 0.05:0.5:0.05; with a table [mesh], twelve "
                     "loads up to the ideal throughput."),
    ] = None  # fmt: skip
    search: Annotated[
        bool,
        typer.Option("--saturation/--no-saturation", help="Search for the saturation load."),
    ] = True
    tolerance: Annotated[
        float | None,
        typer.Option("--tolerance",
                     help="Tolerance of the saturation load, in the unit of the loads. Default: "
                     "0.01; with a table [mesh], 2 % of the largest load."),
    ] = None  # fmt: skip
    threads: options.Threads = 0
    files: options.Files = True


@dataclass
class SpaceOptions:
    """The design space, and the search for the saturation load of each design."""

    vary: Annotated[
        list[str] | None,
        typer.Option("--vary", metavar="KEY=VALUES",
                     help="Values of a key, such as router.vcs=2,4,8, or a TOML list for values "
                     "with commas; may be repeated. All combinations are run."),
    ] = None  # fmt: skip
    tolerance: Annotated[
        float | None,
        typer.Option("--tolerance",
                     help="Tolerance of the saturation load, in flits per node and cycle (with a "
                     "table [mesh], in the unit of the first rate). Default: 2 % of the ideal "
                     "capacity of each design."),
    ] = None  # fmt: skip


def varied(of: SpaceOptions) -> dict[str, list[object]]:
    """Returns the values of each key of a design space.

    Raises:
        ConfigError: There is no key, or the values of a key are not a list.
    """
    example = "KEY=VALUES, such as router.vcs=2,4,8"
    found: dict[str, list[object]] = {}
    for text in of.vary or ():
        key, equals, values = (part.strip() for part in text.partition("="))
        listed = value_of(values) if values.startswith("[") else values.split(",")
        if not equals or not key or not values or not isinstance(listed, list):
            raise mistake("is not a key with values", source="--vary", value=shown(text),
                          expected=example)  # fmt: skip
        if key in found:
            raise mistake("the key is given twice", source="--vary", key=key,
                          expected="one list of values")  # fmt: skip
        found[key] = [value_of(value.strip()) if isinstance(value, str) else value
                      for value in listed]  # fmt: skip
    if not found:
        raise mistake("missing option: no key varies", source="--vary", expected=example)
    return found


def network(
    of: NetworkOptions,
    at: RunOptions | None = None,
    varying: Collection[str] = (),
    *,
    files: bool = True,
) -> NetworkTables:
    """Returns the tables of the network that a file and options define; prints the defaults.

    Args:
        of: The network.
        at: Its load.
        varying: Keys of a design space, which get no default.
        files: Whether the command writes files.

    Raises:
        ConfigError: An option is invalid, or does not apply to the network.
    """
    if not files and of.to is not None:
        raise mistake("excludes --out", source="--no-files", expected="one of them")
    groups = [of, *([at] if at else [])]
    tables = define(of.file, lambda kind: keyed(*groups, kind=kind), of.changes or (),
                    is_smart=of.design is not None, varying=varying,
                    files=files and of.to is None)  # fmt: skip
    output = {} if of.to is None else {"output": str(of.to)}
    return replace(tables, tables=tables.tables | output)
