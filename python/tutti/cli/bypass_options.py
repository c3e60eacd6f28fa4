"""Options that the commands of `tutti bypass` share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tutti.bypass.network import BypassMesh
from tutti.bypass.platform_file import write_platform
from tutti.schedules.ir import schedule
from tutti.study.study import Study

if TYPE_CHECKING:
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
        typer.Option("--wires", min=0, help="Bypass wires per row and column, in each direction."),
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
        return mesh, every if self.phase is None else every.phase(self.phase)

    @property
    def title(self) -> str:
        """Collective, algorithm and phase."""
        phase = "" if self.phase is None else f", phase {self.phase}"
        return f"{self.collective} by {self.algorithm}{phase}"


@dataclass
class Links:
    """Rate and latency of links."""

    rate: Annotated[str, typer.Option("--rate", help="Bandwidth of every link.")] = "68 GB/s"
    latency: Annotated[str, typer.Option("--latency", help="Latency of every link.")] = "12 ns"


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

    def write(self, mapping: Mapping) -> None:
        """Writes the platform and the drawing if their paths are given."""
        links = {"rate": self.rate, "latency": self.latency}
        title = f"bypass:{mapping.mesh.notation}"
        if self.to is not None:
            Study().write(self.to, lambda path: write_platform(path, mapping, **links))
        if self.draw is not None:
            Study().write(self.draw, lambda path: mapping.configuration.draw(path, title=title))
