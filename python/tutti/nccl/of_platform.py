"""The communication library of a platform, and the schedules that it selects for collectives.

NCCL's choice is that of :func:`tutti.nccl.candidates`. The choices of Open MPI and MPICH are
those of :mod:`tutti.measured.tune.library_defaults`. The times that the model of a platform's
library predicts are those of :class:`LibraryTimes`. The schedules of :class:`LibraryChoice` have
messages between ranks, so that NVLink SHARP and SHARP (NVLS, CollNet) are left out. The fastest
other candidate of NCCL takes their place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from tutti.base.files.mistakes import known_word, mistake
from tutti.measured.tune.library_algorithms import TITLES, release_line
from tutti.measured.tune.library_defaults import (
    default_algorithm,
    default_schedules,
)
from tutti.measured.tune.targets import library_of
from tutti.nccl.libraries import MPI, NAMES, NCCL, PLATFORM
from tutti.nccl.library import of_system
from tutti.nccl.p2p import P2P, P2P_COLLECTIVES
from tutti.nccl.presets import preset_names, preset_of
from tutti.nccl.settings import COLLECTIVES
from tutti.nccl.tuning import best
from tutti.platforms.library import with_schedule
from tutti.schedules.errors import AlgorithmError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tutti.platforms.library import LibraryModel
    from tutti.platforms.machine import Platform
    from tutti.schedules.ir import Schedule
    from tutti.workloads.operations import CollectiveCall

Parts = list[tuple[str, str]]
"""The schedules that replace a collective in turn: collectives and notations."""
LibraryParts: TypeAlias = "list[tuple[str, str | Schedule]]"
"""The same, with schedules that no notation generates."""

_BY_MESSAGES = ("Ring", "Tree", "PAT", P2P)


@dataclass
class LibraryTimes:
    """The times that the model of a platform's library predicts for the collectives of a trace.

    Attributes:
        platform: The platform.
        model: The model of its library.
        selected: Sizes of collectives by a line that states the choice.
        notes: What is inferred, a line each.
    """

    platform: Platform
    model: LibraryModel
    selected: dict[str, set[int]] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)

    @classmethod
    def of(cls, platform: Platform) -> LibraryTimes | None:
        """Returns the times of a platform; None if its library or its nodes are not known."""
        library = platform.library
        known = library is not None and library.model.ranks_per_node > 0
        return cls(platform, library.model) if library is not None and known else None

    def __call__(self, call: CollectiveCall, size: int) -> int:
        """Returns the time of a collective in ps.

        Args:
            call: The collective and its ranks.
            size: The payload in bytes, by the convention of nccl-tests.

        Raises:
            ConfigError: The library does not have the collective, or its nodes have different
                numbers of ranks.
        """
        collective, group = call.collective, sorted(call.group)
        if collective == "all_to_all_v":
            self.notes["inferred: the parts of all_to_all_v are equal"] = None
            collective = "all_to_all"
        try:
            found = self.model.predict(self.model.name, collective, group, size)
        except AlgorithmError as error:
            hint = "--algorithm NAME replaces collectives by messages"
            raise mistake(error.problem, source="--library", hint=hint) from None
        if len(group) > 1:
            line = f"{call.collective} on {len(group)} ranks: {found.choice}"
            self.selected.setdefault(line, set()).add(size)
            if note := self.model.note(group):
                self.notes[note] = None
        return found.time_ps

    def remarks(self) -> tuple[str, ...]:
        """Returns the choices, what the times are, and what is inferred, a line each."""
        text = f"collectives take the time that the model of {self.model.title} predicts, from the "
        lines = [f"{text}start of their last rank; they share no links"]
        lines += _chosen(self.model.title, self.selected)
        if self.platform.library is not None and self.platform.library.is_changed:
            lines.append(f"the model of {self.model.title} is that of the unmodified platform")
        return (*lines, *self.notes)


def _chosen(title: str, selected: dict[str, set[int]]) -> list[str]:
    """Returns a line for each choice of a library."""
    lines = []
    for text, sizes in selected.items():
        several = f" ({len(sizes):,} sizes)" if len(sizes) > 1 else ""
        lines.append(f"{title} selects for {text}{several}")
    return lines


@dataclass
class LibraryChoice:
    """What a library selects for the collectives of a trace.

    Attributes:
        library: `nccl`, `openmpi` or `mpich`.
        detail: The NCCL system, or the release line of an MPI library.
        release: The version of NCCL; None is the latest.
        selected: Sizes of collectives by a line that states the choice.
        notes: What differs from the library, a line each.
    """

    library: str
    detail: str
    release: str | None = None
    selected: dict[str, set[int]] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)

    @classmethod
    def of(cls, library: str, platform: Platform) -> LibraryChoice:
        """Returns the choice of a library on a platform.

        Args:
            library: A name of `NAMES`; `nccl:SYSTEM` names a system of `tutti nccl systems`, and
                `openmpi:VERSION` or `mpich:VERSION` a version.
            platform: The platform.

        Raises:
            ConfigError: The library or the system is unknown, or the library of the platform is.
            TuningError: The version is older than the known ones, or not a version.
        """
        name, colon, detail = library.partition(":")
        name = known_word(name, NAMES, source="--library")
        if name == PLATFORM and colon:
            raise mistake("has no version", source="--library", expected=f"{PLATFORM} alone")
        if name in MPI:
            named, line = library_of(name)
            return cls(named, release_line(named, detail) if colon else line)
        own = platform.library
        known = (own.system if own is not None and own.name == NCCL else "") or None
        if name == NCCL and colon:
            preset_of(detail)
            return cls(NCCL, detail)
        if known is None:
            problem, expected = f"the library of {platform.name} is not known", NAMES[1:]
            if name == NCCL:
                problem = f"NCCL's graphs on {platform.name} are not known"
                expected = tuple(f"nccl:{each}" for each in preset_names())
            raise mistake(problem, source="--library", expected=f"one of {', '.join(expected)}")
        return cls(NCCL, known, own.version if own is not None else None)

    def __call__(self, call: CollectiveCall, size: int) -> LibraryParts:
        """Returns the schedules of a collective.

        Args:
            call: The collective and its ranks.
            size: The payload in bytes, by the convention of nccl-tests.

        Raises:
            ConfigError: tutti has no schedule that the library selects, or the nodes have different
                numbers of ranks.
        """
        algorithm = ""
        if self.library == NCCL:
            algorithm, found = self._nccl(call, size)
            parts: LibraryParts = [(call.collective, found)]
        else:
            parts = [*self._mpi(call, size)]
        laid_out = ", then ".join(one if isinstance(one, str) else one.name for _, one in parts)
        named = with_schedule(algorithm or laid_out, laid_out)
        line = f"{call.collective} on {len(call.group)} ranks: {named}"
        self.selected.setdefault(line, set()).add(size)
        return parts

    def remarks(self) -> tuple[str, ...]:
        """Returns the choices and the differences from the library, a line each."""
        return (*_chosen(self._title, self.selected), *self.notes)

    @property
    def _title(self) -> str:
        if self.library == NCCL:
            return "NCCL"
        return f"{TITLES[self.library]} {self.detail}"

    def _mpi(self, call: CollectiveCall, size: int) -> Parts:
        requested = (self.library, self.detail, call.collective, len(call.group), size)
        parts = default_schedules(*requested)
        if parts is None:
            chosen = default_algorithm(*requested)
            problem = f"{self._title} selects {chosen.name} for {call.collective} of {size:,} B on "
            problem += f"{len(call.group)} ranks, for which tutti has no schedule"
            raise mistake(problem, source="--library", expected="--algorithm NAME")
        return parts

    def _nccl(self, call: CollectiveCall, size: int) -> tuple[str, str | Schedule]:
        """Returns the notation of NCCL's algorithm, empty without one, and the schedule."""
        collective, group = call.collective, sorted(call.group)
        if collective == "barrier":
            return "", "dissemination"
        if collective not in {**COLLECTIVES, **P2P_COLLECTIVES}:
            self.notes[f"NCCL has no {collective}: sends and receives, all at once"] = None
            return "", "direct"
        if list(call.group) != group:
            text = "inferred: rings follow the order of ranks in groups; NCCL orders them by node"
            self.notes[text] = None
        model = of_system(self.detail, self.release)
        try:
            rows = model.candidates(collective, group, size)
            favourite = best(rows, collective).algorithm
            by_messages = best([row for row in rows if row.algorithm in _BY_MESSAGES], collective)
            one = model.schedule(model.notation(by_messages), collective, group, size, call.root)
        except AlgorithmError as error:
            raise mistake(error.problem, source="--library", expected="--algorithm NAME") from None
        if favourite != by_messages.algorithm:
            text = f"NCCL selects {favourite}, which messages cannot represent"
            self.notes[f"{text}: {by_messages.algorithm} instead"] = None
        if note := model.note(group):
            self.notes[note] = None
        return one.label, one.schedule


def parts_of(platform: Platform, notation: str) -> Callable[[CollectiveCall, int], LibraryParts]:
    """Returns the function of the schedules of an algorithm of a platform's library.

    Args:
        platform: The platform.
        notation: The algorithm, such as `nccl:ring`.

    Raises:
        ConfigError: The platform has no such library. The function raises it where the library does
            not consider the algorithm, or messages cannot represent it.
    """
    library = platform.library
    if library is None or library.name != notation.partition(":")[0].strip():
        problem = f"{notation} is an algorithm of a library that {platform.name} does not have"
        raise mistake(problem, source="--algorithm", expected="an algorithm")

    def parts(call: CollectiveCall, size: int) -> LibraryParts:
        try:
            group = sorted(call.group)
            one = library.model.schedule(notation, call.collective, group, size, call.root)
        except AlgorithmError as error:
            raise mistake(error.problem, source="--algorithm", value=notation) from None
        if one.predicted.algorithm not in _BY_MESSAGES:
            problem = f"{one.label} multicasts and reduces in switches, unlike messages"
            hint = "--library platform takes the time that the library predicts"
            raise mistake(problem, source="--algorithm", value=notation, hint=hint)
        return [(call.collective, one.schedule)]

    return parts
