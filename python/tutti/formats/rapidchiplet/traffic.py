"""The traffic of a RapidChiplet design: weights of pairs of units, or a trace.

Source: RapidChiplet 66e63e5, `booksim_wrapper.py` (`export_traffic`, `export_trace`), and its copy
of BookSim 2 (`traffic.cpp`, `injection.cpp`, `trafficmanager.cpp`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tutti.base.files.mistakes import mistake, shown
from tutti.formats.dependent import TracePacket, dependent_trace
from tutti.formats.rapidchiplet.package import decoded_key
from tutti.view.quantity import plural

if TYPE_CHECKING:
    from tutti.formats.rapidchiplet.files import DesignFiles


def units_of(files: DesignFiles) -> list[int]:
    """Returns the chiplet of each unit, in the order of chiplets."""
    chiplets = range(len(files.placement.chiplets))
    return [number for number in chiplets for _ in range(files.chiplet(number).unit_count)]


def matrix_text(files: DesignFiles, remarks: list[str]) -> str:
    """Returns the weights of each pair of units, a line for each source.

    Raises:
        ConfigError: The design has no traffic, or it names units that do not exist.
    """
    by_unit = files.has("traffic_by_unit")
    key = "traffic_by_unit" if by_unit else "traffic_by_chiplet"
    if not files.has(key):
        raise mistake("has neither `traffic_by_unit` nor `traffic_by_chiplet`",
                      source=files.source, expected="a file of traffic, or mode=trace",
                      hint="generate_traffic.py of RapidChiplet writes both")  # fmt: skip
    first = _first_units(files)
    count = len(units_of(files))
    rows = [[0.0] * count for _ in range(count)]
    for name, weight in files.table(key).items():
        sources, destinations = _ends(files, key, name, first)
        if isinstance(weight, bool) or not isinstance(weight, int | float) or weight < 0:
            raise mistake("is not a weight", source=files.place(key), key=name[:80],
                          value=shown(weight), expected="a number from 0")  # fmt: skip
        for source in sources:
            for destination in destinations:
                rows[source][destination] = weight / (len(sources) * len(destinations))
    if not by_unit:
        remarks.append("traffic between chiplets is spread evenly over their units")
    sums = [math.fsum(row) for row in rows]
    sending = [total for total in sums if total]
    if sending and max(sending) > min(sending) * (1 + 1e-9):
        remarks.append(
            "weights of units differ in their sums: each unit that sends has the same rate, as in "
            "RapidChiplet's BookSim; its throughput proxy scales them"
        )
    return "\n".join(" ".join(map(repr, row)) for row in rows) + "\n"


def _first_units(files: DesignFiles) -> list[int]:
    """Returns the number of the first unit of each chiplet, and of all units."""
    first = [0]
    for number in range(len(files.placement.chiplets)):
        first.append(first[-1] + files.chiplet(number).unit_count)
    return first


def _ends(files: DesignFiles, key: str, name: str, first: list[int]) -> tuple[range, range]:
    """Returns the units that send and receive, as a key of the traffic names them."""
    pair = decoded_key(name)
    found: list[range] = []
    for end in pair if isinstance(pair, list) else ():
        match end:
            case int() as chiplet if key == "traffic_by_chiplet" and 0 <= chiplet < len(first) - 1:
                found.append(range(first[chiplet], first[chiplet + 1]))
            case [int() as chiplet, int() as unit] if 0 <= chiplet < len(first) - 1:
                if 0 <= unit < first[chiplet + 1] - first[chiplet]:
                    found.append(range(first[chiplet] + unit, first[chiplet] + unit + 1))
    if len(found) != 2:
        form = "[chiplet, unit]" if key == "traffic_by_unit" else "chiplet"
        raise mistake("names chiplets or units that do not exist", source=files.place(key),
                      key=name[:80], expected=f"source and destination, each a {form}")  # fmt: skip
    return found[0], found[1]


def trace_text(files: DesignFiles, remarks: list[str], *, ignores_cycles: bool) -> str:
    """Returns the packets of the trace as comma-separated values.

    Args:
        files: The design.
        remarks: Receives what differs.
        ignores_cycles: Whether packets are sent as soon as those that they wait for have arrived.

    Raises:
        ConfigError: The trace is missing or invalid.
    """
    first = _first_units(files)
    packets = []
    for number, packet in enumerate(files.trace().packets):
        ends = []
        for name in ("source", "destination"):
            chiplet, unit = getattr(packet, f"{name}_chiplet"), getattr(packet, f"{name}_unit")
            if chiplet >= len(first) - 1 or unit >= first[chiplet + 1] - first[chiplet]:
                raise mistake(
                    f"there is no unit {unit} of chiplet {chiplet}", source=files.place("trace"),
                    key=f"[{number}].{name}_unit",
                    expected="a chiplet of the placement, and one of its units",
                )  # fmt: skip
            ends.append(first[chiplet] + unit)
        cycle = 0 if ignores_cycles else packet.injection_cycle
        packets.append(TracePacket(cycle, ends[0], ends[1], packet.size_in_flits, 0, packet.id,
                                   packet.reverse_dependencies))  # fmt: skip
    text, unknown = dependent_trace(packets, delay=0, source=files.place("trace"))
    if unknown:
        remarks.append(f"{unknown:,} dependencies name packets that the trace lacks: ignored")
    remarks.append(f"trace: {plural(len(packets), 'packet')}")
    return text


def first_load(mode: str, given: dict[str, Any]) -> dict[str, Any]:
    """Returns the load of BookSim's keys, completed: RapidChiplet starts at 0.001 per cycle."""
    return given if mode == "trace" or "injection_rate" in given else {
        **given, "injection_rate": 0.001,
    }  # fmt: skip
