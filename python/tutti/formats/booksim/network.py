"""Converts a BookSim 2 configuration to a network: topology, routers, traffic and measurement.

Each key is converted, listed as ignored if it does not affect results, or rejected, as
`equivalents.toml` defines.

Examples:
    >>> from pathlib import Path
    >>> given = parse("topology = mesh; k = 4; routing_function = dor; num_vcs = 2;")
    >>> found = noc_of(given, source="four.cfg", folder=Path("."))
    >>> found.noc.network.topology.name, found.noc.network.router.vcs
    ('mesh:4x4', 2)
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tutti.base.errors import ConfigError
from tutti.base.files import limits
from tutti.base.files.mistakes import did_you_mean, mistake, shown
from tutti.base.files.reader import read_text
from tutti.formats.booksim import anynet
from tutti.formats.booksim.equivalents import TABLES
from tutti.formats.booksim.reader import KEYS, BookSimConfig, lines_of, parse, repeated_keys
from tutti.formats.booksim.requests import LONGEST_BATCH
from tutti.formats.booksim.router import router
from tutti.formats.booksim.traffic import UNKNOWN_KEY, BookSimInput, traffic
from tutti.formats.booksim.unused import without_effect
from tutti.formats.converted import ConvertedNoc
from tutti.networks.flit.files.network_file import resolve_noc

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tutti.topologies import Topology


CYCLE = "1 ns"
FLIT = "16 B"
RATE = "16 GB/s"
"""BookSim counts cycles and flits; with these values a channel carries one flit per cycle."""


def noc_of(
    config: BookSimConfig,
    *,
    source: str,
    folder: Path,
    changes: Mapping[str, str] | None = None,
    lines: Mapping[str, int] | None = None,
    is_lenient: bool = False,
) -> ConvertedNoc:
    """Converts a BookSim configuration.

    Args:
        config: The configuration.
        source: The name of the configuration in errors.
        folder: The base of the relative path of a network file.
        changes: Names in errors, by key, of keys that are not from `source`.
        lines: Lines of keys in `source`, for errors.
        is_lenient: Whether to skip keys that BookSim does not have.

    Raises:
        ConfigError: A value is invalid, or tutti has no equivalent.
    """
    given = BookSimInput(config=config, source=source, folder=folder, changes=changes or {},
                         lines=lines or {}, is_lenient=is_lenient)  # fmt: skip
    tables, file = _tables(given)
    try:
        noc = resolve_noc(tables, source=source, folder=folder, topology=file, texts=given.texts)
    except ConfigError as error:
        raise _with_booksim_key(error, given) from None
    return ConvertedNoc(
        noc=noc,
        tables=tables,
        texts=given.texts,
        remarks=tuple(given.remarks),
        not_honoured=without_effect(config, has_trace=bool(given.window)),
    )


def _tables(given: BookSimInput) -> tuple[dict[str, Any], Topology | None]:
    """Returns the tables of the network file, and the graph if it is read from a file."""
    _collect_others(given)
    topology, graph = given.collect(partial(_topology, given), ({}, None))
    given.collect(partial(_check_vcs, given), None)
    found = traffic(given, topology)
    tables = {**_routers_and_window(given), "topology": topology, "traffic": found}
    given.check()
    return tables, graph


def routers_and_window(given: BookSimInput) -> dict[str, Any]:
    """Returns the tables of a network file without topology and traffic.

    Raises:
        ConfigError: A key has no counterpart.
    """
    _collect_others(given)
    tables = _routers_and_window(given)
    given.check()
    return tables


def _routers_and_window(given: BookSimInput) -> dict[str, Any]:
    return {
        "cycle": CYCLE,
        "flit": FLIT,
        "seed": given.collect(partial(_seed, given), 0),
        "router": router(given),
        "measure": given.collect(partial(_measure, given), {}),
    }


def load(
    path: str | Path, changes: Sequence[str] = (), *, is_lenient: bool = False
) -> ConvertedNoc:
    """Reads a configuration, with keys replaced as on BookSim's command line.

    Args:
        path: The file.
        changes: Keys and values, each ``KEY=VALUE``.
        is_lenient: Whether to skip keys that BookSim does not have.

    Raises:
        ConfigError: The file or a change cannot be parsed, or tutti has no equivalent.
    """
    path = Path(path)
    text = read_text(
        path, limits.Bytes.CONFIG, "a configuration file of BookSim", line=limits.LOG_LINE
    )
    parse(text, source=str(path))
    places: dict[str, str] = {}
    for change in changes:
        place = f"argument {shown(change)}"
        one = parse(f"{change};", source=place)
        places |= dict.fromkeys((*one.given, *one.unknown), place)
    repeated = repeated_keys(text, source=str(path))
    config = parse("\n".join([text, *(f"{change};" for change in changes)]), source=str(path))
    converted = noc_of(config, source=str(path), folder=path.parent, changes=places,
                       lines=lines_of(text, source=str(path)), is_lenient=is_lenient)  # fmt: skip
    return replace(converted, remarks=(*converted.remarks, *repeated))


def _with_booksim_key(error: ConfigError, given: BookSimInput) -> ConfigError:
    """Returns an error of the converted tables, with the BookSim key that it comes from."""
    ours = str(error.fields.get("key", ""))
    packet = re.match(r"line ([0-9]+) of the trace: ", str(error.fields.get("problem", "")))
    if packet:
        place = given.places.get(int(packet[1]), given.source)
        return mistake(str(error.fields["problem"])[packet.end() :], source=place)
    key = TABLES.keys.get(ours)
    if key is None:
        return error
    problem = error.problem.removeprefix(f"{given.source}: {ours}: ").partition("\n")[0]
    return mistake(
        problem.replace(f"`{ours.rpartition('.')[2]}`", f"`{key}`"),
        source=given.place(key),
        key=key,
        value=shown(getattr(given.config, key)),
        expected=str(error.fields.get("expected", "")),
        hint=error.hint,
    )


def _collect_others(given: BookSimInput) -> None:
    """Collects keys that BookSim does not have, and values without a counterpart."""
    if not given.is_lenient:
        given.errors.extend(_unknown(given, key) for key in given.config.unknown)
    given.errors.extend(
        given.refused(key, " or ".join(f"`{value}`" for value in known))
        for key, known in TABLES.must_be.items()
        if getattr(given.config, key) not in known
    )
    given.remarks.extend(
        f"{given.with_line(key)} is not a key of BookSim: skipped" for key in given.config.unknown
    )
    if given.config.sim_type == "throughput":
        given.remarks.append("throughput is measured over the same window as latency")
    if not given.config.include_queuing:
        given.remarks.append("`include_queuing = 0` corresponds to the network latency")


def _unknown(given: BookSimInput, key: str) -> ConfigError:
    hint = did_you_mean(key, KEYS) or UNKNOWN_KEY
    return mistake("is not a key of BookSim", source=given.place(key), key=key, hint=hint)


def _seed(given: BookSimInput) -> int:
    seed = given.config.seed
    if not isinstance(seed, int) or seed < 0:
        raise given.refused("seed", "an integer, 0 or more", hint="add seed=1")
    return seed


# --- the network ----------------------------------------------------------------------------------


def _topology(given: BookSimInput) -> tuple[dict[str, Any], Topology | None]:
    """Returns the topology table, and the graph if it is read from a file."""
    config = given.config
    routings = TABLES.routings.get(config.topology)
    if routings is None:
        raise given.refused(
            "topology",
            ", ".join(TABLES.routings),
            hint=did_you_mean(config.topology, TABLES.routings),
        )
    if config.routing_function not in routings:
        known = ", ".join(routings)
        raise given.refused("routing_function", f"for `{config.topology}` one of {known}")
    routing = routings[config.routing_function]
    if config.topology == "anynet":
        if not config.network_file:
            raise given.refused("network_file", "the name of a file", problem="is missing")
        path = given.folder / config.network_file
        graph = anynet.topology_of(path, cycle=CYCLE, rate=RATE)
        if any(one.latency.ps > 1000 for one in graph.links if "npu" in one.source):
            given.remarks.append("links of nodes have the latency of the file; BookSim 2 uses 1")
        return {"file": f"{path.stem}.json", "routing": routing}, graph
    if config.topology == "dragonflynew":
        return {**_dragonfly(given), "routing": routing}, None
    build, latency = _family(given)
    links = [{"rate": RATE, "latency": f"{latency} ns"}]
    table: dict[str, Any] = {"build": build, "links": links, "routing": routing}
    return table, None


def _family(given: BookSimInput) -> tuple[str, int]:
    """Returns the notation of the topology, and the latency of its links in cycles."""
    config = given.config
    far = config.use_noc_latency == 1
    for key in ("k", "n"):
        if not 1 <= getattr(config, key) <= 1 << 20:
            raise given.refused(key, "an integer above 0", problem="is out of range")
    if config.n > 20:
        raise given.refused("n", "at most 20 dimensions", problem="is out of range")
    sizes = "x".join([str(config.k)] * config.n)
    match config.topology:
        case "mesh":
            return f"mesh:{sizes}", 1
        case "torus":
            if config.k < 3:
                expected = "3 or more: BookSim links the two routers of a row of 2 twice"
                raise given.refused("k", expected)
            return f"torus:{sizes}", 2 if far else 1
        case "cmesh" | "flatfly":
            return _concentrated(given, sizes, far=far), 1
        case "fly":
            return f"butterfly:{config.k}:{config.n}", 1
    return f"fat_tree:k={config.k},n={config.n}", 1


def _dragonfly(given: BookSimInput) -> dict[str, Any]:
    """Returns BookSim's dragonfly: 2k routers per group with k NPUs, links of 10 and 100 cycles."""
    config = given.config
    if config.n != 1:
        raise given.refused("n", "1, as BookSim has no other `dragonflynew`")
    if not 1 <= config.k <= 1 << 10:
        raise given.refused("k", "an integer from 1 to 1024", problem="is out of range")
    if config.routing_function == "ugal":
        given.remarks.append(
            "BookSim weighs queues 1 to 2 with a threshold of 30, and its intermediate is any "
            "router; tutti weighs them by hops with a threshold of 90, and it is any group"
        )
    return {
        "build": f"dragonfly:p={config.k},a={2 * config.k},h={config.k},absolute",
        "links": [{"rate": RATE, "latency": f"{cycles} ns"} for cycles in (1, 10, 100)],
    }


def _check_vcs(given: BookSimInput) -> None:
    """Rejects VCs with which BookSim stops, and remarks where tutti separates them otherwise."""
    config = given.config
    vcs, routing = config.num_vcs, config.routing
    if routing == "ugal_dragonflynew" and vcs != 3:
        raise given.refused("num_vcs", "3: BookSim's `ugal` stops with any other number")
    if routing == "min_adapt_torus" and vcs < 4:
        raise given.refused("num_vcs", "4 or more: BookSim's `min_adapt` routes on VC 3")
    parts = TABLES.parts_of_vcs.get(routing, 1)
    if vcs >= parts and vcs % parts:
        share = "halves" if parts == 2 else "quarters"
        given.remarks.append(
            f"`{config.routing_function}` separates packets by {share} of the {vcs} VCs, which "
            "overlap in BookSim and not in tutti"
        )


def _concentrated(given: BookSimInput, sizes: str, *, far: bool) -> str:
    config = given.config
    for key, expected, fits in (
        ("n", 2, config.n == 2),
        ("x", config.k, config.x == config.k),
        ("y", config.k, config.y == config.k),
        ("yr", config.xr, config.yr == config.xr),
        ("c", config.xr * config.yr, config.c == config.xr * config.yr),
    ):
        if not fits:
            raise given.refused(key, f"{expected}, as routers form a k x k grid")
    distance = ",distance" if far else ""
    block = f"{config.xr}x{config.yr}"
    if config.topology == "flatfly":
        return f"flattened_butterfly:{sizes}:{block}{distance}"
    if config.c != 4:
        raise given.refused("c", "4, as BookSim has no other `cmesh`")
    express = "" if config.routing_function.endswith("no_express") else ",express"
    return f"cmesh:{sizes}:{block}{express}{distance}"


# --- measurement ----------------------------------------------------------------------------------


def _measure(given: BookSimInput) -> dict[str, int]:
    """Returns a window of three periods: BookSim stops when three consecutive periods agree.

    A trace has its own window, and a batch ends with its last packet.
    """
    if given.window:
        return given.window
    config = given.config
    if config.sim_type == "batch":
        return {"warmup": 0, "measure": LONGEST_BATCH}
    if config.sample_period < 1 or config.warmup_periods < 0:
        raise given.refused("sample_period", "1 cycle or more", problem="is out of range")
    return {
        "warmup": config.warmup_periods * config.sample_period,
        "measure": 3 * config.sample_period,
    }
