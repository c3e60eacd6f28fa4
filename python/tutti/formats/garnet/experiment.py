"""Converts a network of Garnet and its synthetic traffic to a network file of `tutti noc`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tutti import _core
from tutti.base.files import limits
from tutti.base.files.mistakes import mistake, shown
from tutti.base.files.reader import read_text
from tutti.base.units import TimePerByte
from tutti.formats.converted import ConvertedNoc, link_rate
from tutti.formats.flows import source_routed
from tutti.formats.garnet.network import MOST_VCS
from tutti.formats.garnet.patterns import PATTERNS, destinations, needed
from tutti.formats.garnet.routes import mesh_of, routes_of
from tutti.formats.garnet.run_config import integer, read_run
from tutti.formats.garnet.settings import Given, Stated, period_ps
from tutti.formats.garnet.topology import read_script
from tutti.networks.flit.files.network_file import resolve_noc
from tutti.topologies import Topology
from tutti.view.quantity import counted, plural

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tutti.formats.formats import Options
    from tutti.formats.garnet.network import GarnetNetwork
    from tutti.formats.garnet.routes import Mesh, Routes
    from tutti.formats.garnet.run_config import RunConfig

_EXPECTED: Final = "a topology script of gem5, or the config.ini or config.json of a run"
_HEADER: Final = 8
"""Bytes of a control message, and of the header of a data message."""


@dataclass(frozen=True, kw_only=True)
class GarnetInput:
    """What a file and the command line state.

    Attributes:
        network: The network.
        given: The options, completed by those of a run.
        cycle_ps: The clock period of the network.
        injection_ps: The clock period of the nodes, to which the injection rate refers.
        remarks: Differences from gem5.
    """

    network: GarnetNetwork
    given: Given
    cycle_ps: int
    injection_ps: int
    remarks: list[str]

    @property
    def cycle(self) -> str:
        """The clock period, with its unit."""
        return f"{self.cycle_ps} ps"

    @property
    def flit(self) -> int:
        """Bytes of a flit, which a link carries per cycle."""
        return self.given.settings.link_width_bits // 8

    @property
    def router_vcs(self) -> list[int]:
        """VCs per vnet of each router."""
        own, other = self.network.router_vcs, self.given.settings.vcs_per_vnet
        return [own.get(router, other) for router in range(self.network.routers)]

    @property
    def most_vcs(self) -> int:
        """The most VCs per vnet."""
        return max(self.router_vcs)

    @property
    def rate(self) -> str:
        """The rate of a link."""
        return link_rate(self.flit, self.cycle_ps)


def is_script(text: str) -> bool:
    """Returns whether a text is a Python script, and not the configuration of a run."""
    return re.search(r"(?m)^\s*\[[\w.]+\]\s*$", text) is None and text.lstrip()[:1] != "{"


def read(path: Path, changes: Sequence[str] = ()) -> GarnetInput:
    """Reads a topology script, or the configuration of a run.

    Args:
        path: The file.
        changes: Options of gem5, each ``KEY=VALUE``.

    Raises:
        ConfigError: The file or an option is invalid, or not modelled.
    """
    source = str(path)
    text = read_text(path, limits.Bytes.SCHEDULE, _EXPECTED)
    if is_script(text):
        return _of_script(text, changes, source)
    return _of_run(read_run(text, source=source), changes, source)


def load(path: Path, changes: Sequence[str] = ()) -> ConvertedNoc:
    """Reads a file and converts it.

    Raises:
        ConfigError: As for `read`, or tutti has no equivalent.
    """
    found = read(path, changes)
    tables, graph = _tables(found, path.stem)
    noc = resolve_noc(tables, source=str(path), folder=path.parent, topology=graph)
    return ConvertedNoc(noc=noc, tables=tables, texts={}, remarks=tuple(found.remarks),
                        not_honoured=found.given.not_honoured)  # fmt: skip


def read_topology(path: Path, options: Options) -> tuple[Topology, tuple[str, ...]]:
    """Reads the graph of a file for `tutti convert`.

    Raises:
        ConfigError: As for `read`.
        TopologyError: The graph is not a topology.
    """
    found = read(path, options.set)
    weights = {link.weight for link in found.network.int_links}
    lost = ["routers and traffic: use `tutti noc from-garnet`"]
    if len(weights) > 1:
        lost.append("weights of links, which select routes")
    return _graph(found, path.stem), tuple(lost)


# --- input ----------------------------------------------------------------------------------------


def _of_script(text: str, changes: Sequence[str], source: str) -> GarnetInput:
    if len(text) > limits.Bytes.CONFIG:
        raise mistake("is too large for a script", source=source,
                      expected=f"at most {limits.Bytes.CONFIG:,} characters")  # fmt: skip
    given = Given(changes, source=source)
    options = given.options()
    network = read_script(text, options, source=source)
    given.refuse_unread(options.read)
    periods = [period_ps(given.settings.ruby_clock), period_ps(given.settings.sys_clock)]
    for key, period in zip(("ruby_clock", "sys_clock"), periods, strict=True):
        if period is None:
            raise given.refused(key, "a frequency such as 2GHz", problem="is not a clock")
    cycle, injection = (period or 1 for period in periods)
    stated, cycles = given.settings.router_latency, network.router_cycles
    remarks = []
    if "router_latency" in given.changed and cycles != stated:
        remarks.append(
            f"router_latency = {stated} has no effect: the script's routers take "
            f"{plural(cycles, 'cycle')}"
        )
    return GarnetInput(network=network, given=given, cycle_ps=cycle, injection_ps=injection,
                       remarks=remarks)  # fmt: skip


_OF_NETWORK: Final = {
    "vcs_per_vnet": "vcs_per_vnet",
    "buffers_per_data_vc": "buffers_per_data_vc",
    "buffers_per_ctrl_vc": "buffers_per_ctrl_vc",
    "routing_algorithm": "routing_algorithm",
    "garnet_deadlock_threshold": "garnet_deadlock_threshold",
    "data_msg_size": "cacheline_size",
    "enable_fault_model": "network_fault_model",
}
_OF_TESTER: Final = {
    "inj_rate": "injectionrate",
    "traffic_type": "synthetic",
    "inj_vnet": "inj_vnet",
    "single_sender": "single_sender_id",
    "single_dest": "single_dest_id",
    "num_packets_max": "num_packets_max",
}
_OF_CONTROLLERS: Final = ("num_cpus", "num_l2caches", "num_dirs", "num_dmas", "mesh_rows",
                          "topology", "link_latency", "ruby_clock", "sys_clock")  # fmt: skip


def _of_run(run: RunConfig, changes: Sequence[str], source: str) -> GarnetInput:
    """Returns what a run states; options replace the keys of Garnet and of the traffic."""
    width = 8 * integer(run.parameters, "ni_flit_size", 1, 1 << 16)
    place = run.parameters.place
    stated = [Stated("link_width_bits", str(width), "ni_flit_size", place)]
    for section, keys in ((run.parameters, _OF_NETWORK), (run.traffic, _OF_TESTER)):
        stated += [
            Stated(option, section.values[key], key, section.place)
            for key, option in keys.items()
            if section is not None and key in section.values
        ]
    Given((), source=source, stated=stated)
    for key in (each.partition("=")[0].strip().lstrip("-").replace("-", "_") for each in changes):
        if key in _OF_CONTROLLERS:
            raise mistake("has no effect", source=f"argument {shown(key)}",
                          expected=f"no {key}: {source} states it")  # fmt: skip
    given = Given(changes, source=source, stated=stated)
    given.refuse_unread()
    cycle, injection = run.cycles_ps
    remarks = []
    if run.traffic is None:
        remarks.append("the run has no GarnetSyntheticTraffic: uniform traffic is assumed")
    return GarnetInput(network=run.network, given=given, cycle_ps=cycle, injection_ps=injection,
                       remarks=remarks)  # fmt: skip


# --- tables ---------------------------------------------------------------------------------------


def _tables(found: GarnetInput, name: str) -> tuple[dict[str, Any], Topology | None]:
    settings = found.given.settings
    if settings.network_fault_model:
        raise found.given.refused("network_fault_model", "false: routers are fault-free")
    if settings.network != "garnet":
        raise found.given.refused("network", "garnet")
    merged = _merged(found)
    routes = routes_of(merged.network)
    mesh = _mesh(merged, routes)
    topology, graph = topology_table(merged, routes, mesh, name)
    router = {**_router(merged), **({} if mesh is None else _ports(merged))}
    smaller = _smaller_routers(merged, "router" if mesh is None else "npu")
    traffic = _traffic(merged)
    return {
        "cycle": merged.cycle,
        "flit": f"{merged.flit} B",
        "topology": topology,
        "router": router,
        **({"routers": smaller} if smaller else {}),
        "traffic": traffic[0] if len(traffic) == 1 else traffic,
    }, graph


def _merged(found: GarnetInput) -> GarnetInput:
    """Returns the network with one node for an L1 cache and a directory of the same router.

    In the protocol Garnet_standalone, L1 caches only send and directories only receive.
    """
    network = found.network
    half, odd = divmod(len(network.controllers), 2)
    kinds = ("L1Cache_Controller",) * half + ("Directory_Controller",) * half
    pairs = list(zip(network.ext_links[:half], network.ext_links[half:], strict=not odd))
    alike = all(a.router == b.router and a.cycles == b.cycles for a, b in pairs)
    if odd or network.controllers != kinds or not alike:
        return found
    found.remarks.append("L1 cache and directory N are node N: one only sends, one only receives")
    merged = replace(network, controllers=kinds[:half], ext_links=network.ext_links[:half])
    return replace(found, network=merged)


def _mesh(found: GarnetInput, routes: Routes) -> Mesh | None:
    """Returns the mesh of one node per router, if the network is one."""
    links = found.network.ext_links
    mesh = mesh_of(found.network, routes)
    if [link.router for link in links] != list(range(found.network.routers)):
        mesh = None
    if len({link.cycles for link in links}) != 1:
        mesh = None
    algorithm = found.given.settings.routing_algorithm
    if algorithm == 2 or (algorithm == 1 and mesh is None):
        raise found.given.refused(
            "routing_algorithm",
            "0, the routing table, or in a mesh of one node per router 1 (XY)",
            hint="custom routing is C++ code in RoutingUnit.cc",
        )
    return mesh._replace(routing="dimension_order") if mesh and algorithm == 1 else mesh


def topology_table(
    found: GarnetInput, routes: Routes, mesh: Mesh | None, name: str
) -> tuple[dict[str, Any], Topology | None]:
    """Returns the topology table: a mesh, or a graph with its routes.

    Raises:
        ConfigError: The graph has too many routes.
    """
    if mesh is not None:
        latency = f"{found.network.int_links[0].cycles * found.cycle_ps} ps"
        links = [{"rate": found.rate, "latency": latency}]
        build = f"mesh:{mesh.columns}x{mesh.rows}"
        return {"build": build, "links": links, "routing": mesh.routing}, None
    if routes.equal:
        found.remarks.append(
            f"{plural(routes.equal, 'route')} with several links of the least weight: the first "
            "one is taken, as in an ordered vnet; other vnets of Garnet draw one"
        )
    graph = _graph(found, name)
    return {"file": f"{name}.json", "routing": _flows(found, routes, graph)}, graph


def _flows(found: GarnetInput, routes: Routes, graph: Topology) -> str:
    """Returns the routing that carries each route as output ports."""
    nodes = [link.router for link in found.network.ext_links]
    return source_routed(graph, nodes, routes.path, source=found.network.source)


def _graph(found: GarnetInput, name: str) -> Topology:
    network, rate = found.network, TimePerByte.parse(found.rate).core
    npus = len(network.controllers)

    def parameters(cycles: int) -> tuple[_core.TimePerByte, int, int | None]:
        return rate, cycles * found.cycle_ps, None

    links = []
    for link in network.ext_links:
        ends = link.controller, npus + link.router
        links += [(*ends, parameters(link.cycles)), (*ends[::-1], parameters(link.cycles))]
    links += [
        (npus + link.start, npus + link.end, parameters(link.cycles)) for link in network.int_links
    ]
    core = _core.Topology.from_links(
        name,
        [f"npu{npu}" for npu in range(npus)],
        [("router", f"router{router}") for router in range(network.routers)],
        links,
    )
    return Topology(core)


def _router(found: GarnetInput) -> dict[str, Any]:
    """Returns the routers: a flit requests VC and switch at once, and leaves in the next cycle."""
    settings = found.given.settings
    vnets = _vnets(found)
    data, control = settings.buffers_per_data_vc, settings.buffers_per_ctrl_vc
    # A VC holds one packet: deeper buffers do not matter for packets that fit.
    if len(vnets) > 1 and data != control < -(-_HEADER // found.flit):
        expected = f"{data}, as buffers_per_data_vc, for control messages of several flits"
        raise found.given.refused("buffers_per_ctrl_vc", expected)
    return {
        "vcs": _vcs(found, len(vnets)),
        "buffer": control if 2 not in vnets else data if vnets == [2] else max(data, control),
        "routing_delay": found.network.router_cycles - 1,
        "traversal_delay": 0,
        "speculation": {},
        "wait_for_tail_credit": True,
    }


def _vcs(found: GarnetInput, vnets: int) -> int:
    """Returns the VCs of a port.

    Raises:
        ConfigError: They are more than a router of tutti has.
    """
    each, stated = found.most_vcs, found.given.settings.vcs_per_vnet
    if each * vnets <= MOST_VCS:
        return each * vnets
    router = "" if each == stated else f"router {found.router_vcs.index(each)}: "
    raise found.given.refused(
        "vcs_per_vnet",
        f"at most {MOST_VCS // vnets} for {plural(vnets, 'vnet')}: a port has up to {MOST_VCS} VCs",
        problem=f"{router}{plural(vnets, 'vnet')} of {each} VCs are {each * vnets} VCs of a port",
        hint="inj_vnet=0, 1 or 2 simulates one vnet" if vnets > 1 else "",
    )


def _smaller_routers(found: GarnetInput, prefix: str) -> list[dict[str, Any]]:
    """Returns an entry for each number of VCs below the largest.

    In Garnet a VC of a vnet is one of those of the receiving router, and the same for both
    directions of the link to a controller.

    Args:
        found: The network.
        prefix: What precedes the number of a router in its name.
    """
    routers: dict[int, list[int]] = {}
    for router, vcs in enumerate(found.router_vcs):
        if vcs < found.most_vcs:
            routers.setdefault(vcs, []).append(router)
    fewer = {router for group in routers.values() for router in group}
    ejects = [link for link in found.network.ext_links if link.router in fewer]
    if ejects:
        found.remarks.append(
            f"{plural(len(ejects), 'node')} at routers with fewer VCs receive on {found.most_vcs} "
            "VCs per vnet, in Garnet on those of their router; they store no flits, so this only "
            "matters where tail credits limit ejection"
        )
    return [
        {"at": [f"{prefix}{router}" for router in group], "vcs_per_class": vcs}
        for vcs, group in sorted(routers.items())
    ]


def _ports(found: GarnetInput) -> dict[str, Any]:
    return {"port_latency": found.network.ext_links[0].cycles}


def _vnets(found: GarnetInput) -> list[int]:
    chosen = found.given.settings.inj_vnet
    return [0, 1, 2] if chosen < 0 else [chosen]


def _traffic(found: GarnetInput) -> list[dict[str, Any]]:
    """Returns a class for each vnet: 0 and 1 carry control messages, 2 carries data."""
    settings = found.given.settings
    for key in ("single_sender_id", "single_dest_id", "num_packets_max"):
        if getattr(settings, key) >= 0:
            raise found.given.refused(key, "-1, or a pattern of tutti in the written file")
    pattern = _pattern(found)
    vnets = _vnets(found)
    packets = settings.injectionrate * found.cycle_ps / found.injection_ps / len(vnets)
    data = -(-(_HEADER + settings.cacheline_size) // found.flit)
    sizes = {2: data}
    control = -(-_HEADER // found.flit)
    if found.cycle_ps != found.injection_ps:
        found.remarks.append(
            f"nodes create packets at a clock of {found.injection_ps} ps (sys_clock) and the "
            f"network has one of {found.cycle_ps} ps: "
            f"{counted(f'{settings.injectionrate:g}', 'packet')} per cycle of a node are "
            f"{settings.injectionrate * found.cycle_ps / found.injection_ps:g} per cycle of the "
            "network"
        )
    return [
        {
            "pattern": pattern,
            "rate": packets * sizes.get(vnet, control),
            "packet": sizes.get(vnet, control),
            "vcs": [place * found.most_vcs, (place + 1) * found.most_vcs - 1],
        }
        for place, vnet in enumerate(vnets)
    ]


def _pattern(found: GarnetInput) -> str:
    name = found.given.settings.synthetic
    kinds = found.network.controllers
    if name not in PATTERNS:
        raise found.given.refused("synthetic", ", ".join(PATTERNS))
    if len(set(kinds)) > 1:
        if name != "uniform_random":
            raise found.given.refused(
                "synthetic", "uniform_random with several kinds of controllers"
            )
        return _to_directories(found)
    if name == "uniform_random":
        return "uniform"
    if problem := needed(name, len(kinds)):
        raise found.given.refused("synthetic", problem, problem=f"has {plural(len(kinds), 'node')}")
    return "destinations:" + ",".join(map(str, destinations(name, len(kinds))))


def _to_directories(found: GarnetInput) -> str:
    """Returns uniform traffic from L1 caches to directories, as testers send it."""
    kinds = found.network.controllers
    row = ",".join("1" if kind == "Directory_Controller" else "0" for kind in kinds)
    none = ",".join("0" for _ in kinds)
    if "1" not in row:
        return "uniform"
    found.remarks.append("L1 caches send to directories only; no other controller sends")
    rows = [row if kind == "L1Cache_Controller" else none for kind in kinds]
    return "matrix:" + ";".join(rows)
