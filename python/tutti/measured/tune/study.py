"""The study of a tuning: times candidates, writes the fastest for each library, checks files."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl
import typer

from tutti.base.errors import ExitCode
from tutti.measured.tune.files import Writer, earlier, write_all
from tutti.measured.tune.late import Lateness
from tutti.measured.tune.live import LiveRules, raced
from tutti.measured.tune.measure import (
    by_measurement,
    by_model,
    cautions,
    fastest,
    notations,
)
from tutti.measured.tune.mpich import stock_for
from tutti.measured.tune.nodes import placement_cautions
from tutti.measured.tune.prove import Proof, proofs, unproved
from tutti.measured.tune.times import mpi_of, speaks_for
from tutti.mpi.library import built
from tutti.mpi.provenance import provenance
from tutti.mpi.usual import LEAST_GAIN
from tutti.study.console import remark, wrote
from tutti.study.progress import Progress
from tutti.study.study import Study

from .view import checks_view, live_view, tuning_view

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tutti.measured.errors import TuningError
    from tutti.measured.tune.confirm import Comparison
    from tutti.measured.tune.files import Written
    from tutti.measured.tune.measure import Question
    from tutti.mpi.bench_job import Settings
    from tutti.mpi.underneath import Mpi
    from tutti.platforms.machine import Platform


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """What to tune, how, and what to write.

    Attributes:
        questions: The collectives, rank counts and sizes.
        by: One of :data:`tutti.measured.tune.measure.METHODS`.
        algorithms: The algorithms to consider; empty for all.
        machine: The platform of the model; None without a model.
        mpi: The MPI library; None if there is none.
        settings: How to measure.
        most: Candidates per size and library that are measured, of those of the model.
        targets: The libraries to write for.
        strict: Whether nothing to write for a library is an error.
        base: MPICH's generic.json; None for that of its library.
        second: Whether Open MPI's classic file is of the second version.
        extend: Whether rules also hold beyond the tuned sizes.
        ranks_per_node: Ranks on each node that rules are for; None for any.
        least_gain: The predicted gain over the default that a rule needs: 0.1 is 10 %.
    """

    questions: Sequence[Question]
    by: str
    algorithms: Sequence[str] = field(default_factory=list)
    machine: Platform | None
    mpi: Mpi | None
    settings: Settings
    most: int
    targets: Sequence[str]
    strict: bool
    base: Path | None
    second: bool
    extend: bool = False
    ranks_per_node: int | None = None
    least_gain: float = LEAST_GAIN

    @property
    def live(self) -> list[str]:
        """The libraries whose own algorithms are measured: that of the MPI library here."""
        if self.mpi is None or self.by == "model" or self.settings.distance is not None:
            return []
        name = mpi_of(self.mpi)
        return [one for one in self.targets if one != "plan" and speaks_for(one, name)]


def tune(tuning: Tuning, output: Path) -> list[Written]:
    """Finds the fastest schedules, shows and writes them, and returns the files.

    Raises:
        ConfigError: The output folder cannot be created.
        TuningError: Nothing can be written for a library that was named.
    """
    study = Study[pl.DataFrame](output, "case", extra=None)
    others = [target for target in tuning.targets if target not in tuning.live]
    machine = tuning.machine.name if tuning.machine else None
    stock = None
    if "mpich" in tuning.targets:
        stock = stock_for(tuning.base, tuning.mpi, strict=tuning.strict)
    origin = provenance(sys.argv[1:], platform=machine)
    written: list[Written] = []
    left: dict[str, TuningError] = {}
    writer = Writer(output, origin, stock, tuning.second, tuning.ranks_per_node)
    if others:
        times = pl.concat([_times(study, tuning, question) for question in tuning.questions])
        written, left = write_all(
            times, others, writer, extend=tuning.extend, least_gain=tuning.least_gain
        )
    compared = 0
    for target in tuning.live:
        if tuning.mpi is not None and not study.is_interrupted:
            rules = LiveRules(target, tuning.mpi, writer, extend=tuning.extend)
            _live(study, tuning, rules, writer)
            written += rules.written
            compared += len(rules.races)
    if others:
        study.present(tuning_view(written, times))
    for files in written:
        where = files.path or files.shell
        use = f"tutti mpi exec --plan {where} -- ..." if files.target == "plan" else ""
        wrote(where, note=f"; use it with `{use or f'. {files.shell}'}`", wrap=True)
    study.end(compared, len(tuning.live) * len(tuning.questions))
    _report(left, strict=tuning.strict)
    return written


def _report(left: Mapping[str, TuningError], *, strict: bool) -> None:
    """Reports the libraries for which nothing was written, after those that have files.

    Raises:
        TuningError: The user named one of them.
    """
    for number, (target, error) in enumerate(left.items(), start=1):
        if strict and number == len(left):
            raise error.reworded(f"{target}: {error.problem}")
        remark(f"nothing for {target}: {error.problem}")
        if error.hint and strict:
            remark(f"hint: {error.hint}")


def _live(study: Study[pl.DataFrame], tuning: Tuning, rules: LiveRules, writer: Writer) -> None:
    """Measures the algorithms of the MPI library, and writes rules for those that are faster.

    The files are written after each collective, so that a job that reaches its time limit has the
    rules up to there.
    """
    built(rules.mpi, starting=lambda: remark(f"compiling the library for {rules.mpi}"))
    try:
        for question in tuning.questions:
            _compare(study, tuning, question, rules)
    except KeyboardInterrupt:
        study.is_interrupted = True
    _report_live(study, tuning, rules, writer)


def _report_live(
    study: Study[pl.DataFrame], tuning: Tuning, rules: LiveRules, writer: Writer
) -> None:
    """Shows the comparisons, and removes the files of an earlier tuning if no rule holds."""
    target, removed = rules.target, ""
    if not rules.written and not study.is_interrupted:
        removed = earlier(writer.clear(target))
    if not any(race.names for race in rules.races):
        if not study.is_interrupted:
            remark(f"nothing for {target}: {rules.mpi} has none of the named algorithms{removed}")
        return
    study.present(live_view(rules))
    for race in rules.races:
        _report_late(race.question, race.late)
        placed = placement_cautions([race.conditions], race.question.ranks, tuning.ranks_per_node)
        for caution in placed:
            remark(caution)
    if removed:
        remark(f"{target}: no rules{removed}")


def _compare(
    study: Study[pl.DataFrame], tuning: Tuning, question: Question, rules: LiveRules
) -> None:
    """Races the algorithms of the library, and compares the default with the rules of the race."""
    machine = tuning.machine if tuning.by == "both" else None
    race = study.measured(
        f"{_label(question)}: algorithms of {rules.mpi}",
        lambda done: raced(question, rules.mpi, tuning.settings, machine, only=tuning.algorithms,
                           done=done),
    )  # fmt: skip
    compared: list[Comparison] = []
    if race.choices:
        compared = study.measured(
            f"{_label(question)}: default and rules",
            lambda done: rules.confirm(race, tuning.settings, done),
        )
    rules.add(race, compared)


def _times(study: Study[pl.DataFrame], tuning: Tuning, question: Question) -> pl.DataFrame:
    """Returns times by a model, by measurement, or by both."""
    modelled, names = [], list[str]()
    if tuning.machine is not None and tuning.by != "measurement":
        total = len(question.sizes)
        with Progress(_label(question), work=total, total=total) as progress:
            modelled = [
                by_model(question, tuning.machine, list(tuning.algorithms), progress.advance,
                         least_gain=tuning.least_gain)
            ]  # fmt: skip
        names = fastest(modelled[0], question, tuning.most)
    if tuning.mpi is None or (modelled and tuning.by == "model"):
        return pl.concat(modelled)
    names = names or notations(question, tuning.algorithms)
    return pl.concat([_measured(study, tuning, tuning.mpi, question, names), *modelled])


def _measured(
    study: Study[pl.DataFrame], tuning: Tuning, mpi: Mpi, question: Question, names: list[str]
) -> pl.DataFrame:
    """Returns measured times, and reports late blocks."""
    built(mpi, starting=lambda: remark(f"compiling the library for {mpi}"))
    measured = study.measured(
        _label(question),
        lambda done: by_measurement(question, mpi, tuning.settings, names, done=done),
        work=tuning.settings.blocks * (len(names) + 1) * len(question.sizes),
    )
    _report_late(question, Lateness.of(measured, tuning.settings.blocks))
    if tuning.settings.distance is None and not tuning.live:
        conditions = measured["conditions"].unique().to_list()
        placed = placement_cautions(conditions, question.ranks, tuning.ranks_per_node)
        for caution in [*cautions(conditions), *placed]:
            remark(caution)
    return measured


def _report_late(question: Question, late: Lateness) -> None:
    """States the blocks that started late."""
    if late.text:
        remark(f"{_label(question)}: {late.text}")


def _label(question: Question) -> str:
    return f"{question.collective} on {question.ranks} ranks"


def prove(written: Sequence[Written], mpi: Mpi, launcher: Sequence[str] = ()) -> None:
    """Runs the MPI library with the written files, with these options of its launcher.

    Raises:
        typer.Exit: The messages differ (3), or something could not be checked (1).
    """
    study = Study[list[Proof]](None)
    missing: dict[str, str] = {}
    failed = 0
    for files in written:
        reason = unproved(mpi, files)
        checks = [] if reason else _checked(study, mpi, files, launcher)
        if checks:
            study.present(checks_view(files.target, checks, mpi))
        if not any(proof.shows or not proof.holds for proof in checks):
            missing[files.target] = reason or "no decision could be checked"
        failed += sum(not proof.holds for proof in checks)
    for target, reason in missing.items():
        remark(f"{target}: not checked: {reason}")
    if failed:
        remark(f"{failed} of the runs sent unexpected messages")
        raise typer.Exit(int(ExitCode.FAILED))
    if missing or not written:
        remark("some files were not checked; --for selects the libraries")
        raise typer.Exit(int(ExitCode.UNPROVED))


def _checked(
    study: Study[list[Proof]], mpi: Mpi, files: Written, launcher: Sequence[str]
) -> list[Proof]:
    return study.measured(
        f"checking {files.target}", lambda _: proofs(mpi, files, options=launcher)
    )
