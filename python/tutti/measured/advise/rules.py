"""Writes decisions as rules of an MPI library: Open MPI 5 and 6, and MPICH.

Names are those of :mod:`tutti.measured.tune.library_algorithms`. An algorithm that runs over
point-to-point messages of a benchmark is not one of the library, so it has no rule; neither has one
that the release line lacks.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from tutti.measured.advise.decide import joined_choices
from tutti.measured.advise.questions import OVER
from tutti.measured.errors import TuningError
from tutti.measured.predict.catalogue import execution
from tutti.measured.tune import mpich, openmpi
from tutti.measured.tune.decisions import LEAST_GAIN, TuningDecision, extended
from tutti.measured.tune.files import of_defaults
from tutti.measured.tune.library_algorithms import LibraryAlgorithm, library_algorithm
from tutti.measured.tune.library_defaults import default_algorithm
from tutti.measured.tune.targets import Counterpart, counterpart, library_of, library_title
from tutti.measured.tune.times import MODELLED, OWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import polars as pl

    from tutti.measured.tune.mpich import Stock

TARGETS_OF: Final = {"openmpi": ("openmpi", "openmpi6"), "mpich": ("mpich",)}
"""The formats of rules, by MPI library."""

_SUFFIXES: Final = {"openmpi": "_ompi", "openmpi6": "_ompi", "mpich": "_mpich"}


def library_counterpart(
    target: str, collective: str, ranks: int, algorithm: str
) -> Counterpart | None:
    """Returns the algorithm of a library that a measured name means, or None.

    Args:
        target: `openmpi`, `openmpi6` or `mpich`.
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


def _of_library(target: str, collective: str, name: str) -> LibraryAlgorithm | None:
    """Returns an algorithm of the release line that rules are written for, or None."""
    library, version = library_of(target)
    try:
        found = library_algorithm(library, version, collective, name)
    except TuningError:
        return None
    return found if found.in_rules else None


@dataclass(frozen=True)
class AdvisedRule(TuningDecision):
    """A decision whose schedule is the name of a library's algorithm.

    Attributes:
        unruled: the fastest algorithms of all for which the library has no rule, by name.
    """

    unruled: str = ""

    def counterpart(self, target: str) -> Counterpart | None:
        """Returns the algorithm of a library, or None."""
        if self.schedule is None or not self.is_rule:
            return None
        return library_counterpart(target, self.collective, self.ranks, self.schedule)


@dataclass(frozen=True)
class WrittenRules:
    """The files written for a library.

    Attributes:
        target: `openmpi`, `openmpi6` or `mpich`.
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


def rules(predicted: pl.DataFrame, target: str) -> list[AdvisedRule]:
    """Selects the fastest algorithm that a library has for each size, and joins neighbours.

    A choice holds up to the next larger size. Sizes below the smallest and above the largest keep
    the default. Where no algorithm is predicted to beat the default, measured or
    predicted, it stays.

    Args:
        predicted: with the columns of :data:`tutti.measured.advise.decide.PREDICTIONS`.
        target: `openmpi`, `openmpi6` or `mpich`.
    """
    found: list[AdvisedRule] = []
    for _, job in predicted.group_by("collective", "ranks", maintain_order=True):
        cells = job.sort("size_bytes", "place").partition_by("size_bytes", maintain_order=True)
        found += _joined(_of_sizes([cell.to_dicts() for cell in cells], target))
    return found


def _of_sizes(cells: Sequence[Sequence[Mapping[str, Any]]], target: str) -> Iterator[AdvisedRule]:
    first = cells[0][0]
    mine = [
        {
            row["algorithm"]: row["predicted_us"]
            for row in rows
            if library_counterpart(target, row["collective"], row["ranks"], row["algorithm"])
        }
        for rows in cells
    ]
    names = _choices(mine)
    stays = _stays(cells, mine, target)
    sizes = [rows[0]["size_bytes"] for rows in cells]
    for place, (rows, name) in enumerate(zip(cells, names, strict=True)):
        best = rows[0]
        time = mine[place][name] if name else best["predicted_us"]
        yield AdvisedRule(
            collective=first["collective"],
            ranks=first["ranks"],
            first=sizes[place],
            last=sizes[place + 1] - 1 if place + 1 < len(sizes) else sizes[place],
            schedule=OWN if stays[place] else name,
            stays=stays[place],
            time_ps=round(time * 1e6) if name else None,
            method=MODELLED,
            loss=time / best["predicted_us"] - 1,
            loss_size=sizes[place],
            best=best["algorithm"],
            unruled="" if best["algorithm"] in mine[place] else best["algorithm"],
        )


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
    selected = default_algorithm(*library_of(target), collective, ranks, first["size_bytes"])
    for name, time in mine.items():
        found = library_counterpart(target, collective, ranks, name)
        if found is None or found.algorithm.name != selected.algorithm.name:
            continue
        if found.fan == (selected.fan or found.fan):
            return time
    return None


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
            unruled=", ".join(sorted({*_names(last.unruled), *_names(one.unruled)})),
        )  # fmt: skip
    return joined


def _names(unruled: str) -> list[str]:
    return unruled.split(", ") if unruled else []


def write_rules(
    predicted: pl.DataFrame,
    target: str,
    folder: Path,
    *,
    stock: Stock | None = None,
    measured: str = "",
    extend: bool = False,
) -> WrittenRules:
    """Writes the rules of a library, and the variables that enable them.

    Args:
        predicted: with the columns of :data:`tutti.measured.advise.decide.PREDICTIONS`.
        target: `openmpi`, `openmpi6` or `mpich`.
        folder: an existing folder.
        stock: MPICH's stock selection trees.
        measured: the measured library with its version; empty if unknown.
        extend: whether rules also hold beyond the predicted sizes.

    Returns:
        What was written; without a path if the library has no rule for any choice, or if the trees
        of MPICH are missing.
    """
    found = rules(predicted, target)
    found = extended(found) if extend else found
    try:
        path, variables, notes = _files(target, found, folder, stock)
    except TuningError as error:
        stays = of_defaults(target, found)
        if stays and not any(one.is_rule for one in found):
            return WrittenRules(target, found, notes=(f"no rules written: {stays[0]}",))
        hint = f" ({error.hint})" if target == "mpich" and stock is None else ""
        return WrittenRules(target, found, notes=(f"no rules written: {error.problem}{hint}",))
    notes = [*_of_release(target, measured), *notes]
    shell = folder / f"{target}.env"
    lines = [f"export {name}='{value}'" for name, value in variables.items()]
    text = "\n".join(["# Written by `tutti advise`. Times are predictions.", *lines, ""])
    shell.write_text(text, "utf-8")
    return WrittenRules(target, found, path, shell, tuple(notes))


def _of_release(target: str, measured: str) -> list[str]:
    """Reports that another release line, or a custom build, was measured."""
    _, line = library_of(target)
    if target == "mpich" or not measured or re.match(rf"(Open MPI|OMPI) v?{line}\b", measured):
        return []
    message = (
        f"rules have the algorithm numbers of {library_title(target)}: {measured} was measured, "
        "and another release or a custom build can number algorithms differently"
    )
    return [message]


_OF_BLOCKS: Final = (
    "rules of reduce_scatter apply to MPI_Reduce_scatter_block; MPI_Reduce_scatter is unchanged"
)


def _files(
    target: str, found: Sequence[AdvisedRule], folder: Path, stock: Stock | None
) -> tuple[Path, dict[str, str], list[str]]:
    notes = [_OF_BLOCKS] if any(
        one.collective == "reduce_scatter" and one.counterpart(target) for one in found
    ) else []  # fmt: skip
    if target == "mpich":
        path, variables = _mpich_files(found, folder, stock)
        return path, variables, notes
    is_classic = target == "openmpi"
    text = openmpi.classic(found) if is_classic else openmpi.json_rules(found)
    path = _write(folder / ("openmpi.rules" if is_classic else "openmpi6.json"), text)
    han = openmpi.han(found, target)
    of_han = _write(folder / f"{target}.han", han) if han is not None else None
    named = openmpi.settings(str(path.resolve()), str(of_han.resolve()) if of_han else None)
    return path, named, notes


def _mpich_files(
    found: Sequence[AdvisedRule], folder: Path, stock: Stock | None
) -> tuple[Path, dict[str, str]]:
    if stock is None:
        raise TuningError(
            "MPICH's stock selections are unknown",
            kind="csel",
            hint="name its generic.json with --csel-base",
        )
    path = _write(folder / "mpich.json", mpich.merged(stock.algorithms, found))
    device = None
    if stock.device is not None:
        device = _write(folder / "mpich_device.json", mpich.merged_device(stock.device, found))
    named = mpich.settings(str(path.resolve()), str(device.resolve()) if device else None, found)
    return path, named


def _write(path: Path, text: str) -> Path:
    path.write_text(text.replace("`tutti tune`", "`tutti advise`"), "utf-8")
    return path
