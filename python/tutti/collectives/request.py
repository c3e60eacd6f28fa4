"""Requests for measurements, and the schedules of notations, files and given schedules."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tutti.platforms.library import is_library, with_schedule
from tutti.schedules.errors import AlgorithmError
from tutti.schedules.ir import Schedule, schedule
from tutti.schedules.proving import messages_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.base.units import Size
    from tutti.platforms.conditions import Conditions
    from tutti.platforms.machine import Platform
    from tutti.schedules.block_sizes import Matrix
    from tutti.topologies import Routes


@dataclass(frozen=True)
class TimedSchedule:
    """A schedule, and the sizes at which it is measured.

    Attributes:
        algorithm: The name of the algorithm family.
        schedule: The schedule.
        messages: The approximate number of messages of a run; None if unknown.
        notation: An algorithm with its argument, or a file.
        sizes: The sizes at which it is measured, in bytes; None for all.
        label: The name in results, if it is not that of the schedule.
        platform: The platform with the costs of a library's protocol; None for that of the request.
        launch: What a rank does first: `launch`, or `latency` if it is that of a library's model.
    """

    algorithm: str
    schedule: Schedule
    messages: int | None
    notation: str
    sizes: frozenset[int] | None = None
    label: str = ""
    platform: Platform | None = None
    launch: str = "launch"

    @property
    def name(self) -> str:
        """The name in results."""
        return self.label or self.schedule.name

    @property
    def title(self) -> str:
        """The name in results, and that of the schedule if it differs."""
        return with_schedule(self.name, self.schedule.name)

    @property
    def work(self) -> int:
        """The relative cost of a run, for progress reports."""
        return self.messages or self.schedule.ranks


class MeasurementPoint(NamedTuple):
    """A measurement."""

    case: TimedSchedule
    size: Size
    repetition: int


@dataclass(frozen=True)
class LeftOut:
    """A schedule that is not measured at a rank count, and the reason.

    Attributes:
        notation: The algorithm or the name of the schedule.
        ranks: The rank count.
        reason: Why it is left out.
        sizes: The sizes at which it is left out; empty for all.
    """

    notation: str
    ranks: int
    reason: str
    sizes: str = ""

    @property
    def where(self) -> str:
        """The rank count and the sizes, if it is measured at others."""
        return f"{self.ranks} ranks" + (f" at {self.sizes}" if self.sizes else "")


@dataclass(frozen=True, kw_only=True)
class ComparisonRequest:
    """A request for measurements.

    Attributes:
        platform: The platform.
        collective: The collective.
        ranks: Rank counts.
        sizes: Payload sizes.
        algorithms: Notations, schedule files and schedules. None selects every algorithm that
            supports the collective and the rank count, its best argument at each size, and the
            best schedule of the search.
        root: The root of a rooted collective.
        blocks: The relative sizes of the blocks of an all_to_all_v; see `tutti.schedule`.
        datatype: The datatype of the elements.
        conditions: Noise, arrival skew and slow ranks.
        repetitions: Repetitions of each measurement; repetition k uses seed + k.
        seed: The seed of the first repetition.
        messages_limit: Most messages of a schedule; larger ones are left out.
        config_hash: The hash of the request in results.
        prune: Whether to leave out large schedules that cannot be among the two fastest; without
            effect on named algorithms.
    """

    platform: Platform
    collective: str
    ranks: Sequence[int]
    sizes: Sequence[Size]
    algorithms: Sequence[str | Schedule] | None
    root: int = 0
    blocks: str | Matrix | None = None
    datatype: str = "float32"
    conditions: Conditions | None = None
    repetitions: int = 1
    seed: int = 0
    messages_limit: int | None = None
    config_hash: str = ""
    prune: bool = False

    @property
    def is_repeatable(self) -> bool:
        """Whether a run without conditions takes the time of every repetition."""
        if self.conditions is not None and self.conditions != type(self.conditions)():
            return False
        # The routing of packets and flits draws random numbers.
        platform = self.platform
        return platform.effective_contention.kind in {"free", "flow"}

    def case(self, algorithm: str | Schedule, ranks: int) -> TimedSchedule:
        """Returns the schedule of an algorithm for a rank count.

        Raises:
            AlgorithmError: The algorithm does not fit.
        """
        if is_library(algorithm):
            name = self.platform.name
            problem = f"{algorithm} is an algorithm of a library that {name} does not have"
            hint = "dgx_h100 and dgx_h100_cluster have NCCL, mi300x has RCCL"
            raise AlgorithmError(problem, kind="argument", hint=hint)
        laid_out = lay_out(
            algorithm,
            collective=self.collective,
            ranks=ranks,
            root=self.root,
            routes=self.platform.routes,
            blocks=self.blocks,
        )
        name = laid_out.name
        if isinstance(algorithm, Schedule):
            return TimedSchedule(name.split(":", 1)[0], laid_out, messages_of(laid_out), name)
        if is_file(algorithm):
            return TimedSchedule(name, laid_out, None, algorithm)
        on_graph = laid_out.core.notation is None
        notation = algorithm if on_graph else name
        return TimedSchedule(name.split(":", 1)[0], laid_out, messages_of(laid_out), notation)


def called(algorithm: str | Schedule) -> str:
    """Returns the notation, the file or the name of a schedule."""
    return algorithm if isinstance(algorithm, str) else algorithm.name


def is_file(notation: str) -> bool:
    """Returns whether a notation is the path of a schedule file."""
    from tutti.schedules.text import SCHEDULE_SUFFIX

    return notation.endswith(SCHEDULE_SUFFIX)


def lay_out(
    algorithm: str | Schedule,
    *,
    collective: str,
    ranks: int,
    root: int,
    routes: Routes | None,
    blocks: str | Matrix | None = None,
) -> Schedule:
    """Returns the schedule of a notation, a file or a given schedule for a rank count.

    Files and given schedules have their own blocks.

    Raises:
        AlgorithmError: The algorithm does not fit.
    """
    if is_library(algorithm):
        raise AlgorithmError(
            f"{algorithm} depends on the library of a platform and on the size",
            kind="argument",
            hint="`tutti run` and `tutti compare` take it on platforms with a library",
        )
    if isinstance(algorithm, str) and not is_file(algorithm):
        return schedule(
            algorithm,
            collective=collective,
            ranks=ranks,
            root=root,
            topology=routes,
            blocks=blocks,
        )
    found = _read(algorithm) if isinstance(algorithm, str) else algorithm
    name = called(algorithm)
    if (found.collective, found.ranks) != (collective, ranks):
        is_for = f"it is {found.collective} on {found.ranks} ranks"
        raise AlgorithmError(
            f"{name} does not fit: {is_for}", kind="wrong_ranks", fields={"ranks": ranks}
        )
    if found.root not in (None, root):
        raise AlgorithmError(f"{name} does not fit: its root is {found.root}")
    return found


def _read(file: str) -> Schedule:
    from tutti.schedules.text import read_schedule

    return read_schedule(Path(file))
