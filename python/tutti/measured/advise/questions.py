"""Questions: the rows to predict, one for each candidate, rank count and size."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

import polars as pl

from tutti import _core
from tutti.base.files.mistakes import mistake
from tutti.collectives.sizes import DEALT_OUT
from tutti.formats.measurements import MEASUREMENTS
from tutti.measured.advise.scope import CANDIDATE, MOST_RANKS
from tutti.measured.predict.catalogue import execution, known_algorithms
from tutti.measured.predict.features import GROUPS
from tutti.schedules.errors import AlgorithmError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tutti.measured.advise.scope import Scope

CANDIDATES: Final = ("measured", "library", "known")
"""Which algorithms to decide among: those measured, of these the ones that the library has, or
those measured and all others that the library has."""

JOB: Final = "question"
"""The job of questions: no measured job, whose load of other jobs they would share."""
_MOST_SIDES: Final = 6
_MOST_QUESTIONS: Final = 60_000
_LIBRARIES: Final = {
    "openmpi": ("Open MPI", "_ompi"),
    "mpich": ("MPICH", "_mpich"),
    "fujitsu": ("Fujitsu MPI", ""),
}


@dataclass(frozen=True)
class Target:
    """A job to decide for.

    Attributes:
        ranks: number of ranks.
        nodes: number of nodes.
        shape: sides of the torus, such as `8x8x8`; None on other networks.
    """

    ranks: int
    nodes: int
    shape: str | None = None


def targets(
    scope: Scope, ranks: Sequence[int] | None, shapes: Sequence[str] | None
) -> list[Target]:
    """Returns the jobs to decide for, smallest first.

    Args:
        scope: the machine.
        ranks: rank counts; None for those of the shapes, or for 4 and 16 times the largest
            measured one.
        shapes: sides of the torus, one for each job.

    Raises:
        ConfigError: A rank count is too small, too large or no multiple of the ranks per node; a
            torus has no shape, or another number of nodes.
    """
    if scope.torus:
        return _on_torus(scope, ranks, shapes)
    if shapes:
        raise mistake(
            "no measurement states the sides of a torus",
            source="--shape",
            value=", ".join(shapes),
            expected="no --shape; --ranks names the jobs",
        )
    if ranks is None:
        largest = max(measured_ranks(scope, None))
        nodes = -(-largest // scope.ranks_per_node)
        counts = [factor * nodes * scope.ranks_per_node for factor in (4, 16)]
        ranks = [one for one in counts if one <= MOST_RANKS] or [largest]
    for count in ranks:
        _check_ranks(count, scope)
    return [Target(one, one // scope.ranks_per_node) for one in sorted(set(ranks))]


def _on_torus(
    scope: Scope, ranks: Sequence[int] | None, shapes: Sequence[str] | None
) -> list[Target]:
    if not shapes:
        raise mistake(
            "the network is a torus, and the sides of the larger job are missing",
            source="tutti advise",
            expected="--shape with the sides in nodes, such as 8x8x8",
            hint=f"measured: {', '.join(sorted(set(scope.rows['shape'].drop_nulls())))}",
        )
    found = []
    for shape in dict.fromkeys(shapes):
        nodes = math.prod(_sides(shape))
        found.append(Target(nodes * scope.ranks_per_node, nodes, shape))
        _check_ranks(found[-1].ranks, scope)
    if ranks is not None and set(ranks) != {one.ranks for one in found}:
        raise mistake(
            "differs from the number of nodes of --shape times the ranks per node",
            source="--ranks",
            value=", ".join(str(one) for one in ranks),
            expected=", ".join(f"{one.ranks} for {one.shape}" for one in found),
            hint="leave --ranks out: --shape states the number of ranks",
        )
    return sorted(found, key=lambda one: (one.ranks, str(one.shape)))


def _sides(shape: str) -> list[int]:
    parts = shape.split("x")
    valid = all(one.isascii() and one.isdigit() and len(one) < 8 for one in parts)
    if not valid or not 2 <= len(parts) <= _MOST_SIDES or "0" in parts:
        raise mistake("is not a shape", source="--shape", value=shape,
                      expected="sides of a torus in nodes, such as 8x8x8")  # fmt: skip
    return [int(one) for one in parts]


def _check_ranks(count: int, scope: Scope) -> None:
    if not 2 <= count <= MOST_RANKS:
        raise mistake("no prediction for this number of ranks", source="--ranks", value=str(count),
                      expected=f"2 to {MOST_RANKS:,} ranks")  # fmt: skip
    if count % scope.ranks_per_node:
        raise mistake(
            f"is not a multiple of {scope.ranks_per_node} ranks per node",
            source="--ranks",
            value=str(count),
            expected="full nodes",
            hint="--ranks-per-node states the ranks per node of the larger job",
        )


def measured_ranks(scope: Scope, collective: str | None) -> list[int]:
    """Returns the rank counts measured, of jobs with these ranks per node if there are any."""
    rows = scope.rows.filter(pl.col("role") == CANDIDATE)
    if collective is not None:
        rows = rows.filter(pl.col("collective") == collective)
    same = rows.filter(pl.col("ranks_per_node") == scope.ranks_per_node)
    return (rows if same.is_empty() else same)["ranks"].unique().sort().to_list()


def candidates(scope: Scope, collective: str, which: str = "measured") -> list[str]:
    """Returns the algorithms to decide among, by name.

    Args:
        scope: the machine.
        collective: the collective.
        which: one of :data:`CANDIDATES`.

    Raises:
        ConfigError: The algorithms of the library are unknown, or it has none of those measured.
    """
    rows = scope.rows.filter(pl.col("role") == CANDIDATE, pl.col("collective") == collective)
    measured = rows["library_algorithm"].unique().sort().to_list()
    if which == "measured":
        return measured
    if scope.library not in _LIBRARIES:
        raise mistake(
            "the algorithms of this library are unknown",
            source=f"--algorithms {which}",
            value=scope.library or "not stated",
            expected=f"a library of {', '.join(_LIBRARIES)}",
            hint="--algorithms measured decides among those measured",
        )
    library, suffix = _LIBRARIES[scope.library]
    if which == "library":
        return [one for one in measured if _is_of(library, collective, one)]
    names = {one.name for name in measured if (one := execution(collective, name))}
    added = [
        known.names[0] + suffix
        for known in dict.fromkeys(known_algorithms().values())
        if known.collective == collective
        and library in known.libraries
        and not names & set(known.names)
    ]
    return sorted({*measured, *added})


def _is_of(library: str, collective: str, name: str) -> bool:
    """Returns whether a library has an algorithm, instead of a benchmark that runs over it."""
    known = execution(collective, name)
    return known is not None and library in known.algorithm.libraries and not OVER.search(name)


OVER: Final = re.compile(r"_over(_|$)|UTOFU")
"""Names of algorithms of PICO over point-to-point messages of the library, or past it."""


def runs_on(scope: Scope, collective: str, algorithm: str, ranks: int) -> bool:
    """Returns whether an algorithm is defined on a number of ranks.

    It is if it was measured on such a number: a power of two, an even one, or an odd one.
    Otherwise the schedule of the same notation decides.

    Args:
        scope: the machine.
        collective: the collective.
        algorithm: the name of the algorithm.
        ranks: number of ranks.
    """
    if _power_of_two(ranks):
        return True
    rows = scope.rows.filter(
        pl.col("collective") == collective, pl.col("library_algorithm") == algorithm
    )
    measured = [one for one in rows["ranks"].unique() if not _power_of_two(one)]
    if any(one % 2 or ranks % 2 == 0 for one in measured):
        return True
    known = execution(collective, algorithm)
    if known is None or (collective, known.name) in _POWERS_OF_TWO:
        return False
    notation = known.algorithm.notation
    return notation is None or _has_schedule(
        notation, known.algorithm.stages_of or collective, ranks
    )


_POWERS_OF_TWO: Final = frozenset(
    {("all_gather", "recursive_doubling"), ("reduce_scatter", "recursive_distance_doubling")}
)
"""Libraries replace these by another algorithm on other rank counts, or have no such algorithm."""


def _power_of_two(ranks: int) -> bool:
    return ranks & (ranks - 1) == 0


@cache
def _has_schedule(notation: str, collective: str, ranks: int) -> bool:
    try:
        _core.critical_path(notation, collective, ranks)
    except AlgorithmError:
        return False
    return True


def questions(
    scope: Scope,
    algorithms: Mapping[str, Sequence[str]],
    jobs: Sequence[Target],
    sizes: Mapping[str, Sequence[int]],
) -> pl.DataFrame:
    """Returns a row for each collective, job, size and algorithm, without a time.

    Args:
        scope: the machine.
        algorithms: the candidates of each collective.
        jobs: the jobs to decide for.
        sizes: the sizes of each collective, in bytes.

    Raises:
        ConfigError: There would be too many questions, if every algorithm runs everywhere.
    """
    _check_number(algorithms, jobs, sizes)
    rows = []
    for collective, names in algorithms.items():
        for job in jobs:
            defined = [one for one in names if runs_on(scope, collective, one, job.ranks)]
            for size in _of_a_byte_per_rank(collective, sizes[collective], job):
                rows += [(collective, job, size, name) for name in defined]
    return _frame(scope, rows)


def _check_number(
    algorithms: Mapping[str, Sequence[str]],
    jobs: Sequence[Target],
    sizes: Mapping[str, Sequence[int]],
) -> None:
    """Refuses too many questions, before the schedules of any of them are constructed."""
    number = sum(
        len(names) * len(_of_a_byte_per_rank(collective, sizes[collective], job))
        for collective, names in algorithms.items()
        for job in jobs
    )
    if number > _MOST_QUESTIONS:
        raise mistake(
            f"{number:,} predictions are too many",
            source="tutti advise",
            expected=f"at most {_MOST_QUESTIONS:,}",
            hint="name fewer rank counts (--ranks), sizes (-b, -e, -f) or collectives",
        )


def _of_a_byte_per_rank(collective: str, sizes: Sequence[int], job: Target) -> list[int]:
    """The sizes of which each rank has at least a byte, if a collective deals its vector out."""
    return [one for one in sizes if collective not in DEALT_OUT or one >= job.ranks]


def measured_sizes(scope: Scope, collective: str) -> list[int]:
    """Returns the sizes measured of a collective, in bytes."""
    rows = scope.rows.filter(pl.col("role") == CANDIDATE, pl.col("collective") == collective)
    return rows["size_bytes"].unique().sort().to_list()


def _frame(scope: Scope, rows: Sequence[tuple[str, Target, int, str]]) -> pl.DataFrame:
    constant = {
        "system": scope.system,
        "job": JOB,
        "library": scope.label,
        "ranks_per_node": scope.ranks_per_node,
        "gpu": scope.gpu,
        "emulated": False,
    }
    frame = pl.DataFrame(
        [
            {
                "collective": collective,
                "nodes": job.nodes,
                "shape": job.shape,
                "ranks": job.ranks,
                "size_bytes": size,
                "library_algorithm": name,
                **constant,
            }
            for collective, job, size, name in rows
        ],
        schema=MEASUREMENTS,
    )
    if GROUPS not in scope.rows.columns:
        return frame
    # Where a larger job will run is unknown: its messages cross groups, unlike measured ones.
    return frame.with_columns(pl.lit(None, pl.Binary).alias(GROUPS))
