"""The algorithms that MPI libraries can be forced to execute, by release line.

The table is `library_algorithms.toml`: Open MPI's component tuned, MPICH, and UCC's transport ucp.
Each algorithm has the variables that force it and, where tutti has one, the schedule that sends the
same messages.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from tutti.base.bundled import bundled
from tutti.measured.errors import TuningError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

COUNTED: Final = frozenset({"exact", "alike"})
"""Matches of schedules whose messages have been counted."""

FORCING: Final[dict[str, dict[str, str]]] = {
    "openmpi": {"coll_tuned_use_dynamic_rules": "1", "coll_han_priority": "0"},
    "mpich": {},
    "ucc": {},
}
"""Variables without which :func:`variables` has no effect. On several hosts, Open MPI's component
han precedes tuned."""

TITLES: Final = {"openmpi": "Open MPI", "mpich": "MPICH", "ucc": "UCC"}
"""The libraries, as they are written."""

_NAMES: Final = {
    "all_reduce": "allreduce",
    "all_gather": "allgather",
    "reduce_scatter": "reduce_scatter_block",
    "reduce_scatter_v": "reduce_scatter",
    "broadcast": "bcast",
    "all_to_all": "alltoall",
}
"""MPI's names of collectives, where they differ from tutti's."""


def _power_of_two(ranks: int) -> bool:
    return ranks & (ranks - 1) == 0


_SMALL_FANS: Final = frozenset({2, 3, 4, 8})

_RANKS: Final[dict[str, Callable[[int, int], bool]]] = {
    "": lambda _ranks, _fan: True,
    "power_of_two": lambda ranks, _fan: _power_of_two(ranks),
    "not_power_of_two": lambda ranks, _fan: not _power_of_two(ranks),
    "even": lambda ranks, _fan: ranks % 2 == 0,
    "two": lambda ranks, _fan: ranks == 2,
    "power_of_fan": lambda ranks, fan: _stages(ranks, fan) > 0,
}
"""Conditions on a number of ranks and a fan-out, as the table names them."""


def _stages(ranks: int, fan: int) -> int:
    """Returns the stages of exchanges among `fan` ranks; 0 if the ranks are no power of it."""
    stages = 0
    while fan > 1 and ranks > 1 and ranks % fan == 0:
        stages, ranks = stages + 1, ranks // fan
    return stages if ranks == 1 else 0


@dataclass(frozen=True)
class Equivalent:
    """A schedule that sends the messages of a library's algorithm.

    Attributes:
        notation: the schedule; for a row of the table with parameters to be replaced.
        match: `exact`: the same messages between the same ranks; `alike`: the same number and
            sizes, up to renumbering of ranks; `source`: equal by the library's source, but not
            counted; `unchecked`: it resembles the algorithm.
        ranks: the rank counts, as :data:`LibraryAlgorithm.ranks`.
        fan: the only fan-out or radix; 0 for any.
        least_fan: the smallest fan-out or radix.
    """

    notation: str
    match: str
    ranks: str = ""
    fan: int = 0
    least_fan: int = 1

    @property
    def exact(self) -> bool:
        """Whether the same pairs of ranks exchange messages."""
        return self.match != "alike"

    @property
    def proved(self) -> bool:
        """Whether the messages have been counted."""
        return self.match in COUNTED


@dataclass(frozen=True)
class LibraryAlgorithm:
    """An algorithm that a user can force.

    Attributes:
        library: `openmpi`, `mpich` or `ucc`.
        collective: tutti's name; `reduce_scatter` is MPI_Reduce_scatter_block, `reduce_scatter_v`
            MPI_Reduce_scatter.
        name: the library's name.
        versions: the release lines that have it, such as ``5.0``.
        variant: the kind of tree, of MPICH's algorithms on trees.
        number: its number in Open MPI.
        aliases: other names.
        segment: the variable of the segment size; empty without segments.
        cut: what segments divide: the message, `halves` of it, or each rank's block (`phases`).
        fan_variable: the variable of the fan-out or radix; empty without one.
        fan_default: its default.
        fan_in_rules: whether a file of rules can set it.
        in_rules: whether a file of rules can select the algorithm.
        settings: further variables.
        json: further parameters in MPICH's selection trees.
        ranks: the rank counts on which the library executes it, and no other algorithm in its
            place: `power_of_two`, `even`, `two`, or empty for any.
        elements: the number of elements below which the library executes another: `ranks`,
            `power_of_two` (the largest not above the ranks), or empty for none.
        instead: the algorithm that it executes then.
        composed: the collectives that it executes in turn, each with the library's default.
        schedules: the schedules that send its messages, for some ranks and fan-outs each.
    """

    library: str
    collective: str
    name: str
    versions: tuple[str, ...]
    variant: str = ""
    number: int = 0
    aliases: tuple[str, ...] = ()
    segment: str = ""
    cut: str = ""
    fan_variable: str = ""
    fan_default: int = 0
    fan_in_rules: bool = True
    in_rules: bool = True
    settings: Mapping[str, str] = field(default_factory=dict)
    json: Mapping[str, int] = field(default_factory=dict)
    ranks: str = ""
    elements: str = ""
    instead: str = ""
    composed: tuple[str, ...] = ()
    schedules: tuple[Equivalent, ...] = ()

    @property
    def label(self) -> str:
        """The name, with the variant if there is one."""
        return f"{self.name} {self.variant}".strip()

    @property
    def numbers(self) -> dict[str, int]:
        """Open MPI's number of each release line that has the algorithm."""
        return dict.fromkeys(self.versions, self.number) if self.number else {}

    @property
    def segmented(self) -> bool:
        """Whether it takes a segment size."""
        return bool(self.segment)

    @property
    def fan(self) -> bool:
        """Whether it takes a fan-out or radix."""
        return bool(self.fan_variable)

    @property
    def tree_name(self) -> str:
        """The name in MPICH's selection trees."""
        return f"MPIR_{_mpi_name(self.collective).capitalize()}_intra_{self.name}"

    def runs_on(self, ranks: int, elements: int | None = None) -> bool:
        """Whether the library executes it, and no other in its place.

        Args:
            ranks: number of ranks.
            elements: number of elements of the message; None for enough of them.
        """
        least = {"ranks": ranks, "power_of_two": 1 << ranks.bit_length() - 1}.get(self.elements, 0)
        enough = elements is None or elements >= least
        return enough and _RANKS[self.ranks](ranks, self.fan_default)

    def equivalent(
        self, ranks: int, size: int, *, segment: int = 0, fan: int = 0
    ) -> Equivalent | None:
        """Returns the schedule that sends its messages, or None if tutti has none.

        Args:
            ranks: number of ranks.
            size: in bytes, by the convention of nccl-tests.
            segment: segment size in bytes; 0 without segments.
            fan: fan-out or radix; 0 for the default.
        """
        row = self.row(ranks, size, segment=segment, fan=fan)
        if row is None:
            return None
        fan = fan or self.fan_default
        segments = self._segments(ranks, size, segment) or 1
        return replace(
            row, notation=_filled(row.notation, ranks, fan, segments), fan=row.fan or fan
        )

    def row(self, ranks: int, size: int, *, segment: int = 0, fan: int = 0) -> Equivalent | None:
        """Returns the row of the table that :meth:`equivalent` fills in, or None."""
        fan = fan or self.fan_default
        segments = self._segments(ranks, size, segment)
        if segments is None:
            return None
        for row in self.schedules:
            fits = fan >= row.least_fan if self.fan and not row.fan else True
            fits = fits and (not self.fan or row.fan in {0, fan}) and _RANKS[row.ranks](ranks, fan)
            if fits and (segments == 1 or "{segments}" in row.notation):
                return row
        return None

    def notation(self, ranks: int, size: int, *, segment: int = 0, fan: int = 0) -> str | None:
        """Returns the notation of :meth:`equivalent`, or None."""
        found = self.equivalent(ranks, size, segment=segment, fan=fan)
        return None if found is None else found.notation

    def _segments(self, ranks: int, size: int, segment: int) -> int | None:
        """Returns the number of segments; None where the library executes another algorithm."""
        if not segment or not self.segmented:
            return 1
        if self.cut == "halves":
            return None if 2 * segment > size else -(-(size // 2) // segment)
        if self.cut == "phases":
            phases, rest = divmod(size, ranks * segment)
            return max(1, phases + (2 * rest > ranks * segment))
        return max(1, -(-size // segment))


def _filled(notation: str, ranks: int, fan: int, segments: int) -> str:
    """Replaces the parameters of a notation, and leaves out those with tutti's default."""
    stages = ",".join([f"a{fan}"] * _stages(ranks, fan))
    text = notation.format(segments=segments, fan=fan, ports=fan - 1, stages=stages, ranks=ranks)
    name, _, arguments = text.partition(":")
    default = {"segments=1", "fanout=2" if name == "kary_tree" else "fanout=1"}
    default |= {"1"} if name in {"bruck", "dissemination"} else set()
    stated = [part for part in arguments.split(",") if part and part not in default]
    return f"{name}:{','.join(stated)}" if stated else name


def _mpi_name(collective: str) -> str:
    return _NAMES.get(collective, collective)


def variables(algorithm: LibraryAlgorithm, *, segment: int = 0, fan: int = 0) -> dict[str, str]:
    """Returns the variables that force an algorithm; those of :data:`FORCING` are needed, too.

    Names are those of MCA parameters without ``OMPI_MCA_``, of MPICH's CVARs, and of UCC's
    environment variables.

    Args:
        algorithm: the algorithm.
        segment: segment size in bytes; 0 without segments.
        fan: fan-out or radix; 0 for the default.
    """
    mpi = _mpi_name(algorithm.collective)
    fan = fan or algorithm.fan_default
    if algorithm.library == "openmpi":
        start = f"coll_tuned_{mpi}_algorithm"
        named = {start: str(algorithm.number)}
        prefix = f"{start}_"
    elif algorithm.library == "mpich":
        prefix = f"MPIR_CVAR_{mpi.upper()}_"
        named = {f"{prefix}INTRA_ALGORITHM": algorithm.name, f"{prefix}DEVICE_COLLECTIVE": "0"}
    else:
        ucc = mpi.removesuffix("_block")
        prefix = f"UCC_TL_UCP_{ucc.upper()}_"
        named = {"UCC_TL_UCP_TUNE": f"{ucc}:0-inf:host:inf:@{algorithm.name}"}
    named |= {f"{prefix}{name}": value for name, value in algorithm.settings.items()}
    named |= {f"{prefix}{algorithm.segment}": str(segment)} if algorithm.segmented else {}
    named |= {f"{prefix}{algorithm.fan_variable}": str(fan)} if algorithm.fan else {}
    return named


# --- the table ------------------------------------------------------------------------------------


@cache
def _table() -> dict[str, Any]:
    return bundled("measured/tune/library_algorithms.toml")


def release_lines(library: str) -> tuple[str, ...]:
    """Returns the release lines of a library that the table covers, oldest first."""
    return tuple(_table()["lines"][library])


def left_out(library: str) -> frozenset[str]:
    """Returns a library's values that do not name one algorithm, such as `auto`."""
    return frozenset(_table()["left_out"].get(library, ()))


def release_line(library: str, version: str) -> str:
    """Returns the release line of a version: the newest one that is not newer.

    Args:
        library: `openmpi`, `mpich` or `ucc`.
        version: such as ``5.0.11``; `main` and an empty text are the newest line.

    Raises:
        TuningError: The version is older than the table, or not a version.
    """
    lines = release_lines(library)
    if version in {"main", ""}:
        return lines[-1]
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is not None:
        known = [line for line in lines if _parts(line) <= (int(found[1]), int(found[2]))]
        if known:
            return known[-1]
    message = (
        f"{TITLES[library]} {version}: its algorithms are unknown: expected {lines[0]} or newer"
    )
    raise TuningError(message, kind="unknown_version")


def _parts(line: str) -> tuple[int, int]:
    major, minor = line.split(".")
    return int(major), int(minor)


@cache
def every_algorithm(library: str) -> tuple[LibraryAlgorithm, ...]:
    """Returns the algorithms of all release lines of a library, by collective."""
    return tuple(
        _read(library, collective, dict(entry))
        for collective, entries in _table()[library].items()
        for entry in entries
    )


def _read(library: str, collective: str, entry: dict[str, Any]) -> LibraryAlgorithm:
    lines = release_lines(library)
    since, until = entry.pop("since", lines[0]), entry.pop("until", lines[-1])
    rows = tuple(Equivalent(**row) for row in entry.pop("schedules", ()))
    return LibraryAlgorithm(
        library,
        collective,
        versions=lines[lines.index(since) : lines.index(until) + 1],
        schedules=rows,
        fan_variable=entry.pop("fan", ""),
        aliases=tuple(entry.pop("aliases", ())),
        composed=tuple(entry.pop("composed", ())),
        **entry,
    )


def library_algorithms(library: str, version: str, collective: str) -> list[LibraryAlgorithm]:
    """Returns the algorithms of a version of a library for a collective.

    Raises:
        TuningError: The version is older than the table, or not a version.
    """
    line = release_line(library, version)
    return [
        one
        for one in every_algorithm(library)
        if one.collective == collective and line in one.versions
    ]


def library_algorithm(library: str, version: str, collective: str, name: str) -> LibraryAlgorithm:
    """Returns the algorithm of a version of a library by its name, label or alias.

    Raises:
        TuningError: The version lacks the algorithm.
    """
    listed = library_algorithms(library, version, collective)
    for names in (_own_names, _other_names):
        if found := [one for one in listed if name in names(one)]:
            return found[0]
    raise _lacking(library, version, collective, name, listed)


def _own_names(algorithm: LibraryAlgorithm) -> Sequence[str]:
    return algorithm.label, algorithm.name


def _other_names(algorithm: LibraryAlgorithm) -> Sequence[str]:
    return (*algorithm.aliases, algorithm.tree_name)


def _lacking(
    library: str, version: str, collective: str, name: str, listed: Sequence[LibraryAlgorithm]
) -> TuningError:
    others = [
        one
        for one in every_algorithm(library)
        if one.collective == collective and name in {*_own_names(one), *_other_names(one)}
    ]
    names = ", ".join(dict.fromkeys(one.name for one in listed))
    message = f"{TITLES[library]} {version} has no algorithm {name} for {collective}"
    message += f", which {others[0].versions[0]} has" if others else f": expected one of {names}"
    fields = {} if others else {"name": name, "known": names}
    return TuningError(message, kind="lacks", fields=fields)


@cache
def _patterns() -> dict[str, Any]:
    file = resources.files("tutti.measured.tune").joinpath("library_patterns.json")
    return dict(json.loads(file.read_text("utf-8")))


def patterns(algorithm: LibraryAlgorithm) -> dict[str, dict[str, list[int]]]:
    """Returns the rank counts at which an algorithm's messages were compared with its schedule's.

    Returns:
        By segment size and fan-out, such as ``"128 4"``, and by verdict: `same`, `alike`, `other`,
        `none` without a schedule, `failed` if the run failed. Nothing if nothing was counted.
    """
    counted = _patterns().get(algorithm.library, {"algorithms": {}})["algorithms"]
    return dict(counted.get(algorithm.collective, {}).get(algorithm.label, {}))


def _fans(algorithm: LibraryAlgorithm, ranks: int) -> list[int]:
    """Returns the fan-outs to consider: small ones, and those whose powers are the rank count."""
    if not algorithm.fan:
        return [0]
    if not algorithm.fan_in_rules:
        return [algorithm.fan_default]
    return [fan for fan in range(2, ranks + 1) if fan in _SMALL_FANS or _stages(ranks, fan)]


def equivalents(algorithm: LibraryAlgorithm, ranks: int) -> Iterator[tuple[int, Equivalent]]:
    """Yields the schedules of an algorithm without segments, with the fan-out that each needs.

    Schedules that only resemble it are left out, and so are fan-outs that no rule can set.
    """
    known = {*COUNTED, "source"}
    for fan in _fans(algorithm, ranks):
        found = algorithm.equivalent(ranks, 0, fan=fan)
        if found is not None and found.match in known and algorithm.runs_on(ranks):
            yield found.fan, found
