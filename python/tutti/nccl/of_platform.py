"""The communication library of a platform, and the schedules that it selects for collectives.

NCCL's choice is that of :func:`tutti.nccl.candidates`. The choices of Open MPI and MPICH are
those of :mod:`tutti.measured.tune.library_defaults`. The times that the model of a platform's
library predicts are those of :class:`LibraryTimes`. The schedules of :class:`LibraryChoice` have
messages between ranks, so that NVLink SHARP and SHARP (NVLS, CollNet) are left out. The fastest
other candidate of NCCL takes their place.
"""

from __future__ import annotations

from collections import Counter
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
from tutti.nccl.p2p import P2P
from tutti.nccl.presets import partial_system, preset_names, preset_of
from tutti.nccl.schedules import Layout, notation_of
from tutti.nccl.settings import COLLECTIVES
from tutti.nccl.tuning import best, candidates
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
        selected: Sizes of collectives by a line that states the choice.
        notes: What differs from the library, a line each.
    """

    library: str
    detail: str
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
            known = detail
        if known is None:
            problem, expected = f"the library of {platform.name} is not known", NAMES[1:]
            if name == NCCL:
                problem = f"NCCL's graphs on {platform.name} are not known"
                expected = tuple(f"nccl:{each}" for each in preset_names())
            raise mistake(problem, source="--library", expected=f"one of {', '.join(expected)}")
        return cls(NCCL, known)

    def __call__(self, call: CollectiveCall, size: int) -> Parts:
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
            algorithm, notation = self._nccl(call, size)
            parts: Parts = [(call.collective, notation)]
        else:
            parts = self._mpi(call, size)
        laid_out = ", then ".join(notation for _, notation in parts)
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

    def _nccl(self, call: CollectiveCall, size: int) -> tuple[str, str]:
        """Returns NCCL's name of an algorithm, empty without one, and the schedule."""
        if call.collective == "barrier":
            return "", "dissemination"
        if call.collective not in COLLECTIVES:
            self.notes[f"NCCL has no {call.collective}: sends and receives, all at once"] = None
            return "", "direct"
        width, nodes = self._layout(call, preset_of(self.detail).gpus_per_node)
        known = partial_system(self.detail, nodes, width)
        if width != preset_of(self.detail).gpus_per_node:
            text = f"inferred: NCCL's graphs for {width} GPUs per node are those of complete nodes"
            self.notes[text] = None
        rows = candidates(known, call.collective, size)
        favourite = best(rows, call.collective).algorithm
        by_messages = [row for row in rows if row.algorithm in _BY_MESSAGES]
        algorithm = best(by_messages, call.collective).algorithm
        if favourite != algorithm:
            text = f"NCCL selects {favourite}, which messages cannot represent: {algorithm} instead"
            self.notes[text] = None
        return algorithm, notation_of(algorithm, call.collective, Layout(width, nodes))

    def _layout(self, call: CollectiveCall, gpus: int) -> tuple[int, int]:
        """Returns the ranks per node of a group, and the number of nodes."""
        widths = Counter(rank // gpus for rank in call.group)
        if list(call.group) != sorted(call.group):
            text = "inferred: rings follow the order of ranks in groups; NCCL orders them by node"
            self.notes[text] = None
        if len(set(widths.values())) > 1:
            problem = f"the nodes have different numbers of ranks of a group: {len(call.group)} "
            problem += f"ranks on {len(widths)} nodes of {gpus} GPUs"
            raise mistake(problem, source="--library", expected="--algorithm NAME")
        return next(iter(widths.values())), len(widths)


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
            one = library.model.schedule(notation, call.collective, sorted(call.group), size)
        except AlgorithmError as error:
            raise mistake(error.problem, source="--algorithm", value=notation) from None
        if one.predicted.algorithm not in _BY_MESSAGES:
            problem = f"{one.label} multicasts and reduces in switches, unlike messages"
            hint = "--library platform takes the time that the library predicts"
            raise mistake(problem, source="--algorithm", value=notation, hint=hint)
        return [(call.collective, one.schedule)]

    return parts
