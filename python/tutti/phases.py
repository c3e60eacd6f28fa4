"""A schedule whose phases each have a machine of their own, as networks that are configured do.

Everybody has ended a phase before the network is switched and the next one begins.

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

from tutti.errors import ConfigError
from tutti.simulate import simulate
from tutti.units import Size, Time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.platform import Platform
    from tutti.run import Run
    from tutti.schedule import Schedule

__all__ = ["PhasedRun", "simulate_phases"]

_NO_TIME = Time(ps=0)


@dataclass(frozen=True, kw_only=True)
class PhasedRun:
    """What the phases of a schedule came to, one after the other.

    Attributes:
        runs: a run for each phase, each from the entry of its first rank.
        switch: what each change to another machine took.
        switches: how many changes there were.
    """

    runs: tuple[Run, ...]
    switch: Time
    switches: int

    @cached_property
    def completion_ps(self) -> int:
        """From the first rank's entry to the last rank's end."""
        return sum(run.completion_ps for run in self.runs) + self.switches * self.switch.ps

    @property
    def time(self) -> Time:
        """The same."""
        return Time(ps=self.completion_ps)

    @property
    def size(self) -> Size:
        """On how much data."""
        return self.runs[0].size

    @property
    def not_verified(self) -> str | None:
        """Why the schedule was not verified before it ran; None where it was."""
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
    """Runs each phase of a schedule on its machine.

    Args:
        schedule: what to run.
        platforms: a machine for each of its phases; the same one again is not switched. One machine
            alone serves all phases, and nobody waits between them.
        size: on how much data, as :func:`tutti.simulate` takes it.
        datatype: of the elements.
        switch: what it takes from the last rank's end until the next phase begins on another
            machine.
        verify: whether to verify the schedule first, with all of its phases.

    Raises:
        ConfigError: there are neither one machine nor as many as phases.
        TuttiError: as :func:`tutti.simulate`.
    """
    phases = schedule.phases
    if len(platforms) == 1:
        run = simulate(schedule, platforms[0], size=size, datatype=datatype, verify=verify)
        return PhasedRun(runs=(run,), switch=switch, switches=0)
    if len(platforms) != phases:
        message = f"{schedule.name} has {phases} phases, and there are {len(platforms)} machines"
        hint = "give one for all phases, or one for each"
        raise ConfigError(message, kind="invalid", hint=hint)
    runs = tuple(
        simulate(schedule.phase(number), platform, size=size, datatype=datatype, verify=verify)
        for number, platform in enumerate(platforms)
    )
    switches = sum(one is not other for one, other in pairwise(platforms))
    return PhasedRun(runs=runs, switch=switch, switches=switches)
