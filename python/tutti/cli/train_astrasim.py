"""`tutti train from-astrasim`: runs workloads of ASTRA-sim."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tutti.cli import options
from tutti.formats.astrasim.networks import load_network
from tutti.formats.astrasim.reader import AstraSimRun, load_workload, simulate
from tutti.formats.astrasim.systems import load_system
from tutti.formats.astrasim.view import run_view
from tutti.study.console import remark
from tutti.study.study import Study


def from_astrasim(
    workload: Annotated[
        Path,
        typer.Argument(
            metavar="WORKLOAD",
            help="Prefix of Chakra traces PREFIX.NPU.et, one of them, or a text workload.",
            show_default=False,
        ),
    ],
    network: Annotated[
        Path, typer.Option("--network", metavar="FILE", help="Network (YAML).", show_default=False)
    ],
    system: Annotated[
        Path, typer.Option("--system", metavar="FILE", help="System (JSON).", show_default=False)
    ],
    groups: options.Groups = None,
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
    and columns that do not affect time are listed. Unsupported features, such as algorithms other
    than `ring`, are errors.

    \b
    Examples:
      tutti train from-astrasim examples/13_astrasim/two_layers.txt \\
        --network examples/13_astrasim/Ring_8.yml \\
        --system examples/13_astrasim/Ring.json
    """
    topology, npus = load_network(network), load_system(system)
    if npus.unused:
        remark(f"ignored keys, which do not affect time: {', '.join(npus.unused)}")
    study = Study[AstraSimRun](to, extra=None)
    loaded = load_workload(workload, topology, npus, groups)
    for line in (*topology.remarks, *loaded.remarks):
        remark(line)
    run = study.single(lambda: simulate(topology, npus, loaded.programs, aware=aware), "simulating")
    study.present(run_view(run, topology, str(workload), aware=aware))
