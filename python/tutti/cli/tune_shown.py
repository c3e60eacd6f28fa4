"""Prints the decisions of `tutti tune`, their slowdown, and the results of the check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer
from rich.table import Table

from tutti.base.errors import ExitCode
from tutti.base.units import Size
from tutti.measured.tune import proofs, unproved
from tutti.measured.tune.times import OWN
from tutti.study.console import out, record_table, remark, wrote
from tutti.study.progress import Progress
from tutti.view.breakable import Breakable
from tutti.view.quantity import format_share, format_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.measured.tune import Proof, TuningDecision, Written
    from tutti.mpi.underneath import Mpi

__all__ = ["prove", "show"]

_NOTHING = 0.01
"""Slowdowns below this share are not reported."""
_WATCHED = {
    "openmpi": "pml_monitoring",
    "mpich": "libfabric's trace, without shared memory",
}


def show(written: Sequence[Written]) -> None:
    """Prints the decisions of the plan, or of the only library, and each library's slowdowns."""
    console = out()
    for one in written:
        record_table("decisions", (_row(one.target, decision) for decision in one.decisions))
        if one.target == "plan" or len(written) == 1:
            console.print(_table(one.decisions))
    for one in written:
        where = one.path or one.shell
        by = f"tutti mpi exec --plan {where} -- ..." if one.target == "plan" else f". {one.shell}"
        wrote(where, note=f"; use it with `{by}`", wrap=True)
        for note in one.notes:
            remark(f"{one.target}: {note}")
        if one.target == "openmpi6" and any(other.target == "openmpi" for other in written):
            continue  # it has the same algorithms
        for decision in one.decisions:
            _remark_slowdown(one.target, decision)


def _row(target: str, decision: TuningDecision) -> dict[str, Any]:
    """Returns a decision for `--json`."""
    units = {"first": "from_bytes", "last": "to_bytes", "loss_size": "loss_size_bytes"}
    fields = {units.get(name, name): value for name, value in vars(decision).items()}
    return {"target": target, **fields}


def _remark_slowdown(target: str, decision: TuningDecision) -> None:
    """Reports a schedule that a library lacks, and the maximum slowdown."""
    if decision.schedule == decision.best or (decision.schedule and decision.loss < _NOTHING):
        return
    where = f"{target}: {decision.collective} on {decision.ranks} ranks, {_span(decision)}"
    if decision.schedule is None:
        remark(f"{where}: has none of the candidates; the native collective stays")
        return
    slower = f"{decision.schedule} takes {format_share(decision.loss)} longer"
    remark(f"{where}: lacks {decision.best}; at {Size(bytes=decision.loss_size)} {slower}")


def _span(decision: TuningDecision) -> str:
    if decision.collective == "barrier":
        return "0 B"
    first = Size(bytes=decision.first)
    return f"from {first}" if decision.last is None else f"{first} to {Size(bytes=decision.last)}"


def _named(schedule: str | None) -> str:
    return "native collective" if schedule in {None, OWN} else str(schedule)


def _table(decisions: Sequence[TuningDecision]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), expand=True)
    table.add_column("collective", no_wrap=True)
    table.add_column("ranks", justify="right", no_wrap=True)
    table.add_column("sizes", no_wrap=True)
    table.add_column("schedule", ratio=1)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("slower", justify="right", no_wrap=True)
    table.add_column("method", no_wrap=True)
    for one in decisions:
        takes = "" if one.time_ps is None else format_time(one.time_ps)
        name = Breakable(_named(one.schedule))
        slower = "" if one.schedule is None else format_share(one.loss)
        by = "measured" if one.method == "measurement" else one.method
        table.add_row(one.collective, str(one.ranks), _span(one), name, takes, slower, by)
    return table


def prove(written: Sequence[Written], mpi: Mpi, launcher: Sequence[str] = ()) -> None:
    """Runs the MPI library with the written files, with these options of its launcher.

    Raises:
        typer.Exit: The messages differ (3), or something could not be checked (1).
    """
    missing: dict[str, str] = {}
    failed = 0
    for one in written:
        reason = unproved(mpi, one)
        with Progress(f"checking {one.target}", handles_interrupts=True):
            shown = [] if reason else proofs(mpi, one, options=launcher)
        if shown:
            _print_proofs(one.target, shown, mpi)
        if not any(proof.shows or not proof.holds for proof in shown):
            missing[one.target] = reason or "no decision could be checked"
        failed += sum(not proof.holds for proof in shown)
    for target, reason in missing.items():
        remark(f"{target}: not checked: {reason}")
    if failed:
        remark(f"{failed} of the runs sent unexpected messages")
        raise typer.Exit(int(ExitCode.FAILED))
    if missing or not written:
        remark("some files were not checked; --for selects the libraries")
        raise typer.Exit(int(ExitCode.UNPROVED))


def _print_proofs(target: str, proofs: Sequence[Proof], mpi: Mpi) -> None:
    record_table("checks", ({"target": target} | vars(one) for one in proofs))
    how = "libtutti_mpi's counts" if target == "plan" else _WATCHED.get(mpi.kind, "")
    out().print(f"check of {target}, on {mpi}, by {how}:", markup=False)
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), expand=True)
    table.add_column("collective", no_wrap=True)
    table.add_column("ranks", justify="right", no_wrap=True)
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("schedule", ratio=1)
    table.add_column("messages", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for one in proofs:
        size, name = str(Size(bytes=one.size)), Breakable(_named(one.schedule))
        row = (one.collective, str(one.ranks), size, name, str(one.messages), one.verdict)
        table.add_row(*row)
    out().print(table)
    for one in proofs:
        if one.why and one.verdict != "alike":
            of = f"{_named(one.schedule)} of {one.size} B on {one.ranks} ranks"
            remark(f"{of}: {one.verdict}: {one.why}")
