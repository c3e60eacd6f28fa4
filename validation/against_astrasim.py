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

from tutti.formats.astrasim.networks import load_network
from tutti.formats.astrasim.reader import simulate
from tutti.formats.astrasim.systems import load_system
from tutti.formats.chakra.reader import Attribute, ChakraTrace, Node
from tutti.workloads.trace import programs

FOLDER = Path(__file__).parent / "astrasim"


@dataclass(frozen=True)
class Row:
    """A run of ASTRA-sim.

    Attributes:
        collective: The collective.
        network: what joins the NPUs, per dimension.
        size: of the collective, in bytes.
        system: the name of its file.
        backend: `aware` of congestion, or `unaware`.
        ns: the completion time.
    """

    collective: str
    network: str
    npus: int
    size: int
    system: str
    backend: str
    ns: int

    @property
    def predicted_ps(self) -> int:
        return predicted(self)

    @property
    def off(self) -> float:
        """Returns how far tutti is above (or, negative, below) it, in per cent."""
        return (self.predicted_ps / 1000 / self.ns - 1) * 100

    @property
    def chunks(self) -> tuple[int, int]:
        """The chunks of the collective, and how many are in flight."""
        return 1 if "1chunk" in self.system else 4, 2 if "2active" in self.system else 1

    @property
    def to_the_nanosecond(self) -> int | None:
        """Returns the time by the rule of ASTRA-sim: every part truncated to nanoseconds.

        None: chunks share links, or there are several dimensions.
        """
        chunks, active = self.chunks
        if "-" in self.network or (active > 1 and self.backend == "aware"):
            return None
        part = self.size // chunks // self.npus
        transfer = part * 10**9 // (50 << 30)
        message = {
            ("Ring", "aware"): transfer + 500,
            ("Ring", "unaware"): transfer + 500,
            ("Switch", "aware"): 2 * (transfer + 500),
            ("Switch", "unaware"): transfer + 1000,
        }[self.network, self.backend]
        steps, folds = 2 * (self.npus - 1), 3 * (self.npus - 1) * (part // 1600)
        if self.collective == "all_to_all":
            steps, folds = self.npus * (self.npus - 1) // 2, 0
        return chunks // active * (steps * message + (steps + 1) * 10 + folds)

    def __str__(self) -> str:
        network = f"{self.collective}-{self.network}-{self.npus}"
        return f"{network}-{self.size}-{self.system}-{self.backend}"


@functools.cache
def about() -> dict[str, Any]:
    return tomllib.loads((FOLDER / "case.toml").read_text("utf-8"))


@functools.cache
def rows() -> list[Row]:
    with (FOLDER / "times.csv").open(encoding="utf-8", newline="") as file:
        return [
            Row(
                line["collective"],
                line["network"],
                int(line["npus"]),
                int(line["mebibytes"]) << 20,
                line["system"],
                line["backend"],
                int(line["ns"]),
            )
            for line in csv.DictReader(file)
        ]


_NUMBERS = {"all_reduce": 0, "all_to_all": 6}


def trace(collective: str, size: int) -> ChakraTrace:
    """Returns the trace of its generators for each NPU: one collective."""
    attributes = {
        "is_cpu_op": Attribute("bool", value=False),
        "comm_type": Attribute("int64", _NUMBERS[collective]),
        "comm_size": Attribute("int64", size),
    }
    return ChakraTrace(
        nodes=(Node(id=0, name=collective, type="COMM_COLL", attributes=attributes),)
    )


def row(name: str) -> Row:
    """Returns the row of that name."""
    return next(row for row in rows() if str(row) == name)


@functools.cache
def predicted(row: Row) -> int:
    """Returns the completion time of all NPUs in picoseconds."""
    net = load_network(FOLDER / f"{row.network}_{row.npus}.yml")
    sys = load_system(FOLDER / f"{row.system}.json")
    traces = [trace(row.collective, row.size)] * row.npus
    found = programs(traces, net.sizes, timing=sys.timing)
    return simulate(net, sys, found, aware=row.backend == "aware").total.ps


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
    what = "collective | network | NPUs | size | chunks | congestion"
    lines = [
        f"| {what} | measured | predicted | difference |",
        "|---|---|--:|--:|--:|---|--:|--:|--:|",
    ]
    for row in rows():
        count, active = row.chunks
        chunks = f"{count}, {active} active" if active > 1 else str(count)
        network = row.network.replace("-", " x ")
        size = f"{row.size >> 20:,} MiB"
        what = f"{row.collective} | {network} | {row.npus:,} | {size} | {chunks} | {row.backend}"
        times = f"{row.ns / 1e3:,.3f} us | {row.predicted_ps / 1e6:,.3f} us"
        lines.append(f"| {what} | {times} | {row.off:+.3f} % |")
    return "\n".join(lines)
