"""Converts a configuration of Noxim to a network file of `tutti noc`.

Timing of Noxim's routers (`Router.cpp`, `ProcessingElement.cpp`): a flit that a router stores in
cycle t leaves in t + 1 and is stored by the next router in t + 2. Links have an alternating bit
protocol, whose acknowledgement takes a cycle: they carry a flit every second cycle. A packet keeps
its VC, drawn at its source, on all links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tutti.base.files.mistakes import mistake, shown
from tutti.formats.converted import ConvertedNoc, link_rate
from tutti.formats.noxim.reader import NOT_HONOURED, Given
from tutti.networks.flit.files.network_file import resolve_noc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tutti.formats.formats import Options
    from tutti.formats.noxim.reader import NoximConfig
    from tutti.topologies import Topology

_CYCLES_PER_FLIT: Final = 2
_MOST_NODES: Final = 1 << 14


def load(path: Path, changes: Sequence[str] = ()) -> ConvertedNoc:
    """Reads a configuration, with keys replaced, and converts it.

    Args:
        path: The file.
        changes: Keys and values, each ``KEY=VALUE``.

    Raises:
        ConfigError: The file is invalid, or has what tutti does not model; all such keys are
            listed with their lines.
    """
    given = Given(path, changes)
    _refuse_unsupported(given)
    config = given.config
    tables: dict[str, Any] = {
        "cycle": f"{config.clock_period_ps} ps",
        "flit": f"{config.flit_size // 8} B",
        "seed": config.rnd_generator_seed,
        "topology": _topology(config),
        "router": {
            "vcs": config.n_virtual_channels,
            "buffer": config.buffer_depth,
            "traversal_delay": 0,
            "speculation": {},
            **({"injection": 0.5, "ejection": 0.5} if config.topology == "MESH" else {}),
        },
        "traffic": _traffic(given),
        "measure": {
            "warmup": config.stats_warm_up_time,
            "measure": config.simulation_time - config.stats_warm_up_time,
        },
    }
    noc = resolve_noc(tables, source=given.source, folder=path.parent)
    honoured = tuple(sorted(given.keys & set(NOT_HONOURED)))
    return ConvertedNoc(noc=noc, tables=tables, texts={}, remarks=_remarks(given),
                        not_honoured=honoured)  # fmt: skip


def _remarks(given: Given) -> tuple[str, ...]:
    config = given.config
    remarks = ["links carry a flit every second cycle, as the handshake of Noxim's routers does"]
    if config.n_virtual_channels > 1:
        remarks.append("a traffic class per VC: packets of Noxim keep the VC drawn at the source")
        if config.probability_of_retransmission != config.packet_injection_rate:
            remarks.append("bursts are drawn for each VC; in Noxim, all VCs of a node share them")
    if "rnd_generator_seed" not in given.keys:
        remarks.append("seed 1; Noxim takes the time of day")
    return tuple(remarks)


def read_topology(path: Path, options: Options) -> tuple[Topology, tuple[str, ...]]:
    """Reads the network of a configuration for `tutti convert`."""
    found = load(path, options.set)
    lost = ("routers, traffic and measurement: use `tutti noc from-noxim`",)
    return found.noc.network.topology, lost


# --- what tutti does not model --------------------------------------------------------------------


def _refuse_unsupported(given: Given) -> None:
    """Rejects all values without a counterpart at once."""
    problems = {key: text for key, text in _unsupported(given.config) if text}
    if problems:
        config = given.config
        lines = "".join(
            f"\n  {given.place(key)}: {key} = {shown(getattr(config, key))}: {text}"
            for key, text in problems.items()
        )
        raise mistake(
            f"has values that tutti does not model:{lines}",
            source=given.source,
            expected="a wired mesh or butterfly with deterministic routing",
            hint="replace a value on the command line, such as routing_algorithm=XY",
        )


_ADAPTIVE: Final = ("WEST_FIRST", "NORTH_LAST", "NEGATIVE_FIRST", "ODD_EVEN", "DYAD")
_TRAFFIC: Final = {
    "TRAFFIC_TABLE_BASED": "write the table as a matrix of tutti (`traffic.matrix`)",
    "TRAFFIC_HARDCODED": "write the packets as a trace of tutti (`traffic.trace`)",
    "TRAFFIC_LOCAL": "expected a pattern without hubs",
    "TRAFFIC_ULOCAL": "expected a pattern without distances",
    "TRAFFIC_HOTSPOT": "its hotspots are on Noxim's command line: use the pattern `hotspot`",
}


def _unsupported(config: NoximConfig) -> list[tuple[str, str]]:
    """Returns keys and, where the value has no counterpart, the reason."""
    mesh = config.topology == "MESH"
    tiles = config.n_delta_tiles
    routing = config.routing_algorithm
    expected = "XY" if mesh else "DELTA"
    turns = "tutti has no turn model; XY, or minimal_adaptive in a network file"
    return [
        ("use_winoc", "wireless hubs" if config.use_winoc else ""),
        ("winoc_dst_hops", "wireless hubs" if config.winoc_dst_hops else ""),
        ("use_wirxsleep", "power states" if config.use_wirxsleep else ""),
        ("topology", "its stages differ from a butterfly"
         if config.topology in {"OMEGA", "BASELINE"} else ""),
        ("routing_algorithm", "" if routing == expected else
         turns if routing in _ADAPTIVE else f"expected {expected}"),
        ("traffic_distribution", _TRAFFIC.get(config.traffic_distribution, "")),
        ("max_volume_to_be_drained", "runs end by time"
         if config.max_volume_to_be_drained else ""),
        ("flit_size", "expected a multiple of 8 bits" if config.flit_size % 8 else ""),
        ("max_packet_size", "is below min_packet_size"
         if config.max_packet_size < config.min_packet_size else ""),
        ("max_packet_size", "expected at most 64 sizes"
         if config.max_packet_size - config.min_packet_size >= 64 else ""),
        ("stats_warm_up_time", "is not below simulation_time"
         if config.stats_warm_up_time >= config.simulation_time else ""),
        ("mesh_dim_x", "expected 2 or more" if mesh and config.mesh_dim_x < 2 else ""),
        ("mesh_dim_y", "expected 2 or more" if mesh and config.mesh_dim_y < 2 else
         f"expected at most {_MOST_NODES:,} nodes"
         if config.mesh_dim_x * config.mesh_dim_y > _MOST_NODES else ""),
        ("n_delta_tiles", "expected a power of two, 4 or more"
         if not mesh and (tiles < 4 or tiles & (tiles - 1)) else ""),
        *_needs_of_traffic(config),
    ]  # fmt: skip


def _needs_of_traffic(config: NoximConfig) -> list[tuple[str, str]]:
    name, nodes = config.traffic_distribution, _nodes(config)
    bits = name in {"TRAFFIC_BIT_REVERSAL", "TRAFFIC_SHUFFLE", "TRAFFIC_BUTTERFLY"}
    grid = name in {"TRAFFIC_TRANSPOSE1", "TRAFFIC_TRANSPOSE2"}
    if bits and (config.topology != "MESH" or nodes & (nodes - 1)):
        return [("traffic_distribution", "expected a mesh with a power of two of nodes")]
    if grid and (config.topology != "MESH" or config.mesh_dim_x != config.mesh_dim_y):
        return [("traffic_distribution", "expected a square mesh")]
    return []


# --- tables ---------------------------------------------------------------------------------------


def _nodes(config: NoximConfig) -> int:
    mesh = config.topology == "MESH"
    return config.mesh_dim_x * config.mesh_dim_y if mesh else config.n_delta_tiles


def _topology(config: NoximConfig) -> dict[str, Any]:
    if config.topology == "MESH":
        build, routing = f"mesh:{config.mesh_dim_x}x{config.mesh_dim_y}", "dimension_order"
    else:
        build = f"butterfly:2:{config.n_delta_tiles.bit_length() - 1}"
        routing = "shortest_path"
    flit_ps = _CYCLES_PER_FLIT * config.clock_period_ps
    link: dict[str, Any] = {
        "rate": link_rate(config.flit_size // 8, flit_ps),
        "latency": f"{config.clock_period_ps} ps",
    }
    if config.r2r_link_length:
        link["length"] = f"{config.r2r_link_length:g} mm"
    return {"build": build, "links": [link], "routing": routing, "narrow_links": "serialize"}


def _traffic(given: Given) -> dict[str, Any] | list[dict[str, Any]]:
    """Returns a class for each VC: packets keep the VC that is drawn at the source."""
    config = given.config
    sizes = range(config.min_packet_size, config.max_packet_size + 1)
    again, first = config.probability_of_retransmission, config.packet_injection_rate
    packets = first / (first + 1 - again)
    process = "bernoulli"
    if again != first:
        process = f"on_off:alpha={first!r},beta={1 - again!r}"
    table = {
        "pattern": _pattern(config),
        "process": process,
        "rate": packets * (sizes[0] + sizes[-1]) / 2 / config.n_virtual_channels,
        "packet": sizes[0] if len(sizes) == 1 else ",".join(map(str, sizes)),
    }
    if config.n_virtual_channels == 1:
        return table
    return [{**table, "vcs": [vc, vc]} for vc in range(config.n_virtual_channels)]


def _pattern(config: NoximConfig) -> str:
    name, nodes = config.traffic_distribution, _nodes(config)
    if name == "TRAFFIC_RANDOM":
        return "uniform_others"
    destination = _DESTINATIONS[name]
    bits, side = max(nodes.bit_length() - 1, 1), config.mesh_dim_x
    found = (destination(node, bits, side) for node in range(nodes))
    return "destinations:" + ",".join(map(str, found))


def _transposed(node: int, _bits: int, side: int) -> int:
    return node % side * side + node // side


def _mirrored(node: int, _bits: int, side: int) -> int:
    return (side - 1 - node % side) * side + side - 1 - node // side


def _reversed(node: int, bits: int, _side: int) -> int:
    return int(f"{node:0{bits}b}"[::-1], 2)


def _shuffled(node: int, bits: int, _side: int) -> int:
    return (node << 1 | node >> (bits - 1)) & ((1 << bits) - 1)


def _swapped(node: int, bits: int, _side: int) -> int:
    text = f"{node:0{bits}b}"
    return int(text[-1] + text[1:-1] + text[0], 2) if bits > 1 else node


_DESTINATIONS: Final[dict[str, Callable[[int, int, int], int]]] = {
    "TRAFFIC_TRANSPOSE1": _mirrored,
    "TRAFFIC_TRANSPOSE2": _transposed,
    "TRAFFIC_BIT_REVERSAL": _reversed,
    "TRAFFIC_SHUFFLE": _shuffled,
    "TRAFFIC_BUTTERFLY": _swapped,
}
"""The destination of a node: its bits, and the columns of the mesh."""
