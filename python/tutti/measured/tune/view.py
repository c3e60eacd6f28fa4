"""What a tuning shows: decisions, what libraries lack, and checks of the written files."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from tutti.measured.tune.measure import cautions
from tutti.measured.tune.targets import library_of, library_title
from tutti.measured.tune.times import OWN
from tutti.view.quantity import count, exact_size, format_share, format_time, plural, range_text
from tutti.view.tables import Column, ReportTable, frame_of, of_scope
from tutti.view.view import Data, Fact, View

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from tutti.measured.tune import Proof, TuningDecision, Written
    from tutti.measured.tune.confirm import Comparison
    from tutti.measured.tune.live import LiveRules
    from tutti.mpi.underneath import Mpi

_NOTHING = 0.01
"""Slowdowns below this share are not reported."""
_WATCHED = {
    "openmpi": "pml_monitoring",
    "mpich": "libfabric's trace, without shared memory",
}

_DECISIONS = (
    "time: at the smallest size; slower: most, relative to the fastest candidate; method: origin "
    "of the time: model, measured, emulated (distances) or estimate"
)
_CHECKS = (
    "messages: of one call; same: the expected messages between the expected ranks; alike: as many "
    "messages, and as many bytes of each rank, up to renumbering"
)


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


def _named(schedule: str | None, default: str = "native collective") -> str:
    return default if schedule in {None, OWN} else str(schedule)


def _chosen_name(row: Chosen) -> str:
    return _named(row.decision.schedule, row.decision.default_name(row.target))


QUANTITIES: tuple[Column[Chosen], ...] = (
    Column("library", lambda row: row.target, key="target", scope="file"),
    Column("collective", lambda row: row.decision.collective, key="collective"),
    Column("ranks", lambda row: row.decision.ranks, count, key="ranks"),
    Column("ranks per node", lambda row: row.decision.ranks_per_node, count, key="ranks_per_node",
           scope="file"),
    Column("first size", lambda row: row.decision.first, exact_size, key="from_bytes",
           scope="file"),
    Column("last size", lambda row: row.decision.last, exact_size, key="to_bytes", scope="file"),
    Column("sizes", lambda row: _sizes(row.decision), scope="runs"),
    Column("schedule", lambda row: row.decision.schedule, key="schedule", scope="file"),
    Column("schedule", _chosen_name, kind="wrap", scope="runs"),
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


COMPARED: tuple[Column[Comparison], ...] = (
    Column("collective", lambda row: row.collective, key="collective"),
    Column("ranks", lambda row: row.ranks, count, key="ranks"),
    Column("size", lambda row: row.size, exact_size, key="size_bytes"),
    Column("algorithm", lambda row: row.algorithm, kind="wrap", key="algorithm"),
    Column("default", lambda row: row.default_ps, format_time, key="default_ps"),
    Column("with rules", lambda row: row.ruled_ps, format_time, key="ruled_ps"),
    Column("gain", lambda row: row.gain, format_share, key="gain"),
    Column("rule", lambda row: "written" if row.holds else "dropped", key="rule"),
)  # fmt: skip
"""The quantities of a comparison; the gain is the share of the default's time that rules save."""


def live_view(rules: LiveRules) -> View:
    """Returns what a tuning of a live MPI library shows: default and rules at each ruled size."""
    compared = rules.compared
    sizes = sum(len(race.winners) for race in rules.races)
    blocks = sum(race.blocks for race in rules.races)
    grid = sum(race.grid for race in rules.races)
    log = [f"{rules.target}: {blocks:,} of the {grid:,} blocks of a full grid were measured"]
    log += cautions(race.conditions for race in rules.races)
    tuned = {(race.question.collective, race.question.ranks, size)
             for race in rules.races for size in race.winners}  # fmt: skip
    won = [1 - one.gain for one in compared
           if one.holds and (one.collective, one.ranks, one.size) in tuned]  # fmt: skip
    gain = 1 - math.exp(sum(map(math.log, won)) / sizes) if won else 0.0
    answer = (
        f"{sum(one.holds for one in compared)} of {len(compared)} comparisons confirm a rule; "
        f"geometric mean over {plural(sizes, 'size')}: {format_share(gain)} less time"
        if compared else f"the default is the fastest at {plural(sizes, 'size')}"
    )  # fmt: skip
    return View(
        headline=Fact(rules.target, f"{rules.mpi}: {answer}", key="gain", value=gain),
        tables=[
            ReportTable(of_scope(COMPARED, "runs"), list(compared),
                        caption="gain: share of the default's time that the rules save. Sizes "
                        "between the tuned ones are compared, too.")
        ] if compared else [],
        data=[
            Data("comparisons", lambda: frame_of(COMPARED, list(compared)),
                 [f"comparisons_{rules.target}.csv"] if compared else []),
            Data("", lambda: rules.times, [f"times_{rules.target}.parquet"]),
        ],
        log=log,
    )  # fmt: skip


def tuning_view(written: Sequence[Written], times: pl.DataFrame) -> View:
    """Returns what a tuning shows: the decisions of the plan, or of each library without one.

    Args:
        written: The files of each library.
        times: The times considered, with the columns of :data:`tutti.measured.tune.times.TIMES`.
    """
    rows = [Chosen(files.target, decision) for files in written for decision in files.decisions]
    decisions = Data("decisions", lambda: frame_of(QUANTITIES, rows), ["decisions.csv"])
    return View(
        tables=_decision_tables(rows),
        data=[Data("", lambda: times, ["times.parquet"]), *([decisions] if rows else [])],
        log=list(_log(written)),
    )


def _decision_tables(rows: Sequence[Chosen]) -> list[ReportTable[Chosen]]:
    """Returns the decisions of the plan; without one, those of each library under its name."""
    columns = of_scope(QUANTITIES, "runs")
    by_target: dict[str, list[Chosen]] = {}
    for row in rows:
        by_target.setdefault(row.target, []).append(row)
    if "plan" in by_target:
        return [ReportTable(columns, by_target["plan"], caption=_DECISIONS)]
    same: dict[str, list[str]] = {}
    for target, mine in by_target.items():
        shown = repr([[column.text(row) for column in columns] for row in mine])
        same.setdefault(shown, []).append(target)
    tables = [
        ReportTable(columns, by_target[names[0]], heading=f"{_titles(names)}:")
        for names in same.values()
    ]
    return [*tables[:-1], *(replace(last, caption=_DECISIONS) for last in tables[-1:])]


def _titles(targets: Sequence[str]) -> str:
    return " and ".join(f"{one}, for {library_title(one)}" for one in targets)


def _log(written: Sequence[Written]) -> Iterator[str]:
    """Yields the notes of each library, and its slowdowns; those of several releases once."""
    printed: set[tuple[str, str]] = set()
    for files in written:
        yield from (f"{files.target}: {note}" for note in files.notes)
        library = "" if files.target == "plan" else library_of(files.target)[0]
        for decision in files.decisions:
            text = _slowdown(files.target, decision)
            if text and (library, text) not in printed:
                yield f"{files.target}: {text}"
            printed.add((library, text))


def _slowdown(target: str, decision: TuningDecision) -> str:
    """Returns a schedule that a library lacks, and the maximum slowdown; empty without one."""
    if decision.schedule == decision.best or (decision.schedule and decision.loss < _NOTHING):
        return ""
    where = f"{decision.collective} on {decision.ranks} ranks, {_sizes(decision)}"
    if decision.schedule is None:
        return f"{where}: has none of the candidates; the native collective stays"
    name = _chosen_name(Chosen(target, decision))
    slower = f"{name} takes {format_share(decision.loss)} longer"
    return f"{where}: lacks {decision.best}; at {exact_size(decision.loss_size)} {slower}"


def checks_view(target: str, proofs: Sequence[Proof], mpi: Mpi) -> View:
    """Returns what checks of the files of a library show, which ran on an MPI library."""
    rows = [Checked(target, proof) for proof in proofs]
    how = "libtutti_mpi's counts" if target == "plan" else _WATCHED.get(mpi.kind, "")
    return View(
        headline=Fact("check", f"check of {target}, on {mpi}, by {how}:"),
        tables=[ReportTable(of_scope(CHECKS, "runs"), rows, caption=_CHECKS)],
        data=[Data("checks", lambda: frame_of(CHECKS, rows))],
        log=[
            f"{_named(proof.schedule)} of {proof.size} B on {proof.ranks} ranks: {proof.verdict}: "
            f"{proof.why}"
            for proof in proofs
            if proof.why and proof.verdict != "alike"
        ],
    )
