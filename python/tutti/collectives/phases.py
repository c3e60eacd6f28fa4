"""Runs a schedule whose phases use different platforms, such as reconfigurable networks.

All ranks end a phase before the network is switched and the next phase starts.

Examples:
    >>> from tutti import Platform, Postal, schedule
    >>> machine = Platform(name="demo", model=Postal(alpha="1 us"))
    >>> ring = schedule("ring", ranks=4)
    >>> simulate_phases(ring, [machine], size="1 KiB").completion_ps == 6_000_000
    True
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from tutti.base.errors import ConfigError
from tutti.base.units import Size, Time
from tutti.collectives.simulation import simulate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.collectives.result import Run
    from tutti.platforms.machine import Platform
    from tutti.schedules.ir import Schedule

_NO_TIME = Time(ps=0)


@dataclass(frozen=True, kw_only=True)
class PhasedRun:
    """The result of a schedule whose phases run sequentially.

    Attributes:
        runs: One run per phase, each from the entry of its first rank.
        switch: The time of each switch to another platform.
        switches: The number of switches.
    """

    runs: tuple[Run, ...]
    switch: Time
    switches: int

    @cached_property
    def completion_ps(self) -> int:
        """The time from the first rank's entry to the last rank's end, in ps."""
        return sum(run.completion_ps for run in self.runs) + self.switches * self.switch.ps

    @property
    def time(self) -> Time:
        """The completion time."""
        return Time(ps=self.completion_ps)

    @property
    def size(self) -> Size:
        """The size of the payload."""
        return self.runs[0].size

    @property
    def not_verified(self) -> str | None:
        """The reason why the schedule was not verified before the run; None if it was verified."""
        return self.runs[0].not_verified

    @property
    def algbw(self) -> float:
        """Algorithm bandwidth in bytes per second: the size over the completion time."""
        return self.size.bytes / self.completion_ps * 1e12


def simulate_phases(
    schedule: Schedule,
    platforms: Sequence[Platform],
    *,
    size: str | Size,
    datatype: str = "float32",
    switch: Time = _NO_TIME,
    verify: bool = True,
) -> PhasedRun:
    """Runs each phase of a schedule on its platform.

    Args:
        schedule: The schedule.
        platforms: One platform per phase; consecutive phases on the same platform need no switch. A
            single platform runs all phases, without waiting between them.
        size: The payload, as in :func:`tutti.simulate`.
        datatype: The datatype of the elements.
        switch: The time from the last rank's end to the start of the next phase on another
            platform.
        verify: Whether to verify the schedule first, with all phases.

    Raises:
        ConfigError: The number of platforms is neither one nor the number of phases.
        TuttiError: As :func:`tutti.simulate`.
    """
    phases = schedule.phases
    if len(platforms) == 1:
        run = simulate(schedule, platforms[0], size=size, datatype=datatype, verify=verify)
        return PhasedRun(runs=(run,), switch=switch, switches=0)
    if len(platforms) != phases:
        message = f"{schedule.name} has {phases} phases, but {len(platforms)} platforms are given"
        hint = "give one platform for all phases, or one per phase"
        raise ConfigError(message, kind="invalid", hint=hint)
    runs = tuple(
        simulate(schedule.phase(number), platform, size=size, datatype=datatype, verify=verify)
        for number, platform in enumerate(platforms)
    )
    switches = sum(one is not other for one, other in pairwise(platforms))
    return PhasedRun(runs=runs, switch=switch, switches=switches)
