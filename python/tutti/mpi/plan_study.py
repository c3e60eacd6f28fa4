"""The studies of plans and of the MPI implementation."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from tutti.mpi.errors import MpiError
from tutti.mpi.library import built, is_built, sources
from tutti.mpi.plan import CollectivePlan, PlannedSchedule
from tutti.mpi.probe import probe
from tutti.mpi.proof import prove, remember
from tutti.mpi.provenance import provenance
from tutti.mpi.rules import rank_list
from tutti.mpi.underneath import NAMES, find_mpi, launcher_kind, launchers_on_path
from tutti.schedules.ir import Schedule
from tutti.study.console import remark, wrote
from tutti.study.progress import Progress
from tutti.study.study import Study

from .view.plan import counted, file_view, info_view, plan_view

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.mpi.plan import Rule
    from tutti.mpi.rules import RuleRequest
    from tutti.mpi.underneath import Mpi


def show_mpi(mpicc: str | None, launcher: str | None, *, build: bool, start: bool) -> None:
    """Shows the MPI implementation.

    Args:
        mpicc: The compiler wrapper; None for the default.
        launcher: The launcher; None for the default.
        build: Whether to compile the library for it.
        start: Whether to start two ranks, which report their MPI library.

    Raises:
        MpiError: None was found.
    """
    mpi = find_mpi(mpicc, launcher)
    facts = [
        ("MPI", f"{mpi}, MPI standard {mpi.standard}"),
        ("selected", mpi.why),
        *(("also", other) for other in _others(mpi)),
        ("mpicc", f"{mpi.mpicc} ({' for '.join(filter(None, (mpi.compiler, mpi.machine)))})"),
        ("mpiexec", str(mpi.mpiexec)),
        *_library(mpi, build=build),
    ]
    if start:
        ranks = probe(mpi)
        facts += [("ranks", ranks.version), ("threads", f"at most {ranks.threads}")]
    Study().present(info_view(mpi, facts))


def _others(mpi: Mpi) -> list[str]:
    """Lists launchers of other MPI libraries, in case one of them was meant."""
    others = []
    for path in launchers_on_path():
        if path.resolve() == mpi.mpiexec.resolve():
            continue
        try:
            kind, version = launcher_kind(path)
        except MpiError:
            continue
        others.append(f"{path} ({NAMES[kind]} {version}): select it with --mpicc")
    return others


def _library(mpi: Mpi, *, build: bool) -> list[tuple[str, str]]:
    if not build and not is_built(mpi):
        missing = "not compiled; --compile or the first `tutti mpi exec` compiles it"
        return [("library", missing), ("sources", str(sources()))]
    made = built(mpi, starting=lambda: remark(f"compiling the library for {mpi}, once ..."))
    return [("library", str(made.library))]


def write_plan(request: RuleRequest, ranks: str, to: Path, *, exact_types: bool = False) -> None:
    """Verifies the schedules of rules, and shows and writes the plan.

    Args:
        request: The rules.
        ranks: The rank counts, such as ``2-16``.
        to: The file.
        exact_types: Whether to accept schedules that give ranks different bits.

    Raises:
        AlgorithmError: A rule is impossible on all of the rank counts.
        ConfigError: The rank counts are invalid, or the folder cannot be created.
        PlanError: Ranks would get different bits from a schedule.
        VerificationError: A schedule is wrong.
    """
    rules, remarks = request.rules(rank_list(ranks), exact_types=exact_types)
    for text in remarks:
        remark(text)
    verified: list[Rule] = []
    with Progress(
        "verifying", work=sum(rule.ranks for rule in rules), total=len(rules)
    ) as progress:
        for rule in rules:  # takes long for many ranks
            schedule = rule.schedule
            planned = PlannedSchedule.of(schedule) if isinstance(schedule, Schedule) else schedule
            verified.append(replace(rule, schedule=planned))
            progress.advance(rule.ranks, len(verified))
    plan = CollectivePlan(verified, provenance(sys.argv[1:]))
    study = Study[None](to.parent, extra=None)
    remember(plan.write(to))
    study.present(plan_view(plan))
    wrote(to, note=f": {counted(plan)}, {to.stat().st_size:,} bytes", wrap=True)


def show_plan(file: Path, *, is_verified: bool) -> None:
    """Shows a plan file, perhaps after checking its schedules again.

    Raises:
        PlanError: The file is not a plan, or a schedule is wrong.
    """
    plan = CollectivePlan.read(file)
    if is_verified:
        prove(plan, source=str(file))
    Study().present(file_view(plan, file, is_verified=is_verified))
