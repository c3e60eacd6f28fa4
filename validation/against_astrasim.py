"""Collectives against ASTRA-sim 2, from its own files: networks, systems, traces of a collective.

`astrasim/times.csv` has its results, `astrasim/NETWORK_NPUS.yml` and `astrasim/SYSTEM.json` its
input.
"""

from __future__ import annotations

import csv
import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prose import bullets, paragraph

from tutti.interop import astrasim
from tutti.interop.chakra import Attribute, ChakraTrace, Node
from tutti.workload.trace import programs

FOLDER = Path(__file__).parent / "astrasim"


@dataclass(frozen=True)
class Row:
    """A run of ASTRA-sim.

    Attributes:
        network: what joins the NPUs.
        size: of the all_reduce, in bytes.
        system: the name of its file.
        backend: `aware` of congestion, or `unaware`.
        ns: the completion time.
    """

    network: str
    npus: int
    size: int
    system: str
    backend: str
    ns: int

    @property
    def predicted_ps(self) -> int:
        return predicted(self.network, self.npus, self.size, self.system, self.backend)

    @property
    def off(self) -> float:
        """Returns how far tutti is above (or, negative, below) it, in per cent."""
        return (self.predicted_ps / 1000 / self.ns - 1) * 100

    @property
    def to_the_nanosecond(self) -> int:
        """Returns the time by the rule of ASTRA-sim: every part truncated to nanoseconds."""
        chunks = 4 if self.system == "Ring_4chunks" else 1
        part = self.size // chunks // self.npus
        transfer = part * 10**9 // (50 << 30)
        message = {
            ("Ring", "aware"): transfer + 500,
            ("Ring", "unaware"): transfer + 500,
            ("Switch", "aware"): 2 * (transfer + 500),
            ("Switch", "unaware"): transfer + 1000,
        }[self.network, self.backend]
        steps = 2 * (self.npus - 1)
        folds = 3 * (self.npus - 1) * (part // 1600)
        return chunks * (steps * message + (steps + 1) * 10 + folds)

    def __str__(self) -> str:
        return f"{self.network}-{self.npus}-{self.size}-{self.system}-{self.backend}"


@functools.cache
def about() -> dict[str, Any]:
    return tomllib.loads((FOLDER / "case.toml").read_text("utf-8"))


@functools.cache
def rows() -> list[Row]:
    with (FOLDER / "times.csv").open(encoding="utf-8", newline="") as file:
        return [
            Row(
                line["network"],
                int(line["npus"]),
                int(line["mebibytes"]) << 20,
                line["system"],
                line["backend"],
                int(line["ns"]),
            )
            for line in csv.DictReader(file)
        ]


def trace(size: int) -> ChakraTrace:
    """Returns the trace of its generator for each NPU: one all_reduce."""
    attributes = {
        "is_cpu_op": Attribute("bool", value=False),
        "comm_type": Attribute("int64", 0),
        "comm_size": Attribute("int64", size),
    }
    return ChakraTrace(
        nodes=(Node(id=0, name="all_reduce", type="COMM_COLL", attributes=attributes),)
    )


@functools.cache
def predicted(network: str, npus: int, size: int, system: str, backend: str) -> int:
    """Returns the completion time of all NPUs in picoseconds."""
    net = astrasim.load_network(FOLDER / f"{network}_{npus}.yml")
    sys = astrasim.load_system(FOLDER / f"{system}.json")
    found = programs([trace(size)] * npus, net.sizes, timing=sys.timing)
    return astrasim.simulate(net, sys, found, aware=backend == "aware").total.ps


def section() -> str:
    """Returns the section of docs/validation.md."""
    given = about()
    least, most = (pick(row.off for row in rows()) for pick in (min, max))
    case = "validation/astrasim/case.toml"
    facts = [
        f"Source: {given['source']}, run on {given['date']}; see `{case}`.",
        "Model: [training](models/training.md#astra-sim), each file unmodified.",
        f"Behaviour: {given['behaviour']}",
        f"Tolerance: {given['tolerance']['time']} %. Found: {least:+.3f} % to {most:+.3f} %.",
    ]
    return "\n\n".join(["## astrasim", paragraph(given["summary"]), bullets(facts), _table()])


def _table() -> str:
    lines = [
        "| network | NPUs | size | chunks | congestion | measured | predicted | difference |",
        "|---|--:|--:|--:|---|--:|--:|--:|",
    ]
    for row in rows():
        chunks = row.system.removeprefix("Ring_").rstrip("chunks")
        what = f"{row.network} | {row.npus:,} | {row.size >> 20:,} MiB | {chunks} | {row.backend}"
        times = f"{row.ns / 1e3:,.3f} us | {row.predicted_ps / 1e6:,.3f} us"
        lines.append(f"| {what} | {times} | {row.off:+.3f} % |")
    return "\n".join(lines)
