"""`tutti train from-astrasim`: runs workloads of ASTRA-sim."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tutti.formats.astrasim import reader as astrasim
from tutti.study.console import out, record, record_table, remark, wrote
from tutti.study.files import folder, written
from tutti.study.progress import Progress
from tutti.training.frames import write_frame


def from_astrasim(
    workload: Annotated[
        Path,
        typer.Argument(
            metavar="WORKLOAD",
            help="Prefix of Chakra traces PREFIX.NPU.et, or a text workload.",
            show_default=False,
        ),
    ],
    network: Annotated[
        Path, typer.Option("--network", metavar="FILE", help="Network (YAML).", show_default=False)
    ],
    system: Annotated[
        Path, typer.Option("--system", metavar="FILE", help="System (JSON).", show_default=False)
    ],
    groups: Annotated[
        Path | None, typer.Option("--groups", help="Communicators and their ranks (JSON).")
    ] = None,
    aware: Annotated[
        bool,
        typer.Option(
            "--congestion/--no-congestion",
            help="Model link sharing and queues in switches.",
        ),
    ] = True,
    to: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Output folder.")
    ] = Path("out/astrasim"),
) -> None:
    """Run an ASTRA-sim workload from its workload, network and system files.

    Writes results.parquet to the output folder: total, compute and exposed communication time. Keys
    that do not affect time are listed. Unsupported features, such as algorithms other than `ring`,
    are errors.

    \b
    Examples:
      tutti train from-astrasim examples/13_astrasim/two_layers.txt \\
        --network examples/13_astrasim/Ring_8.yml \\
        --system examples/13_astrasim/Ring.json
    """
    given = astrasim.load_network(network), astrasim.load_system(system)
    if given[1].unused:
        remark(f"ignored keys, which do not affect time: {', '.join(given[1].unused)}")
    folder(to)
    found = astrasim.load_programs(workload, *given, groups)
    with Progress("simulating"):
        run = astrasim.simulate(*given, found, aware=aware)
    shape = " x ".join(f"{one.block} {one.npus}" for one in given[0].dimensions)
    record(
        npus=run.npus,
        dimensions=shape,
        time_ps=run.total.ps,
        compute_ps=run.compute,
        exposed_ps=run.exposed,
    )
    out().print(f"{run.npus} NPUs: {shape}", style="bold")
    out().print(
        f"{run.total.ps / 1000:,.3f} ns: {run.compute / 1000:,.3f} ns compute, "
        f"{run.exposed / 1000:,.3f} ns exposed communication"
    )
    rows = astrasim.frame(run, str(workload), shape, aware=aware)
    record_table("results", rows)
    path = written(write_frame, to / "results.parquet", rows)
    wrote(path)
