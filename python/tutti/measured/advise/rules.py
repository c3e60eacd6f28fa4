"""Writes decisions as rules of an MPI library, or as a plan of libtutti_mpi.

Names of libraries are those of :mod:`tutti.measured.tune.library_algorithms`. An algorithm that
runs over point-to-point messages of a benchmark is not one of the library, so it has no rule;
neither has one that the release line lacks. A plan has the schedule that sends the messages of an
algorithm.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tutti.measured.advise.decide import joined_choices
from tutti.measured.advise.questions import OVER
from tutti.measured.errors import TuningError
from tutti.measured.predict.catalogue import execution
from tutti.measured.tune.decisions import TuningDecision, extended
from tutti.measured.tune.files import earlier, of_defaults
from tutti.measured.tune.library_algorithms import LibraryAlgorithm, library_algorithm
from tutti.measured.tune.library_defaults import default_algorithm
from tutti.measured.tune.targets import Counterpart, counterpart, library_of, library_title
from tutti.measured.tune.times import MODELLED, OWN
from tutti.mpi.planned import COLLECTIVES
from tutti.mpi.usual import LEAST_GAIN, untuned
from tutti.schedules.bits import bits_differ
from tutti.schedules.errors import AlgorithmError
from tutti.schedules.ir import schedule
from tutti.schedules.proving import messages_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import polars as pl

    from tutti.measured.tune.files import Writer

TARGETS_OF: Final = {"openmpi": ("openmpi", "openmpi4", "openmpi6"), "mpich": ("mpich",)}
"""The formats of rules, by MPI library."""
PLAN: Final = "plan"
MOST_PLANNED: Final = 1 << 20
"""Most messages of a schedule of a plan: each is verified."""
MOST_PLANNED_RANKS: Final = 2048
"""Most ranks of a schedule of a plan: writing the program of each rank takes 4 s for 4,096."""

_SUFFIXES: Final = {
    "openmpi": "_ompi",
    "openmpi4": "_ompi",
    "openmpi6": "_ompi",
    "mpich": "_mpich",
}


def library_counterpart(
    target: str, collective: str, ranks: int, algorithm: str
) -> Counterpart | None:
    """Returns the algorithm of a library that a measured name means, or None.

    Args:
        target: `openmpi`, `openmpi4`, `openmpi6` or `mpich`.
        collective: the collective.
        ranks: number of ranks.
        algorithm: the name of the algorithm, such as `ring_ompi`.

    Examples:
        >>> library_counterpart("openmpi", "all_reduce", 64, "ring_ompi").number
        4
        >>> bool(library_counterpart("openmpi", "all_reduce", 64, "ring_over"))
        False
    """
    foreign = any(
        algorithm.endswith(suffix) and suffix != _SUFFIXES[target] for suffix in _SUFFIXES.values()
    )
    known = execution(collective, algorithm)
    if known is None or foreign or OVER.search(algorithm):
        return None
    named = algorithm.endswith(_SUFFIXES[target])
    mine = _of_library(target, collective, algorithm.removesuffix(_SUFFIXES[target]))
    if mine is not None and (named or target != "mpich"):
        fan = 2 if mine.name.startswith("bruck") else mine.fan_default
        return Counterpart(mine, algorithm, fan=fan, proved=False) if mine.runs_on(ranks) else None
    if known.algorithm.notation is None or algorithm != known.algorithm.notation:
        return None  # an algorithm of another library or of a benchmark
    return counterpart(target, collective, ranks, algorithm)


@cache
def planned(collective: str, ranks: int, algorithm: str) -> str | None:
    """Returns the schedule of libtutti_mpi that sends the messages of a measured algorithm.

    Args:
        collective: the collective.
        ranks: number of ranks.
        algorithm: the name of the algorithm, such as `ring_ompi`.

    Returns:
        A notation; None if tutti has none, if it would give ranks different bits, or if it has too
        many messages.

    Examples:
        >>> planned("all_reduce", 8, "rabenseifner_ompi")
        'recursive_halving_doubling'
    """
    known = execution(collective, algorithm)
    if known is None or collective not in COLLECTIVES or not known.algorithm.notation:
        return None
    if ranks > MOST_PLANNED_RANKS:
        return None
    if known.segment_bytes or known.ports > 1 or known.algorithm.pieces > 1:
        return None
    try:
        laid_out = schedule(known.algorithm.notation, collective=collective, ranks=ranks)
    except AlgorithmError:
        return None
    if (messages_of(laid_out) or 0) > MOST_PLANNED or bits_differ(laid_out):
        return None
    return laid_out.name


def _has(target: str, row: Mapping[str, Any]) -> bool:
    """Returns whether a target can be made to run the algorithm of a prediction."""
    of = row["collective"], row["ranks"], row["algorithm"]
    return bool(planned(*of) if target == PLAN else library_counterpart(target, *of))


def _of_library(target: str, collective: str, name: str) -> LibraryAlgorithm | None:
    """Returns an algorithm of the release line that rules are written for, or None."""
    library, version = library_of(target)
    try:
        found = library_algorithm(library, version, collective, name)
    except TuningError:
        return None
    return found if found.in_rules else None


class RuledSize(NamedTuple):
    """What a rule gains at a predicted size.

    Attributes:
        size: in bytes.
        default_us: predicted time of the default; None if unknown.
        ruled_us: predicted time with the rules: of the algorithm, or of the default if it stays.
    """

    size: int
    default_us: float | None
    ruled_us: float | None

    @property
    def gain(self) -> float | None:
        """How much longer the default takes: 0.2 is 20 %; None if that is unknown."""
        if self.default_us is None or self.ruled_us is None:
            return None
        return self.default_us / self.ruled_us - 1


@dataclass(frozen=True)
class AdvisedRule(TuningDecision):
    """A decision; its schedule is the name of a library's algorithm, or that of a plan.

    Attributes:
        unruled: the fastest algorithms of all for which the library has no rule, by name.
        algorithm: the name of the algorithm as it was measured; empty without a rule.
        cells: what it gains at each predicted size.
    """

    unruled: str = ""
    algorithm: str = ""
    cells: tuple[RuledSize, ...] = ()

    def counterpart(self, target: str) -> Counterpart | None:
        """Returns the algorithm of a library, or None."""
        if self.schedule is None or not self.is_rule or target == PLAN:
            return None
        return library_counterpart(target, self.collective, self.ranks, self.schedule)


@dataclass(frozen=True)
class WrittenRules:
    """The files written for a library.

    Attributes:
        target: `openmpi`, `openmpi4`, `openmpi6`, `mpich` or `plan`.
        rules: the decisions that they contain.
        path: the file of rules; None if there is nothing to write.
        shell: a shell file with the variables that enable it.
        notes: remarks for the user.
    """

    target: str
    rules: Sequence[AdvisedRule]
    path: Path | None = None
    shell: Path | None = None
    notes: tuple[str, ...] = field(default=())


def rules(
    predicted: pl.DataFrame, target: str, *, ranks_per_node: int | None = None
) -> list[AdvisedRule]:
    """Selects the fastest algorithm that a library has for each size, and joins neighbours.

    A choice holds up to the next larger size. Sizes below the smallest and above the largest keep
    the default. Where no algorithm is predicted to beat the default, measured or
    predicted, it stays.

    Args:
        predicted: with the columns of :data:`tutti.measured.advise.decide.PREDICTIONS`.
        target: `openmpi`, `openmpi4`, `openmpi6`, `mpich` or `plan`.
        ranks_per_node: ranks on each node that they are for; None for any.
    """
    found: list[AdvisedRule] = []
    for _, job in predicted.group_by("collective", "ranks", maintain_order=True):
        cells = job.sort("size_bytes", "place").partition_by("size_bytes", maintain_order=True)
        found += _joined(_of_sizes([cell.to_dicts() for cell in cells], target))
    return [replace(one, ranks_per_node=ranks_per_node) for one in found]


def _of_sizes(cells: Sequence[Sequence[Mapping[str, Any]]], target: str) -> Iterator[AdvisedRule]:
    first = cells[0][0]
    mine = [
        {row["algorithm"]: row["predicted_us"] for row in rows if _has(target, row)}
        for rows in cells
    ]
    names = _choices([
        {row["algorithm"]: row["choice_us"] for row in rows if row["algorithm"] in one}
        for rows, one in zip(cells, mine, strict=True)
    ])  # fmt: skip
    stays = _stays(cells, mine, target)
    sizes = [rows[0]["size_bytes"] for rows in cells]
    for place, (rows, name) in enumerate(zip(cells, names, strict=True)):
        best = rows[0]
        time = mine[place][name] if name else best["predicted_us"]
        default_us = _default_us(rows, mine[place], target)
        is_rule = name is not None and not stays[place]
        yield AdvisedRule(
            collective=first["collective"],
            ranks=first["ranks"],
            first=sizes[place],
            last=sizes[place + 1] - 1 if place + 1 < len(sizes) else sizes[place],
            schedule=OWN if stays[place] else _schedule(target, first, name),
            algorithm=name if name and is_rule else "",
            cells=(RuledSize(sizes[place], default_us, time if is_rule else default_us),),
            stays=stays[place],
            time_ps=round(time * 1e6) if name else None,
            method=MODELLED,
            loss=max(0.0, time / best["predicted_us"] - 1),
            loss_size=sizes[place],
            best=best["algorithm"],
            unruled="" if best["algorithm"] in mine[place] else best["algorithm"],
        )


def _schedule(target: str, row: Mapping[str, Any], name: str | None) -> str | None:
    """Returns how the files of a target name an algorithm."""
    if target != PLAN or name is None:
        return name
    return planned(row["collective"], row["ranks"], name)


def _choices(mine: Sequence[Mapping[str, float]]) -> list[str | None]:
    """Returns the choice of each size; None where the library has no candidate."""
    chosen = iter(joined_choices([one for one in mine if one]))
    return [next(chosen) if one else None for one in mine]


def _stays(
    cells: Sequence[Sequence[Mapping[str, Any]]], mine: Sequence[Mapping[str, float]], target: str
) -> list[str]:
    """Returns why each size keeps the default, as in :class:`TuningDecision`; empty if not.

    The default is what was measured of it, or else the prediction of the algorithm that the library
    selects by itself. At a size without either, the nearest size decides.
    """
    gains = {
        math.log(rows[0]["size_bytes"]): min(one.values()) <= default_us * (1 - LEAST_GAIN)
        for rows, one in zip(cells, mine, strict=True)
        if one and (default_us := _default_us(rows, one, target)) is not None
    }
    if not gains:
        return ["unknown" if one else "" for one in mine]
    logs = [math.log(rows[0]["size_bytes"]) for rows in cells]
    nearest = [min(gains, key=lambda at: (abs(at - log), at)) for log in logs]
    return ["" if gains[at] else "gain" for at in nearest]


def _default_us(
    rows: Sequence[Mapping[str, Any]], mine: Mapping[str, float], target: str
) -> float | None:
    first = rows[0]
    if first["default_us"] is not None:
        return float(first["default_us"])
    collective, ranks = first["collective"], first["ranks"]
    if target == PLAN:
        return _untuned_us(first, mine)
    selected = default_algorithm(*library_of(target), collective, ranks, first["size_bytes"])
    for name, time in mine.items():
        found = library_counterpart(target, collective, ranks, name)
        if found is None or found.algorithm.name != selected.algorithm.name:
            continue
        if found.fan == (selected.fan or found.fan):
            return time
    return None


def _untuned_us(row: Mapping[str, Any], mine: Mapping[str, float]) -> float | None:
    """Returns the predicted time of the MPICH default, if it is among the candidates."""
    collective, ranks, size = row["collective"], row["ranks"], row["size_bytes"]
    name = next(name for name, (first, last) in untuned(collective, ranks)
                if first <= size and (last is None or size <= last))  # fmt: skip
    times = [time for other, time in mine.items() if planned(collective, ranks, other) == name]
    return min(times, default=None)


def _joined(found: Iterable[AdvisedRule]) -> list[AdvisedRule]:
    joined: list[AdvisedRule] = []
    for one in found:
        last = joined[-1] if joined else None
        if last is None or (last.schedule, last.stays) != (one.schedule, one.stays):
            joined.append(one)
            continue
        worse = one if one.loss > last.loss else last
        joined[-1] = replace(
            last, last=one.last, loss=worse.loss, loss_size=worse.loss_size, best=worse.best,
            cells=last.cells + one.cells,
            unruled=", ".join(sorted({*_names(last.unruled), *_names(one.unruled)})),
        )  # fmt: skip
    return joined


def _names(unruled: str) -> list[str]:
    return unruled.split(", ") if unruled else []


def target_of(library: str, measured: str = "") -> str:
    """Returns the format whose gains an advice shows: that of the measured library, or the plan.

    Args:
        library: as in :func:`tutti.measured.advise.scope.library_family`.
        measured: the measured library with its version; empty if unknown.
    """
    targets = TARGETS_OF.get(library, (PLAN,))
    return next((one for one in targets if one != PLAN and _release(one, measured)), targets[0])


def ruled_times(predicted: pl.DataFrame, target: str) -> dict[tuple[str, int, int], RuledSize]:
    """Returns what rules gain, by collective, ranks and size; without those that are unknown.

    Args:
        predicted: with the columns of :data:`tutti.measured.advise.decide.PREDICTIONS`.
        target: `openmpi`, `openmpi4`, `openmpi6`, `mpich` or `plan`.
    """
    return {
        (one.collective, one.ranks, cell.size): cell
        for one in rules(predicted, target)
        for cell in one.cells
    }


def write_rules(
    predicted: pl.DataFrame,
    target: str,
    writer: Writer | None,
    *,
    measured: str = "",
    machine: str = "measured collectives",
    extend: bool = False,
    ranks_per_node: int | None = None,
) -> WrittenRules:
    """Writes the rules of a library, and the variables that enable them.

    Args:
        predicted: with the columns of :data:`tutti.measured.advise.decide.PREDICTIONS`.
        target: `openmpi`, `openmpi4`, `openmpi6`, `mpich` or `plan`.
        writer: writes the files; None to write none.
        measured: the measured library with its version; empty if unknown.
        machine: what the model was calibrated on, for comments.
        extend: whether rules also hold beyond the predicted sizes.
        ranks_per_node: ranks on each node that they are for; None for any.

    Returns:
        What was written; without a path if the library has no rule for any choice, or if the trees
        of MPICH are missing. Files of an earlier run are then removed.
    """
    found = [
        replace(one, conditions=machine)
        for one in rules(predicted, target, ranks_per_node=ranks_per_node)
    ]
    found = extended(found) if extend else found
    if writer is None:
        return WrittenRules(target, found)
    try:
        files = writer.write(target, found)
    except TuningError as error:
        removed = earlier(writer.clear(target))
        return WrittenRules(target, found, notes=_why_none(target, found, writer, error, removed))
    notes = (*_of_release(target, measured), *_of_large(target, found), *files.notes)
    return WrittenRules(target, found, files.path, files.shell, notes)


def _why_none(
    target: str, found: Sequence[AdvisedRule], writer: Writer, error: TuningError, removed: str
) -> tuple[str, ...]:
    """Returns why no rules were written, and which files of an earlier run were removed."""
    large = _of_large(target, found)
    if large and all(one.ranks > MOST_PLANNED_RANKS for one in found):
        return (f"{large[0]}{removed}",)
    stays = of_defaults(target, found)
    hint = f" ({error.hint})" if target == "mpich" and writer.stock is None else ""
    keeps = bool(stays) and not any(one.is_rule for one in found)
    reason = stays[0] if keeps else f"{error.problem}{hint}"
    return (f"no rules written: {reason}{removed}", *large)


def _release(target: str, measured: str) -> bool:
    """Returns whether the measured library is of the release line of Open MPI's rules."""
    return bool(re.match(rf"(Open MPI|OMPI) v?{library_of(target)[1]}\b", measured))


def _of_large(target: str, found: Sequence[AdvisedRule]) -> list[str]:
    """Reports numbers of ranks that are too large for a plan."""
    large = sorted({one.ranks for one in found if one.ranks > MOST_PLANNED_RANKS})
    if target != PLAN or not large:
        return []
    counts = ", ".join(f"{ranks:,}" for ranks in large)
    message = (
        f"nothing for {counts} ranks: plans of `tutti advise` end at {MOST_PLANNED_RANKS:,} ranks; "
        "`tutti mpi plan` writes larger ones"
    )
    return [message]


def _of_release(target: str, measured: str) -> list[str]:
    """Reports that another release line, or a custom build, was measured."""
    if target in {"mpich", PLAN} or not measured:
        return []
    if _release(target, measured):
        return []
    message = (
        f"rules have the algorithm numbers of {library_title(target)}: {measured} was measured, "
        "and another release or a custom build can number algorithms differently"
    )
    return [message]
