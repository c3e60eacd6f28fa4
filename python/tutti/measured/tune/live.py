"""Races the algorithms of a live MPI library: all run in the same processes, in turn."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

import polars as pl

from tutti.measured.tune.confirm import confirm, points
from tutti.measured.tune.decisions import TuningDecision, extended, joined
from tutti.measured.tune.forced import ChosenAlgorithm, forced
from tutti.measured.tune.late import Lateness, in_time, timely
from tutti.measured.tune.measure import conditions_of, predicted, right_blocks, times_row
from tutti.measured.tune.race import DEFAULT, Blocks, Cases, Race
from tutti.measured.tune.times import MEASURED, OWN, TIMES, mpi_of
from tutti.mpi.bench import BenchCandidate
from tutti.mpi.launch import common_folder, stay_here

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tutti.measured.tune.confirm import Comparison
    from tutti.measured.tune.files import Writer, Written
    from tutti.measured.tune.measure import Question
    from tutti.measured.tune.race import Winner
    from tutti.mpi.bench_job import Settings
    from tutti.mpi.underneath import Mpi
    from tutti.platforms.machine import Platform


@dataclass(frozen=True)
class Raced:
    """The algorithms that won, and what was measured to find them.

    Attributes:
        question: The collective, ranks and sizes.
        choices: The algorithm at each size in bytes; sizes at which the default stays are absent.
        winners: Times of the choice and of the default.
        times: The median time in ps of each measured algorithm, by size and name.
        names: The algorithms that took part.
        blocks: The number of measured blocks.
        grid: The number of blocks if every algorithm were measured as often as a finalist.
        conditions: The MPI library, the hosts, and whether ranks shared cores.
        late: The blocks that a rank started late.
    """

    question: Question
    choices: Mapping[int, ChosenAlgorithm]
    winners: Mapping[int, Winner]
    times: Mapping[tuple[int, str], int]
    names: frozenset[str]
    blocks: int
    grid: int
    conditions: str
    late: Lateness


def raced(
    question: Question,
    mpi: Mpi,
    settings: Settings,
    machine: Platform | None,
    *,
    only: Sequence[str] = (),
    done: Callable[[int, int], object] | None = None,
) -> Raced:
    """Races the algorithms of a library on the sizes of a question.

    Args:
        question: The collective, ranks and sizes.
        mpi: The MPI library.
        settings: How to measure; its blocks are those of a finalist.
        machine: A platform whose predictions exclude slow algorithms from the first round, or None.
        only: Only algorithms of these names; empty for all.
        done: Called with the number of measured blocks, and their largest number.

    Raises:
        BenchError: A run failed, or a result was wrong.
        TuningError: The library is not known.
    """
    collective, ranks = question.collective, question.ranks
    listed = {size: {one.name: one for one in forced(mpi, collective, ranks, size, only)}
              for size in question.sizes}  # fmt: skip
    names = {size: list(named) for size, named in listed.items()}
    by_model = {} if machine is None else _predicted(question, machine, listed)
    race = Race(question.sizes, names, settings.blocks, by_model)

    conditions: set[str] = set()
    late: list[Lateness] = []

    def measure(cases: Cases, blocks: int) -> Blocks:
        options = {size: [listed[size][name] for name in chosen] for size, chosen in cases.items()}
        finished = race.measured_blocks
        frame = _measured(
            question, mpi, replace(settings, blocks=blocks), options,
            lambda more, _: done and done(finished + more, race.grid_blocks),
        )  # fmt: skip
        conditions.add(conditions_of(mpi, frame))
        crowded = bool(frame["crowded"].any())
        tolerance = settings.tolerance_s(question.ranks, crowded=crowded)
        late.append(Lateness.of(in_time(frame, tolerance), blocks))
        return _blocks(frame, tolerance)

    winners = race.run(measure)
    choices = {size: listed[size][won.name] for size, won in winners.items() if won.name}
    times = {case: round(median(time for _, time in blocks))
             for case, blocks in race.samples.items()}  # fmt: skip
    return Raced(
        question,
        choices,
        winners,
        times,
        frozenset(itertools.chain(*names.values())),
        race.measured_blocks,
        race.grid_blocks,
        max(conditions, default=""),
        functools.reduce(Lateness.plus, late, Lateness()),
    )


def _predicted(
    question: Question, machine: Platform, listed: Mapping[int, Mapping[str, ChosenAlgorithm]]
) -> dict[tuple[int, str], int]:
    """Returns a model's times in ps of the algorithms that are schedules, by size and name."""
    times: dict[tuple[int, str], int] = {}
    for size, named in listed.items():
        notations = {name: one.notation(question.ranks, size) for name, one in named.items()}
        modelled = predicted(question, machine, size, {n for n in notations.values() if n})
        times |= {(size, name): modelled[notation] for name, notation in notations.items()
                  if notation in modelled}  # fmt: skip
    return times


def _measured(
    question: Question,
    mpi: Mpi,
    settings: Settings,
    options: Mapping[int, Sequence[ChosenAlgorithm]],
    done: Callable[[int, int], object],
) -> pl.DataFrame:
    """Measures blocks of algorithms and of the default, in turn."""
    candidates = {
        size: [BenchCandidate("own"), *(BenchCandidate("forced", algorithm=one.name,
                                                       controls=one.controls) for one in listed)]
        for size, listed in options.items()
    }  # fmt: skip
    return right_blocks(question, mpi, settings, candidates, done)


def _blocks(frame: pl.DataFrame, tolerance_s: float) -> Blocks:
    """Returns the blocks that all ranks started in time."""
    blocks: Blocks = {}
    for row in timely(frame, tolerance_s).iter_rows(named=True):
        case = (int(row["size_bytes"]), row["schedule"] or DEFAULT)
        blocks.setdefault(case, {})[row["block"]] = row["time_ps"]
    return blocks


class LiveRules:
    """The rules for a library whose algorithms were raced.

    Attributes:
        target: The library, one of :data:`tutti.measured.tune.targets.TARGETS`.
        mpi: The MPI library.
        races: The races that were compared with the default.
        compared: Default and rules at each size with a rule.
        written: The files of the rules that hold; empty without any.
    """

    def __init__(self, target: str, mpi: Mpi, writer: Writer, *, extend: bool) -> None:
        """Stores what is the same for all races.

        Args:
            target: The library.
            mpi: The MPI library.
            writer: Writes the rules that hold.
            extend: Whether rules also hold beyond the tuned sizes.
        """
        self.target, self.mpi = target, mpi
        self.races: list[Raced] = []
        self.compared: list[Comparison] = []
        self.written: list[Written] = []
        self._writer, self._extend = writer, extend

    def confirm(
        self, race: Raced, settings: Settings, done: Callable[[int, int], object] | None = None
    ) -> list[Comparison]:
        """Compares the default with the rules of a race, at each size with a rule.

        Their files are temporary: rules that are not confirmed never reach the output folder.
        """
        here = stay_here(self.mpi.starts, settings.options)
        with common_folder("tune", here=here) as folder:
            decisions = self._decisions([race], None)
            files = replace(self._writer, folder=folder).write(self.target, decisions)
            return confirm(
                race.question, points(race.question, race.choices), files.variables, self.mpi,
                settings, done=done,
            )  # fmt: skip

    def add(self, race: Raced, compared: Sequence[Comparison]) -> None:
        """Adds a race and the comparisons of its rules, and writes all rules that hold."""
        self.races.append(race)
        self.compared += compared
        if any(one.holds for one in compared):
            decisions = self._decisions(self.races, self.compared)
            self.written = [self._writer.write(self.target, decisions)]

    @property
    def times(self) -> pl.DataFrame:
        """The median of each algorithm, with the columns of `TIMES`."""
        rows = [
            times_row(race.question, size, None, time, {
                "method": MEASURED, "conditions": race.conditions, "mpi": mpi_of(self.mpi),
                "schedule": name or OWN,
            })
            for race in self.races for (size, name), time in race.times.items()
        ]  # fmt: skip
        return pl.DataFrame(rows, schema=TIMES, orient="row")

    def _decisions(
        self, races: Sequence[Raced], compared: Sequence[Comparison] | None
    ) -> list[TuningDecision]:
        """Returns the decisions of races: all, or those that hold."""
        decisions = [
            one for race in races if race.choices for one in joined(_of_race(race, compared))
        ]
        return extended(decisions) if self._extend else decisions


def _of_race(race: Raced, compared: Sequence[Comparison] | None) -> Iterator[TuningDecision]:
    question = race.question
    chosen = points(question, race.choices)
    bounds = sorted({*question.sizes, *chosen})
    for one in compared or ():
        of_race = (one.collective, one.ranks) == (question.collective, question.ranks)
        if of_race and not one.holds:
            del chosen[one.size]
    for size, after in itertools.pairwise([*bounds, bounds[-1] + 1]):
        won = race.winners[max(one for one in question.sizes if one <= size)]
        algorithm = chosen.get(size)
        name = algorithm.name if algorithm else OWN
        yield TuningDecision(
            question.collective, question.ranks, size, after - 1, name, won.time_ps, MEASURED,
            best=name, datatype=question.datatype, conditions=race.conditions, forced=algorithm,
        )  # fmt: skip
