"""Options that the commands of `tutti bypass` share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tutti.base.files.mistakes import mistake, shown
from tutti.bypass.network import BypassMesh
from tutti.bypass.platform_file import write_platform
from tutti.schedules.errors import ScheduleError
from tutti.schedules.ir import schedule
from tutti.study.study import Study

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tutti.bypass import Mapping
    from tutti.schedules.ir import Schedule

Copies = Annotated[int, typer.Option("--copies", min=1, max=4, help="Parallel links per flow.")]


@dataclass
class Target:
    """The algorithm, or one phase of it, and the mesh."""

    algorithm: Annotated[
        str,
        typer.Argument(metavar="ALGORITHM", help="An algorithm as NAME[:ARG].", show_default=False),
    ]
    size: Annotated[str, typer.Option("--mesh", metavar="SIZE", help="Mesh: columns x rows.")] = (
        "4x4"
    )
    wires: Annotated[
        int,
        typer.Option(
            "--wires",
            min=0,
            help="Bypass wires per row and column, in each direction. Default: 1; 0 is a mesh.",
        ),
    ] = 1
    muxes: Annotated[
        str,
        typer.Option("--muxes", help="Links that a port can select: own, axis, sign or any."),
    ] = "any"
    collective: Annotated[str, typer.Option("--collective", "-c", help="Collective.")] = (
        "all_reduce"
    )
    phase: Annotated[
        int | None,
        typer.Option("--phase", min=0, help="Only this phase of the schedule, counted from 0."),
    ] = None

    def laid_out(self) -> tuple[BypassMesh, Schedule]:
        """Returns the mesh, and the schedule with one rank per node, or one phase of it."""
        mesh = BypassMesh.parse(self.size, self.wires, self.muxes)
        every = schedule(self.algorithm, collective=self.collective, ranks=mesh.nodes)
        return mesh, every if self.phase is None else _phase(every, self.phase)

    @property
    def title(self) -> str:
        """Collective, algorithm and phase."""
        phase = "" if self.phase is None else f", phase {self.phase}"
        return f"{self.collective} by {self.algorithm}{phase}"


def _phase(every: Schedule, phase: int) -> Schedule:
    """Returns a phase of a schedule."""
    try:
        return every.phase(phase)
    except ScheduleError as error:
        if every.phases > 1 or not every.name.startswith("double_binary_tree"):
            raise
        hint = "double_binary_tree:nccl,phased has a phase up and a phase down"
        raise error.reworded(error.problem, hint=hint) from None


@dataclass
class Links:
    """Rate and latency of links."""

    rate: Annotated[str, typer.Option("--rate", help="Bandwidth of every link.")] = "68 GB/s"
    latency: Annotated[str, typer.Option("--latency", help="Latency of every link.")] = "12 ns"


Chiplets = Annotated[
    list[str] | None,
    typer.Option("--chiplet-rate", metavar="NODE=RATE",
                 help="Rate of the ports of a slower chiplet; may be repeated."),
]  # fmt: skip


@dataclass
class Rates:
    """Rates of chiplets and of links in the platform file."""

    chiplet: Chiplets = None
    link: Annotated[
        list[str] | None,
        typer.Option("--link-rate", metavar="FROM>TO=RATE",
                     help="Rate of the links between two nodes; may be repeated."),
    ] = None  # fmt: skip

    @property
    def by_place(self) -> dict[str, dict[Any, str]]:
        """The rates of chiplets by node, and of links by source and destination."""
        return {"chiplets": chiplet_rates(self.chiplet or ()), "pairs": _pairs(self.link or ())}

    def check(self, output: Output) -> None:
        """Refuses rates without a file to write them to.

        Raises:
            ConfigError: There are rates and no file, or a rate is malformed.
        """
        if any(self.by_place.values()) and output.to is None:
            name, texts = (
                ("--chiplet-rate", self.chiplet) if self.chiplet else ("--link-rate", self.link)
            )
            raise mistake(
                "has no effect on the mapping, only on the platform file", source=name,
                value=shown(", ".join(texts or ())), expected="also `--out FILE`",
            )  # fmt: skip


def chiplet_rates(texts: Iterable[str]) -> dict[int, str]:
    """Returns the rates of chiplets from texts such as `5=34 GB/s`.

    Raises:
        ConfigError: A text is malformed.
    """
    found = {}
    for text in texts:
        node, separator, rate = text.partition("=")
        if not separator or not node.strip().isdecimal():
            raise mistake(
                "is not the rate of a chiplet", source="--chiplet-rate", value=shown(text),
                expected="a node and a rate, such as `5=34 GB/s`",
            )  # fmt: skip
        found[int(node)] = rate
    return found


def _pairs(texts: Iterable[str]) -> dict[tuple[int, int], str]:
    """Returns the rates of links from texts such as `0>1=34 GB/s`."""
    found = {}
    for text in texts:
        match = re.fullmatch(r"\s*(\d{1,6})\s*>\s*(\d{1,6})\s*=(.*)", text)
        if not match:
            raise mistake(
                "is not the rate of a link", source="--link-rate", value=shown(text),
                expected="source, destination and rate, such as `0>1=34 GB/s`",
            )  # fmt: skip
        found[int(match[1]), int(match[2])] = match[3]
    return found


@dataclass
class Output(Links):
    """The links, and the files to write."""

    to: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Output file: a platform (TOML)."),
    ] = None
    draw: Annotated[
        Path | None,
        typer.Option("--draw", metavar="FILE", help="Write a drawing (SVG, PNG, PDF)."),
    ] = None

    def write(self, mapping: Mapping, rates: Rates | None = None) -> None:
        """Writes the platform and the drawing if their paths are given."""
        links: dict[str, Any] = {"rate": self.rate, "latency": self.latency}
        links |= rates.by_place if rates else {}
        title = f"bypass:{mapping.mesh.notation}"
        if self.to is not None:
            Study().write(self.to, lambda path: write_platform(path, mapping, **links))
        if self.draw is not None:
            Study().write(self.draw, lambda path: mapping.configuration.draw(path, title=title))
