"""Writes the files of a tuning: rules for each library, and the variables that enable them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from tutti.measured.errors import TuningError
from tutti.measured.tune import mpich, openmpi, ucc
from tutti.measured.tune.decisions import LEAST_GAIN, decide, extended
from tutti.measured.tune.targets import library_title
from tutti.measured.tune.times import EMULATED, ESTIMATED, MEASURED, MODELLED, OWN
from tutti.mpi.plan import CollectivePlan, Rule
from tutti.mpi.proof import remember
from tutti.schedules.ir import schedule

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tutti.measured.tune.decisions import TuningDecision
    from tutti.measured.tune.mpich import Stock


@dataclass(frozen=True)
class Written:
    """The files written for a library.

    Attributes:
        target: name of the library.
        decisions: the decisions that they contain.
        path: the file of rules; None if variables suffice.
        variables: environment variables that enable it.
        shell: a shell file with these variables.
        notes: remarks for the user.
    """

    target: str
    decisions: Sequence[TuningDecision]
    path: Path | None
    variables: dict[str, str]
    shell: Path
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class _Made:
    """The files of a library, its variables, and notes."""

    path: Path | None
    variables: dict[str, str]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Writer:
    """Writes files of rules into a folder.

    Attributes:
        folder: the folder.
        provenance: provenance of the plan.
        stock: MPICH's stock trees; without them nothing is written for MPICH.
        second: whether Open MPI's classic file is of the second version.
    """

    folder: Path
    provenance: dict[str, Any]
    stock: Stock | None = None
    second: bool = False

    def write(self, target: str, decisions: Sequence[TuningDecision]) -> Written:
        """Writes the files of a library.

        Args:
            target: one of :data:`tutti.measured.tune.targets.TARGETS`.
            decisions: the decisions; calls that they do not cover keep the default.

        Raises:
            TuningError: Nothing can be written.
        """
        made = self._made(target, decisions)
        shell = self.folder / f"{target}.env"
        shell.write_text(_shell_text(decisions, made.variables), "utf-8")
        notes = [*made.notes, *_replaced(made.variables)]
        return Written(target, decisions, made.path, made.variables, shell, notes)

    def _made(self, target: str, decisions: Sequence[TuningDecision]) -> _Made:
        if target == "plan":
            path = self.folder / "plan.tutti"
            how = {"times": _known_by(decisions)}
            remember(CollectivePlan(_rules(decisions), self.provenance | how).write(path))
            return _Made(path, {"TUTTI_MPI_PLAN": str(path.resolve())})
        if target == "ucc":
            return _Made(None, *ucc.settings(decisions))
        if target == "mpich":
            return _mpich(decisions, self.folder, self.stock)
        return _open_mpi(target, decisions, self.folder, second=self.second)


def write_all(
    times: pl.DataFrame,
    targets: Iterable[str],
    folder: Path,
    *,
    provenance: dict[str, Any],
    stock: Stock | None = None,
    second: bool = False,
    extend: bool = False,
) -> tuple[list[Written], dict[str, TuningError]]:
    """Decides for each library, and writes its files.

    Args:
        times: with the columns of :data:`tutti.measured.tune.times.TIMES`.
        targets: of :data:`tutti.measured.tune.targets.TARGETS`.
        folder: output folder.
        provenance: provenance of the plan.
        stock: MPICH's stock trees; without them nothing is written for MPICH.
        second: whether Open MPI's classic file is of the second version.
        extend: whether rules also hold beyond the tuned sizes.

    Returns:
        What was written, and the libraries for which nothing could be written, with the reason.
    """
    writer = Writer(folder, provenance, stock, second)
    written: list[Written] = []
    left: dict[str, TuningError] = {}
    for target in targets:
        decisions = decide(times, target)
        try:
            _refuse_unknown(decisions, times)
            files = writer.write(target, extended(decisions) if extend else decisions)
        except TuningError as error:
            left[target] = error
            continue
        notes = [*_of_other_mpis(decisions, times), *of_defaults(target, decisions), *files.notes]
        written.append(replace(files, notes=notes))
    return written, left


def _refuse_unknown(decisions: Sequence[TuningDecision], times: pl.DataFrame) -> None:
    stays = [one for one in decisions if one.stays]
    if stays and not any(one.is_rule for one in decisions):
        message = f"no schedule is predicted to beat the library's default by {LEAST_GAIN:.0%}"
        raise TuningError(message, kind="nothing", hint="measure on the library: --by measurement")
    if not decisions:
        measured = ", ".join(_measured(times))
        message = f"schedules were measured on {measured}, not the library's own algorithms"
        hint = (
            "measure on its MPI library (--mpicc) without --emulate, or let a model decide: "
            "--by both --platform NAME"
        )
        raise TuningError(message, kind="other_mpi", hint=hint)


def _mpich(decisions: Sequence[TuningDecision], folder: Path, stock: Stock | None) -> _Made:
    if stock is None:
        message = "MPICH's stock selections are unknown"
        hint = "name an MPICH with --mpicc, or its generic.json with --csel-base"
        raise TuningError(message, kind="csel", hint=hint)
    path = folder / "mpich.json"
    path.write_text(mpich.merged(stock.algorithms, decisions), "utf-8")
    device, notes = None, _of_blocks("mpich", decisions)
    if stock.device is not None:
        device = folder / "mpich_device.json"
        device.write_text(mpich.merged_device(stock.device, decisions), "utf-8")
    else:
        notes.append("the device's selections are unknown, so for tuned collectives its "
                     "compositions are off for all ranks and sizes; use --mpicc instead of "
                     "--csel-base to read them")  # fmt: skip
    named = mpich.settings(_absolute(path), _absolute(device) if device else None, decisions)
    return _Made(path, named, notes)


def _open_mpi(
    target: str, decisions: Sequence[TuningDecision], folder: Path, *, second: bool
) -> _Made:
    is_classic = target == "openmpi"
    path = folder / ("openmpi.rules" if is_classic else "openmpi6.json")
    write = openmpi.classic(decisions, second=second) if is_classic else None
    path.write_text(write or openmpi.json_rules(decisions), "utf-8")
    text, of_han = openmpi.han(decisions, target), None
    if text is not None:
        of_han = folder / f"{target}.han"
        of_han.write_text(text, "utf-8")
    named = openmpi.settings(_absolute(path), _absolute(of_han) if of_han else None)
    return _Made(path, named, _of_blocks(target, decisions))


def _absolute(path: Path) -> str:
    return str(path.resolve())


def _rules(decisions: Sequence[TuningDecision]) -> list[Rule]:
    """Returns the rules of a plan; none where the native collective is the fastest.

    Raises:
        TuningError: The default is the fastest everywhere.
    """
    rules = []
    for one in decisions:
        for name in (one.schedule, one.fallback):
            if name is None or name == OWN:
                continue
            laid_out = schedule(name, collective=one.collective, ranks=one.ranks)
            rules.append(Rule(one.collective, one.ranks, laid_out, (one.first, one.last)))
    if not rules:
        message = "the native collective is the fastest everywhere: nothing to plan"
        raise TuningError(message, kind="nothing")
    return rules


# --- origin of the times --------------------------------------------------------------------------


def _shell_text(decisions: Sequence[TuningDecision], variables: dict[str, str]) -> str:
    lines = ["# Written by `tutti tune`. Times by:"]
    lines += [f"#   {how}" for how in _known_by(decisions)]
    lines += [f"export {name}='{value}'" for name, value in variables.items()]
    return "\n".join([*lines, ""])


def _known_by(decisions: Sequence[TuningDecision]) -> list[str]:
    """Returns the distinct origins of the times."""
    words = {EMULATED: "emulated distance"}
    origins = [f"{words.get(one.method, one.method)}: {one.conditions}" for one in decisions]
    return list(dict.fromkeys(origins))


def _of_other_mpis(decisions: Sequence[TuningDecision], times: pl.DataFrame) -> list[str]:
    """Reports that a model decides although schedules were measured."""
    measured = _measured(times)
    if not measured or any(one.method not in {MODELLED, ESTIMATED} for one in decisions):
        return []
    return [
        f"the model decides: the schedules measured on {', '.join(measured)} are libtutti_mpi's"
    ]


def _measured(times: pl.DataFrame) -> list[str]:
    """Returns the MPI libraries on which schedules were measured."""
    mine = times.filter(pl.col("method").is_in([MEASURED, EMULATED]))
    return mine["mpi"].unique().sort().to_list()


def _of_blocks(target: str, decisions: Sequence[TuningDecision]) -> list[str]:
    """Reports that the other reduce_scatter keeps its default."""
    tuned = any(
        one.collective == "reduce_scatter" and one.counterpart(target) is not None
        for one in decisions
    )
    message = (
        "rules of reduce_scatter apply to MPI_Reduce_scatter_block; MPI_Reduce_scatter is unchanged"
    )
    return [message] if tuned else []


def of_defaults(target: str, decisions: Sequence[TuningDecision]) -> list[str]:
    """Reports the sizes at which a model leaves the library's default."""
    stays = [one.stays for one in decisions if one.stays]
    if not stays:
        return []
    message = (
        f"{len(stays)} of {len(decisions)} ranges of sizes keep the default of "
        f"{library_title(target)}: no schedule is predicted to beat it by {LEAST_GAIN:.0%}"
    )
    unknown = stays.count("unknown")
    return [message + (f", or the model cannot predict it ({unknown})" if unknown else "")]


def _replaced(variables: dict[str, str]) -> list[str]:
    """Reports variables of this shell that have another value."""
    return [
        f"{name} is {os.environ[name]!r} here: the written value replaces it"
        for name, value in variables.items()
        if os.environ.get(name, value) != value
    ]
