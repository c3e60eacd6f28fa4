"""`tutti nccl doctor`: diagnoses measured collectives of NCCL."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tutti.base.files.limits import RANKS
from tutti.formats.nccl import read_topology
from tutti.nccl.bounds import stated_rails
from tutti.nccl.doctor import Diagnosis, diagnose, tuner_rules
from tutti.nccl.evidence import Given, parse_choices, read_evidence
from tutti.nccl.guess import model_of
from tutti.nccl.tuner_csv import write_tuner_csv
from tutti.nccl.view.diagnosis import diagnosis_view
from tutti.study.console import remark
from tutti.study.study import Study, read

_of_job = partial(typer.Option, rich_help_panel="What the logs do not state")
_written = partial(typer.Option, rich_help_panel="Writing")


def doctor(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="LOG...", show_default=False,
                       help="Output of nccl-tests (text, JSON or a CSV file of sizes and times), "
                       "debug logs, Inspector output."),
    ],
    topology: Annotated[
        Path | None,
        typer.Option("--topology", metavar="XML", help="Topology of a node: NCCL_TOPO_DUMP_FILE."),
    ] = None,
    graphs: Annotated[
        Path | None,
        typer.Option("--graphs", metavar="XML", help="Channel graphs: NCCL_GRAPH_DUMP_FILE."),
    ] = None,
    nccl: Annotated[
        str | None,
        _of_job("--nccl", metavar="VERSION",
                help="Version of NCCL, such as 2.28, for guesses; default: that of the log."),
    ] = None,
    system: Annotated[
        str | None,
        _of_job("--system", metavar="NAME",
                help="System of `tutti nccl systems` for guesses, if no file has graphs."),
    ] = None,
    ranks: Annotated[
        int | None, _of_job("--ranks", "-r", min=2, max=RANKS, help="Rank count.")
    ] = None,
    nodes: Annotated[
        int | None, _of_job("--nodes", min=1, max=RANKS, help="Number of nodes.")
    ] = None,
    collective: Annotated[
        str | None, _of_job("--collective", "-c", help="Collective, such as all_reduce.")
    ] = None,
    choice: Annotated[
        list[str] | None,
        _of_job("--choice", metavar="[FILE=]CHOICE",
                help="Forced choice of a file, such as ring/ll128; may be repeated."),
    ] = None,
    nics: Annotated[
        str | None,
        _of_job("--nics", metavar="NxRATE",
                help="NICs of a node and their rate, such as '8x50 GB/s'."),
    ] = None,
    gpu_rate: Annotated[
        str | None,
        _of_job("--gpu-rate", metavar="RATE",
                help="NVLink rate of a GPU per direction, such as '450 GB/s'."),
    ] = None,
    to: Annotated[
        Path | None,
        _written("--out", "-o", metavar="FILE",
                 help="Output file for NCCL's tuner: the fastest known choice of each size."),
    ] = None,
    channels: Annotated[
        int | None,
        _written("--channels", min=1, max=1024,
                 help="Number of channels of the rules; default: that of the debug log."),
    ] = None,
) -> None:  # fmt: skip
    """Diagnose collectives that nccl-tests measured: choices, bandwidth, rails and ranks.

    For each size, the table has the time, busbw, the share of the bandwidth that rings can achieve
    over the slowest link, the share of the lower bound without reduction in switches, and the
    choice of algorithm and protocol. Choices are from a log with NCCL_DEBUG_SUBSYS=TUNING, from
    --choice, or a guess of NCCL's tuning model, marked by `?`, for the channel graphs of a log with
    GRAPH, of --graphs or of --system. `better` is the fastest other choice that a file measured.

    Findings name suspicious rails and ranks: wrong results, versions that differ, slow links of the
    topology, NICs without GPUDirect RDMA, plateaus and falls in the times, late ranks.

    With --out, writes a file for NCCL's example tuner plugin.

    \b
    Examples:
      tutti nccl doctor examples/23_nccl_doctor/default.log \\
        --topology examples/23_nccl_doctor/topology.xml
      tutti nccl doctor examples/23_nccl_doctor/default.log --nics '8x50 GB/s' --json
    """
    forced = parse_choices(choice or [], files)
    evidence = read(
        "reading", lambda: read_evidence(files, Given(ranks, nodes, collective, forced))
    )
    node = read_topology(topology) if topology is not None else None
    model, about = model_of(evidence, nccl=nccl, graphs=graphs, topology=node, preset=system)
    diagnosis = diagnose(evidence, topology=node, rails=stated_rails(nics, gpu_rate), model=model)
    study = Study[Diagnosis]()
    study.present(diagnosis_view(diagnosis, about))
    if to is not None:
        rules, remarks = tuner_rules(diagnosis, channels=channels)
        notes = ["The fastest known choice of each size that was measured."]
        for text in remarks:
            remark(text)
        study.write(to, lambda path: write_tuner_csv(rules, path, notes=notes))
