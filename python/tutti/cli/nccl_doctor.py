"""`tutti nccl doctor`: diagnoses measured collectives of NCCL."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tutti.base.errors import UnitError, capped
from tutti.base.files.limits import RANKS
from tutti.base.files.mistakes import mistake, shown
from tutti.base.units import Size, TimePerByte
from tutti.cli.grouped import grouped
from tutti.formats.nccl import read_graphs, read_topology
from tutti.nccl.bounds import Rails
from tutti.nccl.doctor import Diagnosis, Sized, Subject, diagnose, tuner_rules
from tutti.nccl.evidence import Evidence, Given, parse_choices, read_evidence
from tutti.nccl.guess import guess_model, preset_model, version_of
from tutti.nccl.tuner_csv import write_tuner_csv
from tutti.study.console import out, record_table, remark, wrote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.formats.nccl import Topology
    from tutti.nccl.doctor import Model
    from tutti.nccl.series import Finding

_JOB = "What the logs do not state"
_WRITING = "Writing"
_MOST = 5
_TERABYTE = 10**12
_MARKS = {"problem": "red", "warning": "yellow", "note": "dim"}


@dataclass
class JobFiles:
    """Files of a job."""

    files: Annotated[
        list[Path],
        typer.Argument(metavar="LOG...", show_default=False,
                       help="Output of nccl-tests (text, JSON or a CSV file of sizes and times), "
                       "debug logs, Inspector output."),
    ]  # fmt: skip
    topology: Annotated[
        Path | None,
        typer.Option("--topology", metavar="XML", help="Topology of a node: NCCL_TOPO_DUMP_FILE."),
    ] = None
    graphs: Annotated[
        Path | None,
        typer.Option("--graphs", metavar="XML", help="Channel graphs: NCCL_GRAPH_DUMP_FILE."),
    ] = None


@dataclass
class JobFacts:
    """What the files do not state."""

    nccl: Annotated[
        str | None,
        typer.Option("--nccl", metavar="VERSION", rich_help_panel=_JOB,
                     help="Version of NCCL, such as 2.28, for guesses; default: that of the log."),
    ] = None  # fmt: skip
    system: Annotated[
        str | None,
        typer.Option("--system", metavar="NAME", rich_help_panel=_JOB,
                     help="System of `tutti nccl systems` for guesses, if no file has graphs."),
    ] = None  # fmt: skip
    ranks: Annotated[
        int | None,
        typer.Option("--ranks", "-r", min=2, max=RANKS, rich_help_panel=_JOB, help="Rank count."),
    ] = None
    nodes: Annotated[
        int | None,
        typer.Option("--nodes", min=1, max=RANKS, rich_help_panel=_JOB, help="Number of nodes."),
    ] = None
    collective: Annotated[
        str | None,
        typer.Option(
            "--collective", "-c", rich_help_panel=_JOB, help="Collective, such as all_reduce."
        ),
    ] = None
    choice: Annotated[
        list[str] | None,
        typer.Option("--choice", metavar="[FILE=]CHOICE", rich_help_panel=_JOB,
                     help="Forced choice of a file, such as ring/ll128; may be repeated."),
    ] = None  # fmt: skip
    nics: Annotated[
        str | None,
        typer.Option("--nics", metavar="NxRATE", rich_help_panel=_JOB,
                     help="NICs of a node and their rate, such as '8x50 GB/s'."),
    ] = None  # fmt: skip
    gpu_rate: Annotated[
        str | None,
        typer.Option("--gpu-rate", metavar="RATE", rich_help_panel=_JOB,
                     help="NVLink rate of a GPU per direction, such as '450 GB/s'."),
    ] = None  # fmt: skip


@dataclass
class DoctorOutput:
    """What to write."""

    to: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", rich_help_panel=_WRITING,
                     help="Output file for NCCL's tuner: the fastest known choice of each size."),
    ] = None  # fmt: skip
    channels: Annotated[
        int | None,
        typer.Option("--channels", min=1, max=1024, rich_help_panel=_WRITING,
                     help="Number of channels of the rules; default: that of the debug log."),
    ] = None  # fmt: skip


@grouped
def doctor(job: JobFiles, facts: JobFacts, output: DoctorOutput) -> None:
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
    given = Given(
        ranks=facts.ranks,
        nodes=facts.nodes,
        collective=facts.collective,
        forced=parse_choices(facts.choice or [], job.files),
    )
    evidence = read_evidence(job.files, given)
    topology = read_topology(job.topology) if job.topology is not None else None
    model, about = _model(job, facts, evidence, topology)
    found = diagnose(evidence, topology=topology, rails=_rails(facts), model=model)
    _record(found)
    _show(found, about)
    if output.to is not None:
        _write(found, output)


def _model(
    job: JobFiles, facts: JobFacts, evidence: Evidence, topology: Topology | None
) -> tuple[Model | None, str]:
    """Returns the model of guesses, and a remark on it."""
    graphs = read_graphs(job.graphs) if job.graphs is not None else ()
    nccl, about = version_of(facts.nccl, evidence.logs.values())
    model = guess_model(
        evidence.logs, nccl=nccl, graphs=graphs, topology=topology, gpus=evidence.gpus
    )
    if model is None and facts.system is not None:
        model = preset_model(facts.system, nccl=nccl, logs=evidence.logs.values())
    if model is None:
        return None, (
            "no guesses of choices: no log with NCCL_DEBUG_SUBSYS=GRAPH, no --graphs, no --system"
        )
    return model, about


def _rails(facts: JobFacts) -> Rails | None:
    """Returns the rates that the user gave."""
    if facts.nics is None and facts.gpu_rate is None:
        return None
    gpu = None if facts.gpu_rate is None else _rate(facts.gpu_rate, "--gpu-rate")
    if facts.nics is None:
        return Rails(gpu, (), "--gpu-rate")
    count, times, rate = facts.nics.partition("x")
    if not times or not count.strip().isdecimal() or not 1 <= int(count[:6]) <= RANKS:
        raise mistake("invalid NICs", source="--nics", value=shown(facts.nics),
                      expected="a number and a rate, such as '8x50 GB/s'")  # fmt: skip
    return Rails(gpu, (_rate(rate, "--nics"),) * min(int(count), 1024), "--nics")


def _rate(text: str, option: str) -> float:
    """Returns a rate in B/s."""
    try:
        found = TimePerByte.of_any(text.strip())
    except UnitError as error:
        raise mistake(error.problem, source=option, value=shown(text),
                      expected="a rate, such as '50 GB/s'") from None  # fmt: skip
    # A terabyte, so that picoseconds are precise enough.
    ps = found.of(Size(bytes=_TERABYTE)).ps
    if ps == 0:
        raise mistake("invalid rate", source=option, value=shown(text), expected="a finite rate")
    return _TERABYTE / ps * 1e12


# --- text -----------------------------------------------------------------------------------------


def _show(found: Diagnosis, about: str) -> None:
    for subject in found.subjects:
        _show_subject(subject)
    sizes = [one for subject in found.subjects for one in subject.sizes]
    if about and any(one.basis in {"", "guess"} for one in sizes):
        remark(about)
    _show_findings(found.findings)
    _remark_omitted(found.omitted)


def _show_subject(subject: Subject) -> None:
    out().print(f"\n[bold]{subject.series.title}[/]")
    if subject.ring is not None:
        text = f"rings can achieve {subject.ring / 1e9:.4g} GB/s busbw ({subject.limits})"
        out().print(text, style="dim", markup=False)
    out().print(_table(subject))


def _table(subject: Subject) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("size", "time us", "busbw\nGB/s", "of\nrings", "of\nbound"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("choice", "better"):
        table.add_column(name, overflow="fold")
    for one in subject.sizes:
        table.add_row(
            str(Size(bytes=one.point.size_bytes)),
            f"{one.point.time_us:,.1f}",
            f"{one.bus_bytes_per_s / 1e9:.3g}",
            _share(one.of_ring),
            _share(one.of_bound),
            _choice(one),
            "" if one.better is None else f"{one.better.choice}, {-100 * one.better.saves:.0f} %",
        )
    return table


def _share(ratio: float | None) -> str:
    return "-" if ratio is None else f"{100 * ratio:.0f} %" if ratio >= 0.01 else "< 1 %"


def _choice(one: Sized) -> str:
    if one.choice is not None:
        return f"{one.choice}{'?' if one.basis == 'guess' else ''}"
    return "not ring" if one.beyond_rings else "-"


def _show_findings(findings: Sequence[Finding]) -> None:
    console = out()
    if not findings:
        console.print("\nno findings", markup=False)
        return
    console.print("\n[bold]findings[/]")
    for one in findings:
        text = f": {one.subject}: {one.seen}"
        console.print(Text.assemble((one.level, _MARKS[one.level]), text))
        if one.do:
            console.print(Padding(Text(one.do), (0, 0, 0, 2), expand=False))


def _remark_omitted(omitted: Sequence[tuple[str, int, str]]) -> None:
    for file, line, reason in omitted[:_MOST]:
        remark(capped(f"{file}, line {line}: left out: {reason}"))
    if len(omitted) > _MOST:
        remark(f"left out: {len(omitted) - _MOST:,} more lines")


def _write(found: Diagnosis, output: DoctorOutput) -> None:
    rules, remarks = tuner_rules(found, channels=output.channels)
    notes = ["The fastest known choice of each size that was measured."]
    assert output.to is not None  # noqa: S101 - its caller checks it
    path = write_tuner_csv(rules, output.to, notes=notes)
    for text in remarks:
        remark(text)
    covered = ", ".join(dict.fromkeys(one.collective for one in rules))
    remark(f"the plugin runs collectives without a rule on one channel; rules: {covered}")
    wrote(path)


# --- JSON -----------------------------------------------------------------------------------------


def _record(found: Diagnosis) -> None:
    subjects = (
        {
            "collective": one.series.collective,
            "ranks": one.series.ranks,
            "nodes": one.series.nodes,
            "forced": one.series.forced and str(one.series.forced),
            "files": one.series.files,
            "ring_bytes_per_s": one.ring,
            "limits": one.limits,
            "sizes": [_size(sized) for sized in one.sizes],
        }
        for one in found.subjects
    )
    names = ("file", "line", "reason")
    record_table("subjects", subjects)
    record_table("findings", found.findings)
    record_table("omitted", (dict(zip(names, one, strict=True)) for one in found.omitted))


def _size(one: Sized) -> dict[str, Any]:
    better = one.better
    return {
        **one.point._asdict(),
        "bus_bytes_per_s": one.bus_bytes_per_s,
        "of_ring": one.of_ring,
        "of_bound": one.of_bound,
        "choice": one.choice and str(one.choice),
        "basis": one.basis,
        "channels": one.channels,
        "better": better and {"choice": str(better.choice), "time_us": better.time_us,
                              "saves": better.saves},
    }  # fmt: skip
