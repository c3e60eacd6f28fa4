"""What a tuning leaves behind: a file for each library, and the variables that make it read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tutti.errors import TuningError
from tutti.mpi.plan import Plan, Rule
from tutti.schedule import schedule
from tutti.tune import mpich, openmpi, ucc
from tutti.tune.decisions import HOST, decide

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import polars as pl

    from tutti.tune.decisions import Decision

__all__ = ["Written", "write_all"]


@dataclass(frozen=True)
class Written:
    """What was written for a library.

    Attributes:
        target: which.
        decisions: what it says.
        path: the file of rules; None where variables say it all.
        variables: under which it takes effect.
        shell: a file with these variables, for the shell.
    """

    target: str
    decisions: Sequence[Decision]
    path: Path | None
    variables: dict[str, str]
    shell: Path


def write_all(
    times: pl.DataFrame,
    targets: Iterable[str],
    folder: Path,
    *,
    provenance: dict[str, Any],
    tree: dict[str, Any] | None = None,
    second: bool = False,
) -> tuple[list[Written], dict[str, str]]:
    """Decides for each library, and writes it.

    Args:
        times: with the columns of :data:`tutti.tune.decisions.TIMES`.
        targets: of :data:`tutti.tune.targets.TARGETS`.
        folder: where to.
        provenance: of the plan.
        tree: MPICH's whole stock tree; without it nothing is written for MPICH.
        second: whether Open MPI's classic file is of the second version.

    Returns:
        What was written, and for which libraries nothing could be, with the reason.
    """
    written: list[Written] = []
    left: dict[str, str] = {}
    for target in targets:
        decisions = decide(times, target)
        try:
            path, variables = _one(target, decisions, folder, provenance, tree, second=second)
        except TuningError as error:
            left[target] = error.problem
            continue
        shell = folder / f"{target}.env"
        lines = [f"export {name}='{value}'" for name, value in variables.items()]
        shell.write_text("\n".join([*lines, ""]), "utf-8")
        written.append(Written(target, decisions, path, variables, shell))
    return written, left


def _one(
    target: str,
    decisions: Sequence[Decision],
    folder: Path,
    provenance: dict[str, Any],
    tree: dict[str, Any] | None,
    *,
    second: bool,
) -> tuple[Path | None, dict[str, str]]:
    if target == "plan":
        path = folder / "plan.tutti"
        Plan(_rules(decisions), provenance).write(path)
        return path, {"TUTTI_MPI_PLAN": str(path.resolve())}
    if target == "ucc":
        return None, ucc.settings(decisions)
    if target == "mpich":
        if tree is None:
            message = "MPICH's stock selections are not at hand"
            hint = "name an MPICH with --mpicc, or its generic.json with --csel-base"
            raise TuningError(message, kind="csel", hint=hint)
        path = folder / "mpich.json"
        path.write_text(mpich.merged(tree, decisions), "utf-8")
        return path, mpich.settings(str(path.resolve()), decisions)
    classic = target == "openmpi"
    path = folder / ("openmpi.rules" if classic else "openmpi6.json")
    text = openmpi.classic(decisions, second=second) if classic else openmpi.json_rules(decisions)
    path.write_text(text, "utf-8")
    return path, openmpi.settings(str(path.resolve()))


def _rules(decisions: Sequence[Decision]) -> list[Rule]:
    """Rules of a plan; where the MPI's own code is the fastest, there is none.

    Raises:
        TuningError: that is so everywhere.
    """
    rules = []
    for one in decisions:
        for name in (one.schedule, one.fallback):
            if name is None or name == HOST:
                continue
            laid_out = schedule(name, collective=one.collective, ranks=one.ranks)
            rules.append(Rule(one.collective, one.ranks, laid_out, (one.first, one.last)))
    if not rules:
        message = "the MPI's own code is the fastest everywhere: there is nothing to plan"
        raise TuningError(message, kind="nothing")
    return rules
