"""Writes the files of a tuning: rules for each library, and the variables that enable them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from tutti.measured.errors import TuningError
from tutti.measured.tune import mpich, openmpi, ucc
from tutti.measured.tune.decisions import decide, extended
from tutti.measured.tune.targets import library_title
from tutti.measured.tune.times import EMULATED, ESTIMATED, MEASURED, MODELLED, OWN
from tutti.mpi.plan import CollectivePlan, Rule
from tutti.mpi.proof import remember
from tutti.mpi.usual import LEAST_GAIN
from tutti.schedules.ir import schedule
from tutti.view.quantity import plural

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
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
    """The files of a library, that of rules first, its variables, and notes."""

    paths: list[Path]
    variables: dict[str, str]
    notes: list[str] = field(default_factory=list)


_FILES = {
    "plan": ("plan.tutti", "plan.env"),
    "openmpi": ("openmpi.rules", "openmpi.han", "openmpi.env"),
    "openmpi4": ("openmpi4.rules", "openmpi4.env"),
    "openmpi6": ("openmpi6.json", "openmpi6.han", "openmpi6.env"),
    "mpich": ("mpich.json", "mpich_device.json", "mpich.env"),
    "ucc": ("ucc.env",),
}
"""The files of each library, which another run replaces or removes."""


@dataclass(frozen=True)
class Writer:
    """Writes files of rules into a folder.

    Attributes:
        folder: the folder.
        provenance: provenance of the plan.
        stock: MPICH's stock trees; without them nothing is written for MPICH.
        second: whether Open MPI's classic file is of the second version.
        ranks_per_node: number of ranks on each node that rules are for; None for any.
        command: the command that writes, for comments.
    """

    folder: Path
    provenance: dict[str, Any]
    stock: Stock | None = None
    second: bool = False
    ranks_per_node: int | None = None
    command: str = "tutti tune"

    def clear(self, target: str, written: Collection[Path] = ()) -> list[str]:
        """Removes a library's files of an earlier run from the folder, and returns their names.

        Args:
            target: one of :data:`tutti.measured.tune.targets.TARGETS`.
            written: files of this run, which stay.
        """
        removed = []
        for name in _FILES[target]:
            path = self.folder / name
            if path not in written and path.is_file():
                path.unlink()
                removed.append(name)
        return removed

    def write(self, target: str, decisions: Sequence[TuningDecision]) -> Written:
        """Writes the files of a library, and removes others of an earlier run.

        Args:
            target: one of :data:`tutti.measured.tune.targets.TARGETS`.
            decisions: the decisions; calls that they do not cover keep the default.

        Raises:
            TuningError: Nothing can be written.
        """
        if self.ranks_per_node is not None:
            decisions = [replace(one, ranks_per_node=min(self.ranks_per_node, one.ranks))
                         for one in decisions]  # fmt: skip
        made = self._made(target, decisions)
        shell = self.folder / f"{target}.env"
        shell.write_text(_shell_text(decisions, made.variables, self.command), "utf-8")
        self.clear(target, written=[*made.paths, shell])
        notes = [*made.notes, *_replaced(made.variables)]
        path = made.paths[0] if made.paths else None
        return Written(target, decisions, path, made.variables, shell, notes)

    def _made(self, target: str, decisions: Sequence[TuningDecision]) -> _Made:
        if target == "plan":
            path = self.folder / "plan.tutti"
            how = {"times": _known_by(decisions)}
            remember(CollectivePlan(_rules(decisions), self.provenance | how).write(path))
            return _Made([path], {"TUTTI_MPI_PLAN": _absolute(path)}, _of_nodes(target, decisions))
        if target == "ucc":
            variables, notes = ucc.settings(decisions)
            return _Made([], variables, [*notes, *_of_nodes(target, decisions)])
        if target == "mpich":
            return _mpich(decisions, self.folder, self.stock)
        return self._open_mpi(target, decisions)

    def _open_mpi(self, target: str, decisions: Sequence[TuningDecision]) -> _Made:
        path = self.folder / _FILES[target][0]
        if target == "openmpi6":
            text = openmpi.json_rules(decisions)
        else:
            second = self.second and target == "openmpi"
            text = openmpi.classic(decisions, target, second=second)
        of_han = openmpi.han(decisions, target)
        paths = [path, *([self.folder / f"{target}.han"] if of_han is not None else [])]
        for file, written in zip(paths, (text, of_han or ""), strict=False):
            file.write_text(written.replace("`tutti tune`", f"`{self.command}`"), "utf-8")
        named = openmpi.settings(*map(_absolute, paths), *[None] * (2 - len(paths)))
        notes = [*_of_blocks(target, decisions), *openmpi.unstated(target, decisions)]
        return _Made(paths, named, notes)


def write_all(
    times: pl.DataFrame,
    targets: Iterable[str],
    writer: Writer,
    *,
    extend: bool = False,
    least_gain: float = LEAST_GAIN,
) -> tuple[list[Written], dict[str, TuningError]]:
    """Decides for each library, and writes its files.

    Args:
        times: with the columns of :data:`tutti.measured.tune.times.TIMES`.
        targets: of :data:`tutti.measured.tune.targets.TARGETS`.
        writer: writes the files.
        extend: whether rules also hold beyond the tuned sizes.
        least_gain: the predicted gain over the library's default that a rule needs.

    Returns:
        What was written, and the libraries for which nothing could be written, with the reason.
    """
    written: list[Written] = []
    left: dict[str, TuningError] = {}
    for target in targets:
        decisions = decide(times, target, least_gain=least_gain)
        try:
            _refuse_unknown(decisions, times, least_gain)
            files = writer.write(target, extended(decisions) if extend else decisions)
        except TuningError as error:
            removed = earlier(writer.clear(target))
            left[target] = error.reworded(error.problem + removed)
            continue
        notes = [*_of_other_mpis(decisions, times), *of_defaults(target, decisions, least_gain),
                 *files.notes]  # fmt: skip
        written.append(replace(files, notes=notes))
    return written, left


def earlier(removed: Sequence[str]) -> str:
    """Returns the end of a remark on removed files of an earlier run; empty without any."""
    return f"; removed files of an earlier run: {', '.join(removed)}" if removed else ""


def _refuse_unknown(
    decisions: Sequence[TuningDecision], times: pl.DataFrame, least_gain: float
) -> None:
    stays = [one for one in decisions if one.stays]
    if stays and not any(one.is_rule for one in decisions):
        message = f"no schedule is predicted to beat the library's default by {least_gain:.0%}"
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
        message = (
            "MPICH's stock selections are unknown: name an MPICH with --mpicc, or its generic.json "
            "with --csel-base"
        )
        raise TuningError(message, kind="csel")
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
    return _Made([path, *([device] if device else [])], named, notes)


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
        names = " and the ".join(dict.fromkeys(one.default_name("plan") for one in decisions))
        message = f"the {names} is the fastest everywhere: nothing to plan"
        raise TuningError(message, kind="nothing")
    return rules


# --- origin of the times --------------------------------------------------------------------------


def _shell_text(
    decisions: Sequence[TuningDecision], variables: dict[str, str], command: str
) -> str:
    lines = [f"# Written by `{command}`. Times by:"]
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


def _of_nodes(target: str, decisions: Sequence[TuningDecision]) -> list[str]:
    """Reports that a plan, or a string of UCC, has no number of ranks per node."""
    stated = sorted({one.ranks_per_node for one in decisions if one.ranks_per_node})
    what = "a plan" if target == "plan" else "the string of UCC"
    return [
        f"decisions are for {plural(each, 'rank')} per node, which {what} cannot state: they hold "
        "for every placement of these ranks"
        for each in stated
    ]


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


def of_defaults(
    target: str, decisions: Sequence[TuningDecision], least_gain: float = LEAST_GAIN
) -> list[str]:
    """Reports the sizes at which a model leaves the library's default."""
    stays = [one.stays for one in decisions if one.stays]
    if not stays:
        return []
    library = "the MPI library" if target == "plan" else library_title(target)
    message = (
        f"{len(stays)} of {len(decisions)} ranges of sizes keep the default of {library}: no "
        f"schedule is predicted to beat it by {least_gain:.0%}"
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
