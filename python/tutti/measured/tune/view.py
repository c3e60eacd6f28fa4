"""What a tuning shows: decisions, what libraries lack, and checks of the written files."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tutti.measured.tune.times import OWN
from tutti.view.quantity import count, exact_size, format_share, format_time, range_text
from tutti.view.tables import Column, ReportTable, frame_of, of_scope
from tutti.view.view import Data, Fact, View

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from tutti.measured.tune import Proof, TuningDecision, Written
    from tutti.mpi.underneath import Mpi

_NOTHING = 0.01
"""Slowdowns below this share are not reported."""
_WATCHED = {
    "openmpi": "pml_monitoring",
    "mpich": "libfabric's trace, without shared memory",
}


class Chosen(NamedTuple):
    """A decision in the files of a library."""

    target: str
    decision: TuningDecision


class Checked(NamedTuple):
    """A check of the files of a library."""

    target: str
    proof: Proof


def _sizes(decision: TuningDecision) -> str:
    if decision.collective == "barrier":
        return "0 B"
    return range_text(decision.first, decision.last, exact_size)


def _named(schedule: str | None) -> str:
    return "native collective" if schedule in {None, OWN} else str(schedule)


QUANTITIES: tuple[Column[Chosen], ...] = (
    Column("library", lambda row: row.target, key="target", scope="file"),
    Column("collective", lambda row: row.decision.collective, key="collective"),
    Column("ranks", lambda row: row.decision.ranks, count, key="ranks"),
    Column("first size", lambda row: row.decision.first, exact_size, key="from_bytes",
           scope="file"),
    Column("last size", lambda row: row.decision.last, exact_size, key="to_bytes", scope="file"),
    Column("sizes", lambda row: _sizes(row.decision), scope="runs"),
    Column("schedule", lambda row: row.decision.schedule, key="schedule", scope="file"),
    Column("schedule", lambda row: _named(row.decision.schedule), kind="wrap", scope="runs"),
    Column("time", lambda row: row.decision.time_ps, format_time, key="time_ps"),
    Column("slower", lambda row: row.decision.loss, format_share, key="loss",
           when=lambda row: row.decision.schedule is not None),
    Column("method", lambda row: row.decision.method, key="method",
           terminal=lambda method: "measured" if method == "measurement" else method),
    Column("fallback", lambda row: row.decision.fallback, key="fallback", scope="file"),
    Column("size of the maximum slowdown", lambda row: row.decision.loss_size, exact_size,
           key="loss_size_bytes", scope="file"),
    Column("fastest schedule", lambda row: row.decision.best, key="best", scope="file"),
    Column("datatype", lambda row: row.decision.datatype, key="datatype", scope="file"),
    Column("conditions", lambda row: row.decision.conditions, key="conditions", scope="file"),
)  # fmt: skip
"""The quantities of a decision; slowdowns as fractions."""

CHECKS: tuple[Column[Checked], ...] = (
    Column("library", lambda row: row.target, key="target", scope="file"),
    Column("collective", lambda row: row.proof.collective, key="collective"),
    Column("ranks", lambda row: row.proof.ranks, count, key="ranks"),
    Column("size", lambda row: row.proof.size, exact_size, key="size"),
    Column("schedule", lambda row: row.proof.schedule, kind="wrap", key="schedule",
           terminal=_named),
    Column("messages", lambda row: row.proof.messages, count, key="messages"),
    Column("verdict", lambda row: row.proof.verdict, key="verdict"),
    Column("reason", lambda row: row.proof.why, key="why", scope="file"),
)  # fmt: skip
"""The quantities of a check."""


def tuning_view(written: Sequence[Written], times: pl.DataFrame) -> View:
    """Returns what a tuning shows: the decisions of the plan, or of the only library.

    Args:
        written: The files of each library.
        times: The times considered, with the columns of :data:`tutti.measured.tune.times.TIMES`.
    """
    rows = [Chosen(files.target, decision) for files in written for decision in files.decisions]
    shown = [row for row in rows if row.target == "plan" or len(written) == 1]
    decisions = Data("decisions", lambda: frame_of(QUANTITIES, rows), ["decisions.csv"])
    return View(
        table=ReportTable(of_scope(QUANTITIES, "runs"), shown) if shown else None,
        data=[Data("", lambda: times, ["times.parquet"]), *([decisions] if rows else [])],
        log=list(_log(written)),
    )


def _log(written: Sequence[Written]) -> Iterator[str]:
    """Yields the notes of each library, and its slowdowns."""
    targets = {files.target for files in written}
    for files in written:
        yield from (f"{files.target}: {note}" for note in files.notes)
        if files.target == "openmpi6" and "openmpi" in targets:
            continue  # it has the same algorithms
        for decision in files.decisions:
            yield from _slowdown(files.target, decision)


def _slowdown(target: str, decision: TuningDecision) -> Iterator[str]:
    """Yields a schedule that a library lacks, and the maximum slowdown."""
    if decision.schedule == decision.best or (decision.schedule and decision.loss < _NOTHING):
        return
    where = f"{target}: {decision.collective} on {decision.ranks} ranks, {_sizes(decision)}"
    if decision.schedule is None:
        yield f"{where}: has none of the candidates; the native collective stays"
        return
    slower = f"{decision.schedule} takes {format_share(decision.loss)} longer"
    yield f"{where}: lacks {decision.best}; at {exact_size(decision.loss_size)} {slower}"


def checks_view(target: str, proofs: Sequence[Proof], mpi: Mpi) -> View:
    """Returns what checks of the files of a library show, which ran on an MPI library."""
    rows = [Checked(target, proof) for proof in proofs]
    how = "libtutti_mpi's counts" if target == "plan" else _WATCHED.get(mpi.kind, "")
    return View(
        headline=Fact("check", f"check of {target}, on {mpi}, by {how}:"),
        table=ReportTable(of_scope(CHECKS, "runs"), rows),
        data=[Data("checks", lambda: frame_of(CHECKS, rows))],
        log=[
            f"{_named(proof.schedule)} of {proof.size} B on {proof.ranks} ranks: {proof.verdict}: "
            f"{proof.why}"
            for proof in proofs
            if proof.why and proof.verdict != "alike"
        ],
    )
