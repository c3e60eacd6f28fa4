"""Converts a design of RapidChiplet to a network file of `tutti noc`.

Routers of chiplets take their `internal_latency`. All routers of a tutti network have one pipeline:
it is that of the fastest router, and slower ones delay the flits on their outgoing links. At zero
load, the latency of a packet of one flit is that of RapidChiplet's latency proxy.

Source: RapidChiplet 66e63e5, `booksim_wrapper.py` (`export_booksim_config`,
`export_booksim_topology`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from tutti import _core
from tutti.base.files.mistakes import mistake, shown
from tutti.base.units import TimePerByte
from tutti.formats.booksim.equivalents import TABLES
from tutti.formats.booksim.network import CYCLE, routers_and_window
from tutti.formats.booksim.reader import parse
from tutti.formats.booksim.traffic import BookSimInput, packet_of
from tutti.formats.converted import ConvertedNoc
from tutti.formats.flows import source_routed
from tutti.formats.rapidchiplet.files import DesignFiles, read_design, refuse_unknown
from tutti.formats.rapidchiplet.package import RoutingTable, links_of, router_cycles, routers_of
from tutti.formats.rapidchiplet.traffic import first_load, matrix_text, trace_text, units_of
from tutti.networks.flit.files.network_file import resolve_noc
from tutti.topologies import Topology
from tutti.topologies.errors import TopologyError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tutti.formats.rapidchiplet.package import PackageLink

_CYCLE_PS: Final = 1000
_OWN: Final = ("mode", "precision", "saturation_factor", "ignore_cycles", "router_latency")
"""Keys of the configuration that RapidChiplet reads, and not BookSim."""
_SET: Final = {
    "topology": "anynet", "routing_function": "min", "credit_delay": 0, "routing_delay": 0,
    "vc_alloc_delay": 1, "sw_alloc_delay": 1, "st_prepare_delay": 0, "st_final_delay": 1,
    "input_speedup": 1, "output_speedup": 1, "internal_speedup": 1, "use_read_write": 0,
    "injection_process": "bernoulli", "traffic": "uniform",
}  # fmt: skip
"""Keys that RapidChiplet assigns, whatever the configuration states; the pipeline is set below."""


def load(path: Path, changes: Sequence[str] = (), *, is_lenient: bool = False) -> ConvertedNoc:
    """Reads a design, with keys of its BookSim configuration replaced, and converts it.

    Args:
        path: The design file.
        changes: Keys and values, each ``KEY=VALUE``.
        is_lenient: Whether to skip keys that RapidChiplet or BookSim do not have.

    Raises:
        ConfigError: A file is missing or invalid, or tutti has no equivalent.
    """
    files = read_design(path)
    if not is_lenient:
        refuse_unknown(files)
    own, given = _configuration(files, changes, is_lenient=is_lenient)
    remarks = given.remarks
    remarks += [f"{place} is not a key of RapidChiplet: skipped" for place in files.unknown]
    pipeline, extra = _pipelines(files, own, given)
    links = links_of(files)
    bits = max((link.bits for link in links if link.bits), default=256)
    graph = _graph(files, path.stem, links, extra, bits)
    tables = routers_and_window(given)
    tables["flit"] = f"{_flit_bytes(bits)} B"
    tables["router"] |= pipeline
    table = RoutingTable(files, files.table("routing_table"), links)
    routing = source_routed(graph, units_of(files), table.path, source=str(path))
    tables["topology"] = {"file": f"{path.stem}.topology.json", "routing": routing}
    if any(link.bits and link.bits < bits for link in links):
        tables["topology"]["narrow_links"] = "serialize"
    tables["traffic"], texts = _traffic(files, own, given, path.stem)
    if "trace" in tables["traffic"]:
        del tables["measure"]
    _describe(files, links, bits, remarks)
    noc = resolve_noc(tables, source=str(path), folder=path.parent, topology=graph, texts=texts)
    ignored = (given.config.given & TABLES.without_meaning) | files.not_honoured
    ignored |= {key for key in ("precision", "saturation_factor") if key in own}
    return ConvertedNoc(noc=noc, tables=tables, texts=texts, remarks=tuple(remarks),
                        not_honoured=tuple(sorted(ignored)))  # fmt: skip


# --- configuration of BookSim ---------------------------------------------------------------------


def _configuration(
    files: DesignFiles, changes: Sequence[str], *, is_lenient: bool
) -> tuple[dict[str, Any], BookSimInput]:
    """Returns RapidChiplet's own keys, and those of BookSim completed by what RapidChiplet sets."""
    source = files.place("booksim_config")
    stated = files.table("booksim_config") if files.has("booksim_config") else {}
    places = {}
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals or not key.strip():
            raise mistake("is not KEY=VALUE", source=f"argument {shown(change)}",
                          expected="such as num_vcs=8")  # fmt: skip
        stated[key.strip()] = value.strip()
        places[key.strip()] = f"argument {shown(change)}"
    own: dict[str, Any] = {key: _number_or_text(stated.pop(key)) for key in _OWN if key in stated}
    mode = own.get("mode", "traffic")
    if mode not in ("traffic", "trace"):  # a list cannot be in a set
        raise mistake("unknown mode", source=places.get("mode", source), key="mode",
                      value=shown(mode), expected="traffic or trace")  # fmt: skip
    set_by_tool = sorted(stated.keys() & _SET.keys())
    stated = first_load(mode, {key: stated[key] for key in stated if key not in _SET})
    text = "".join(f"{key} = {_booksim_value(source, key, value)};\n"
                   for key, value in stated.items())  # fmt: skip
    config = parse(text + "".join(f"{key} = {value};\n" for key, value in _SET.items()),
                   source=source)  # fmt: skip
    given = BookSimInput(config=config, source=source, changes=places, is_lenient=is_lenient)
    if set_by_tool:
        keys = ", ".join(set_by_tool)
        given.remarks.append(f"RapidChiplet sets {keys} itself: the values are ignored")
    if not files.has("booksim_config"):
        given.remarks.append("the design has no `booksim_config`: BookSim's defaults")
    return own, given


def _number_or_text(value: object) -> object:
    """Returns the number that a text represents, as on the command line."""
    if not isinstance(value, str):
        return value
    try:
        return float(value)
    except ValueError:
        return value


def _booksim_value(source: str, key: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float | str) or value == "":
        raise mistake("is not a value of BookSim", source=source, key=key[:60], value=shown(value),
                      expected="a number or a name")  # fmt: skip
    return str(value)


def _pipelines(
    files: DesignFiles, own: dict[str, Any], given: BookSimInput
) -> tuple[dict[str, Any], list[int]]:
    """Returns the keys of the pipeline of all routers, and what each router takes in addition."""
    cycles = router_cycles(files)
    if "router_latency" in own:
        value = own["router_latency"]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= 1e4:
            raise mistake(
                "is out of range", source=given.place("router_latency"), key="router_latency",
                value=shown(value), expected="1 to 10,000",
            )  # fmt: skip
        cycles = [math.ceil(value)] * len(cycles)
    base = min(cycles)
    if max(cycles) > base:
        given.remarks.append(
            f"routers take {base} to {max(cycles)} cycles: the difference is on their outgoing "
            "links; RapidChiplet's BookSim takes the mean for all"
        )
    is_speculative = given.config.speculative > 0 or base == 1
    pipeline: dict[str, Any] = {"traversal_delay": base - (1 if is_speculative else 2)}
    if base == 1 and given.config.speculative <= 0:
        pipeline["speculation"] = {}
    return pipeline, [each - base for each in cycles]


# --- tables ---------------------------------------------------------------------------------------


def _flit_bytes(bits: int) -> int:
    """Returns the bytes of a flit: what the widest link carries per cycle in one direction."""
    return max(bits // 16, 1)


def _graph(
    files: DesignFiles, name: str, links: list[PackageLink], extra: list[int], widest: int
) -> Topology:
    """Returns the graph: a router for each chiplet and interposer router, a node for each unit."""
    units = units_of(files)
    flit_ps = _flit_bytes(widest) * 10**12

    def rate(bits: int | None) -> _core.TimePerByte:
        share = bits or widest
        return TimePerByte.parse(f"{-(-flit_ps * share // (widest * _CYCLE_PS))} B/s").core

    full = rate(None)
    listed: list[tuple[int, int, tuple[_core.TimePerByte, int, int | None]]] = []
    for unit, router in enumerate(units):
        listed.append((unit, len(units) + router, (full, _CYCLE_PS, None)))
        listed.append((len(units) + router, unit, (full, (1 + extra[router]) * _CYCLE_PS, None)))
    for link in links:
        time = (link.cycles + extra[link.start]) * _CYCLE_PS
        ends = len(units) + link.start, len(units) + link.end
        listed.append((*ends, (rate(link.bits), time, link.um)))
    npus = [f"npu{unit}" for unit in range(len(units))]
    routers = [("router", f"router{router}") for router in range(routers_of(files))]
    try:
        return Topology(_core.Topology.from_links(name, npus, routers, listed))
    except TopologyError as error:
        raise mistake(error.problem, source=files.place("topology"), hint=error.hint) from None


def _traffic(
    files: DesignFiles, own: dict[str, Any], given: BookSimInput, name: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns the traffic table, and the matrix or trace that it names."""
    if own.get("mode") == "trace":
        ignores = own.get("ignore_cycles", 0) != 0
        file = f"{name}.trace.csv"
        return {"trace": file}, {file: trace_text(files, given.remarks, ignores_cycles=ignores)}
    config = given.config
    if config.classes != 1:
        raise given.refused("classes", "1: RapidChiplet has one class of packets")
    sizes, weights = config.per_class("packet_size")[0], config.per_class("packet_size_rate")[0]
    packet, mean = packet_of(given, sizes, weights)
    load = config.per_class("injection_rate")[0]
    if load < 0:
        raise given.refused("injection_rate", "0 or more", problem="is out of range")
    if (
        "injection_rate" not in given.changes
        and load == first_load("traffic", {})["injection_rate"]
    ):
        given.remarks.append("load 0.001, the first one of RapidChiplet; --loads sweeps others")
    rate = load if config.injection_rate_uses_flits else load * mean
    file = f"{name}.matrix.txt"
    table = {"matrix": file, "process": "bernoulli", "rate": rate, "packet": packet}
    return table, {file: matrix_text(files, given.remarks)}


def _describe(
    files: DesignFiles, links: list[PackageLink], widest: int, remarks: list[str]
) -> None:
    """Adds widths and powers, which the format gives and tutti does not simulate."""
    remarks.append(
        f"a flit has {_flit_bytes(widest)} B: the widest link carries {widest / 2:g} bits per "
        f"cycle and direction; a cycle is {CYCLE}"
    )
    chiplets = sum(files.chiplet(n).power for n in range(len(files.placement.chiplets)))
    routers = (files.packaging.power_irouter or 0) * len(files.placement.interposer_routers)
    text = f"power of chiplets {chiplets:g} W and interposer routers {routers:g} W"
    if files.packaging.link_power_type == "constant" and not isinstance(
        files.packaging.link_power, str
    ):
        text += f", of links {files.packaging.link_power * len(links) / 2:g} W"
    remarks.append(f"{text}: constant, so not in energies; [energy] selects technologies")
