"""`tutti tune`: the fastest schedules, written for the library that runs them, and proved."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tutti.cli import options
from tutti.cli.console import out, remark
from tutti.cli.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from rich.table import Table

    from tutti.mpi.bench import Settings
    from tutti.mpi.host import Host
    from tutti.platform import Platform
    from tutti.tune import Decision, Proof, Question, Written

_MEASURING = "Measuring"
_WRITING = "Writing"


def tune(
    collectives: Annotated[
        list[str] | None,
        typer.Argument(metavar="[COLLECTIVE]...", help="What to tune: all_reduce unless given."),
    ] = None,
    ranks: Annotated[
        str, typer.Option("--ranks", help="Rank counts: a list 4,8,12 or a range 4:64.")
    ] = "4",
    begin: Annotated[
        str, typer.Option("-b", "--begin", metavar="SIZE", help="Smallest size.")
    ] = "8",
    end: Annotated[str, typer.Option("-e", "--end", metavar="SIZE", help="Largest size.")] = "1M",
    factor: Annotated[
        int, typer.Option("-f", "--factor", min=2, help="Each size is this many times the last.")
    ] = 4,
    by: Annotated[
        str, typer.Option("--by", help="model, measurement, or both: what the model finds good.")
    ] = "model",
    platform: options.Platform = None,
    model: options.Model = None,
    algorithm: Annotated[
        list[str] | None,
        typer.Option("--algorithm", "-a", metavar="NAME[:ARG]", help="Choose from these alone."),
    ] = None,
    datatype: Annotated[str, typer.Option("-d", "--datatype", help="Of an element.")] = "float32",
    blocks: Annotated[
        int, typer.Option("-n", "--blocks", min=1, rich_help_panel=_MEASURING,
                          help="Blocks of each; the median counts.")
    ] = 50,
    each: Annotated[
        int, typer.Option("--each", min=1, rich_help_panel=_MEASURING,
                          help="Collectives in a row in a block.")
    ] = 10,
    most: Annotated[
        int, typer.Option("--most", min=1, rich_help_panel=_MEASURING,
                          help="With --by both: as many of each size, for each library.")
    ] = 4,
    emulate: Annotated[
        str | None, typer.Option("--emulate", metavar="MODEL", rich_help_panel=_MEASURING,
                                 help="Keep ranks of one machine apart by a model.")
    ] = None,
    mpicc: Annotated[
        str | None, typer.Option("--mpicc", rich_help_panel=_MEASURING,
                                 help="The compiler wrapper of the MPI.")
    ] = None,
    targets: Annotated[
        list[str] | None,
        typer.Option("--for", metavar="LIBRARY", rich_help_panel=_WRITING,
                     help="plan, openmpi, openmpi6, mpich or ucc; may be repeated; all."),
    ] = None,
    csel_base: Annotated[
        Path | None, typer.Option("--csel-base", metavar="FILE", rich_help_panel=_WRITING,
                                  help="MPICH's generic.json, instead of what its library holds.")
    ] = None,
    rules_version: Annotated[
        int, typer.Option("--rules-version", min=1, max=2, rich_help_panel=_WRITING,
                          help="Of Open MPI's classic file; 2 needs 5.0.7.")
    ] = 1,
    prove: Annotated[
        bool, typer.Option("--prove", help="Run with what was written, and count messages.")
    ] = False,
    to: Annotated[Path, typer.Option("--out", "-o", help="Folder for results.")] = Path("out/tune"),
) -> None:  # fmt: skip
    """Find the fastest schedule for each size, and write it for the library that runs it.

    Writes plan.tutti for libtutti_mpi, openmpi.rules for Open MPI 5 and openmpi6.json for 6,
    mpich.json (the stock selections with these before them), beside each a .env with the variables
    that make it take effect (UCC has no other file), times.parquet with all that was looked at and
    decisions.csv. Other libraries can be told less: what they lack is said, with what it costs.
    With --prove the MPI runs under what was written, and its own counts of messages between ranks
    are held against the schedule's; exit code 3 where they differ.

    \b
    Examples:
      tutti tune --ranks 4,6,8 --platform cray_xc30
      tutti tune all_reduce all_gather --ranks 4 --by measurement -e 64K
      tutti tune --ranks 4 --by both --platform out/calibrate/here.toml --prove
      tutti tune --ranks 4 --platform cray_xc30 --for mpich --prove \\
        --mpicc ~/mpich/bin/mpicc
    """
    from tutti.cli.files import folder

    chosen = _targets(targets)
    machine = _machine(platform, model, by)
    host = _host(mpicc, needed=by != "model" or prove, named=mpicc is not None)
    settings = _settings(blocks, each, emulate)
    folder(to)
    frames = [
        _times(question, by, machine, host, settings, algorithm or [], most)
        for question in _questions(
            collectives or ["all_reduce"], ranks, (begin, end, factor), datatype, chosen
        )
    ]
    written = _written(frames, chosen, to, host, csel_base, machine, second=rules_version == 2,
                       strict=bool(targets))  # fmt: skip
    _show(written)
    if prove and host is not None:
        _prove(written, host)


# --- what is asked --------------------------------------------------------------------------------


def _targets(named: list[str] | None) -> list[str]:
    from tutti.errors import TuningError
    from tutti.tune import TARGETS

    for name in named or []:
        if name not in TARGETS:
            known = ", ".join(TARGETS)
            message = f"there is no library `{name}` to write for: expected one of {known}"
            fields = {"name": name, "known": known}
            raise TuningError(message, kind="unknown_target", fields=fields)
    return list(dict.fromkeys(named or TARGETS))


def _machine(name: str | None, model: str | None, by: str) -> Platform | None:
    from tutti.config.mistakes import mistake
    from tutti.platforms import platform
    from tutti.tune.measure import METHODS

    if by not in METHODS:
        expected = f"one of {', '.join(METHODS)}"
        raise mistake("there is no such choice", source="--by", value=by, expected=expected)
    if name is None and by != "measurement":
        raise mistake(
            f"--by {by} needs a machine",
            source="tutti tune",
            expected="--platform NAME or FILE",
            hint="`tutti calibrate --live` writes one; or measure: --by measurement",
        )
    return platform(name, model=model) if name is not None else None


def _host(mpicc: str | None, *, needed: bool, named: bool) -> Host | None:
    """The MPI; without one, rules can still be written by a model."""
    from tutti.errors import MpiError
    from tutti.mpi.host import find_host

    try:
        return find_host(mpicc)
    except MpiError:
        if needed or named:
            raise
        return None


def _settings(blocks: int, each: int, emulate: str | None) -> Settings:
    from tutti.mpi.bench import Settings
    from tutti.mpi.distance import Distance

    distance = Distance.parse(emulate) if emulate is not None else None
    return Settings(blocks=blocks, each=each, distance=distance)


def _questions(
    collectives: list[str],
    ranks: str,
    span: tuple[str, str, int],
    datatype: str,
    targets: list[str],
) -> list[Question]:
    from tutti.config.mistakes import mistake
    from tutti.datatypes import DATATYPES
    from tutti.tune import Question
    from tutti.tune.measure import COLLECTIVES

    name = options.datatype(datatype) or datatype
    if name not in DATATYPES:
        raise mistake("there is no such datatype", source="-d", value=datatype,
                      expected=", ".join(DATATYPES))  # fmt: skip
    for collective in collectives:
        if collective not in COLLECTIVES:
            expected = f"one of {', '.join(COLLECTIVES)}"
            raise mistake("cannot be tuned", source="COLLECTIVE", value=collective,
                          expected=expected)  # fmt: skip
    return [
        Question(collective, count, _sizes(collective, count, span, DATATYPES[name]), name, targets)
        for collective in collectives
        for count in options.expanded_ranks(ranks)
    ]


_NOTHING = 0.01
"""A loss below this share is nothing to tell of."""
_DEALT = {"reduce_scatter", "all_gather", "all_to_all"}


def _sizes(collective: str, ranks: int, span: tuple[str, str, int], width: int) -> list[int]:
    """Sizes that have an element for each rank, where ranks have parts; a barrier has none."""
    from tutti.units import Size

    if collective == "barrier":
        return [0]
    first, last = (Size.parse(options.size(text, name)).bytes
                   for text, name in zip(span[:2], ("-b", "-e"), strict=True))  # fmt: skip
    part = width * (ranks if collective in _DEALT else 1)
    sizes, size = [], first
    while size <= last:
        sizes.append(-(-size // part) * part)
        size *= span[2]
    if sizes and sizes[0] != first:
        remark(f"{collective} on {ranks} ranks: sizes are multiples of {part} B")
    return sorted(set(sizes))


def _times(
    question: Question,
    by: str,
    machine: Platform | None,
    host: Host | None,
    settings: Settings,
    only: list[str],
    most: int,
) -> pl.DataFrame:
    import polars as pl

    from tutti.tune import by_measurement, by_model, fastest
    from tutti.tune.measure import notations

    names = None
    label = f"{question.collective} on {question.ranks} ranks"
    if machine is not None and by != "measurement":
        with Progress(label, work=len(question.sizes), total=len(question.sizes)) as progress:
            modelled = by_model(question, machine, only, progress.advance)
        if by == "model":
            return modelled
        names = fastest(modelled, question, most)
    if host is None:  # it has been found by now, or that has been told
        return pl.DataFrame()
    names = names or notations(question, only)
    total = settings.blocks * (len(names) + 1) * len(question.sizes)
    with Progress(label, work=total, total=total) as progress:
        return by_measurement(
            question, host, settings, names,
            done=lambda seen, expected: progress.reach(seen, expected, seen),
        )  # fmt: skip


# --- what is written, shown and proved ------------------------------------------------------------


def _written(
    frames: list[pl.DataFrame],
    targets: list[str],
    to: Path,
    host: Host | None,
    csel_base: Path | None,
    machine: Platform | None,
    *,
    second: bool,
    strict: bool,
) -> list[Written]:
    import polars as pl

    from tutti.errors import TuningError
    from tutti.mpi.provenance import provenance
    from tutti.results import write
    from tutti.tune import write_all
    from tutti.tune.decisions import table

    times = pl.concat(frames)
    origin = provenance(sys.argv[1:], platform=machine.name if machine else None)
    tree = _tree(host, csel_base, wanted="mpich" in targets, strict=strict)
    written, left = write_all(times, targets, to, provenance=origin, tree=tree, second=second)
    for target, reason in left.items():
        if strict:
            raise TuningError(f"{target}: {reason}", kind="nothing")
        remark(f"nothing for {target}: {reason}")
    rows = [table(list(one.decisions)).with_columns(pl.lit(one.target).alias("target"))
            for one in written]  # fmt: skip
    write(times, to / "times.parquet")
    if rows:
        write(pl.concat(rows, how="vertical_relaxed"), to / "decisions.csv")
    return written


def _tree(
    host: Host | None, base: Path | None, *, wanted: bool, strict: bool
) -> dict[str, object] | None:
    """MPICH's stock selections: from a file, or out of the library of an MPICH."""
    from tutti.errors import TuningError
    from tutti.tune.mpich import stock, stock_of_file

    if not wanted:
        return None
    if base is not None:
        return stock_of_file(base)
    if host is None or host.kind != "mpich":
        return None
    try:
        return stock(host)
    except TuningError:
        if strict:
            raise
        return None


def _show(written: list[Written]) -> None:
    console = out()
    for one in written:
        if one.target == "plan" or len(written) == 1:
            console.print(_table(one.decisions))
    for one in written:
        where = one.path or one.shell
        by = f"tutti mpi exec --plan {where} -- ..." if one.target == "plan" else f". {one.shell}"
        console.print(f"wrote {where}; it takes effect with `{by}`", markup=False)
        if one.target == "openmpi6" and any(other.target == "openmpi" for other in written):
            continue  # it has the same algorithms
        for decision in one.decisions:
            _tell_loss(one.target, decision)


def _tell_loss(target: str, decision: Decision) -> None:
    """What a library cannot be told to do, and what that costs."""
    if decision.schedule == decision.best or (decision.schedule and decision.loss < _NOTHING):
        return
    where = f"{target}: {decision.collective} on {decision.ranks} ranks, {_span(decision)}"
    if decision.schedule is None:
        remark(f"{where}: has nothing that was looked at; its own choice stays")
    else:
        remark(
            f"{where}: has no {decision.best}; {decision.schedule} takes {decision.loss:.0%} more"
        )


def _span(decision: Decision) -> str:
    from tutti.units import Size

    if decision.collective == "barrier":
        return "0 B"
    first = Size(bytes=decision.first)
    return f"{first} on" if decision.last is None else f"{first} to {Size(bytes=decision.last)}"


def _table(decisions: Sequence[Decision]) -> Table:
    from rich.table import Table

    from tutti.report.breakable import Breakable
    from tutti.report.quantity import format_time

    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), expand=True)
    table.add_column("collective", no_wrap=True)
    table.add_column("ranks", justify="right", no_wrap=True)
    table.add_column("sizes", no_wrap=True)
    table.add_column("schedule", ratio=1)
    table.add_column("takes", justify="right", no_wrap=True)
    table.add_column("by", no_wrap=True)
    for one in decisions:
        takes = "" if one.time_ps is None else format_time(one.time_ps)
        name = Breakable(one.schedule or "its own choice")
        table.add_row(one.collective, str(one.ranks), _span(one), name, takes, one.method)
    return table


def _prove(written: list[Written], host: Host) -> None:
    """Runs the MPI under what was written; ends with an error where it did something else."""
    from tutti.errors import ExitCode
    from tutti.tune import prove_host, prove_plan

    kinds = {"openmpi": "openmpi", "mpich": "mpich"}
    failed = 0
    for one in written:
        if one.target == "plan" and one.path is not None:
            proofs = prove_plan(host, one.decisions, one.path)
        elif kinds.get(one.target) == host.kind:
            proofs = prove_host(host, one.decisions, one.target, one.variables)
        else:
            remark(f"{one.target}: not proved: the MPI here is {host}")
            continue
        _tell_proofs(one.target, proofs, host)
        failed += sum(not proof.holds for proof in proofs)
    if failed:
        remark(f"{failed} of the runs sent other messages than the schedule has")
        raise typer.Exit(int(ExitCode.FAILED))


def _tell_proofs(target: str, proofs: list[Proof], host: Host) -> None:
    from rich.table import Table

    from tutti.report.breakable import Breakable
    from tutti.units import Size

    how = "libtutti_mpi's counts" if target == "plan" else _WATCHED.get(host.kind, "")
    out().print(f"proof for {target}, on {host}, by {how}:", markup=False)
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), expand=True)
    table.add_column("collective", no_wrap=True)
    table.add_column("ranks", justify="right", no_wrap=True)
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("schedule", ratio=1)
    table.add_column("messages", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for one in proofs:
        size, name = str(Size(bytes=one.size)), Breakable(one.schedule)
        row = (one.collective, str(one.ranks), size, name, str(one.messages), one.verdict)
        table.add_row(*row)
    out().print(table)
    for one in proofs:
        if one.why and one.verdict != "alike":
            remark(f"{one.schedule} of {one.size} B on {one.ranks} ranks: {one.why}")


_WATCHED = {
    "openmpi": "pml_monitoring",
    "mpich": "libfabric's trace, without shared memory",
}
