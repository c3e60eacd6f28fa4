"""What `tutti tune` shows: decisions, what they cost, and proofs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich.table import Table

from tutti.cli.console import out, remark
from tutti.errors import ExitCode
from tutti.report.breakable import Breakable
from tutti.report.quantity import format_time
from tutti.tune import proofs, unproved
from tutti.tune.times import OWN
from tutti.units import Size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.mpi.underneath import Mpi
    from tutti.tune import Proof, TuningDecision, Written

__all__ = ["prove", "show"]

_NOTHING = 0.01
"""A loss below this share is nothing to tell of."""
_WATCHED = {
    "openmpi": "pml_monitoring",
    "mpich": "libfabric's trace, without shared memory",
}


def show(written: Sequence[Written]) -> None:
    """The decisions of the plan, or of the only library, and what each library lacks."""
    console = out()
    for one in written:
        if one.target == "plan" or len(written) == 1:
            console.print(_table(one.decisions))
    for one in written:
        where = one.path or one.shell
        by = f"tutti mpi exec --plan {where} -- ..." if one.target == "plan" else f". {one.shell}"
        console.print(f"wrote {where}; it takes effect with `{by}`", markup=False)
        for note in one.notes:
            remark(f"{one.target}: {note}")
        if one.target == "openmpi6" and any(other.target == "openmpi" for other in written):
            continue  # it has the same algorithms
        for decision in one.decisions:
            _tell_loss(one.target, decision)


def _tell_loss(target: str, decision: TuningDecision) -> None:
    """What a library cannot be told to do, and what that costs where it costs the most."""
    if decision.schedule == decision.best or (decision.schedule and decision.loss < _NOTHING):
        return
    where = f"{target}: {decision.collective} on {decision.ranks} ranks, {_span(decision)}"
    if decision.schedule is None:
        remark(f"{where}: has nothing that was looked at; its own choice stays")
        return
    at = f"on {Size(bytes=decision.loss_size)} {decision.schedule}"
    remark(f"{where}: has no {decision.best}; {at} takes {decision.loss:.0%} more")


def _span(decision: TuningDecision) -> str:
    if decision.collective == "barrier":
        return "0 B"
    first = Size(bytes=decision.first)
    return f"{first} on" if decision.last is None else f"{first} to {Size(bytes=decision.last)}"


def _named(schedule: str | None) -> str:
    return "the MPI's own choice" if schedule in {None, OWN} else str(schedule)


def _table(decisions: Sequence[TuningDecision]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), expand=True)
    table.add_column("collective", no_wrap=True)
    table.add_column("ranks", justify="right", no_wrap=True)
    table.add_column("sizes", no_wrap=True)
    table.add_column("schedule", ratio=1)
    table.add_column("takes", justify="right", no_wrap=True)
    table.add_column("loss", justify="right", no_wrap=True)
    table.add_column("by", no_wrap=True)
    for one in decisions:
        takes = "" if one.time_ps is None else format_time(one.time_ps)
        name = Breakable(_named(one.schedule))
        loss = "" if one.schedule is None else f"{one.loss:.0%}"
        by = "measured" if one.method == "measurement" else one.method
        table.add_row(one.collective, str(one.ranks), _span(one), name, takes, loss, by)
    return table


def prove(written: Sequence[Written], mpi: Mpi, launcher: Sequence[str] = ()) -> None:
    """Runs the MPI under what was written, with these options of its launcher.

    Raises:
        typer.Exit: it did something else (3), or not everything could be proved (1).
    """
    missing: dict[str, str] = {}
    failed = 0
    for one in written:
        reason = unproved(mpi, one)
        shown = [] if reason else proofs(mpi, one, options=launcher)
        if shown:
            _tell_proofs(one.target, shown, mpi)
        if not any(proof.shows or not proof.holds for proof in shown):
            missing[one.target] = reason or "nothing that it says could be looked at"
        failed += sum(not proof.holds for proof in shown)
    for target, reason in missing.items():
        remark(f"{target}: not proved: {reason}")
    if failed:
        remark(f"{failed} of the runs sent other messages than were to be sent")
        raise typer.Exit(int(ExitCode.FAILED))
    if missing or not written:
        remark("not everything was proved; --for names the libraries to write for and to prove")
        raise typer.Exit(int(ExitCode.UNPROVED))


def _tell_proofs(target: str, proofs: Sequence[Proof], mpi: Mpi) -> None:
    how = "libtutti_mpi's counts" if target == "plan" else _WATCHED.get(mpi.kind, "")
    out().print(f"proof for {target}, on {mpi}, by {how}:", markup=False)
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
