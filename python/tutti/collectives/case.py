"""Single measurements: the inputs of the core, and the figures in results."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from tutti import _core
from tutti.base.errors import ConfigError
from tutti.schedules.errors import LayoutError
from tutti.schedules.ir import Schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tutti.base.units import Size
    from tutti.platforms.conditions import Conditions
    from tutti.platforms.machine import Platform

Figures = tuple[int, int, int]
"""Completion time in ps, messages handed to the network, and bytes in these."""


class Races(NamedTuple):
    """Cases that compete: a case ends early once enough others of its race are faster.

    Attributes:
        races: The race of each case.
        times: The times in ps that are known in each race.
        fastest: The number of fastest cases whose results are needed.
    """

    races: Sequence[int]
    times: Sequence[Sequence[int]]
    fastest: int


class CaseBuilder:
    """Builds cases on one platform and under one set of conditions, for several schedules and
    sizes.

    The core's platform and background traffic are built once and shared by all cases.
    """

    def __init__(
        self, platform: Platform, *, datatype: str, conditions: Conditions | None = None
    ) -> None:
        """Builds what all cases share.

        Raises:
            ConfigError: The platform is not a `Platform`.
            LayoutError: The datatype is unknown.
            NoiseError: The background load does not match the platform's links.
        """
        from tutti.base.datatypes import DATATYPES

        check_platform(platform)
        if datatype not in DATATYPES:
            message = f"unknown datatype `{datatype}`: expected one of {', '.join(DATATYPES)}"
            raise LayoutError(message, kind="unknown_datatype", fields={"datatype": datatype})
        self._conditions = conditions
        self._case = functools.partial(
            _core.Case,
            platform=platform.core,
            element=DATATYPES[datatype],
            load=conditions.background.core(platform.routes) if conditions else None,
            flows=_flows(platform, conditions),
        )

    def case(self, schedule: Schedule, *, size: Size, seed: int = 0) -> _core.Case:
        """Returns the inputs of a run, for the core.

        Raises:
            ConfigError: The schedule is not a `Schedule`.
            LayoutError: The size does not match the datatype or the collective.
            NoiseError: The conditions do not match the schedule's ranks.
        """
        _check_schedule(schedule)
        conditions = self._conditions
        disturbed = conditions.core(ranks=schedule.ranks, seed=seed) if conditions else None
        return self._case(schedule.core, size=size.bytes, conditions=disturbed, seed=seed)


def make_case(
    schedule: Schedule,
    platform: Platform,
    *,
    size: Size,
    datatype: str,
    conditions: Conditions | None = None,
    seed: int = 0,
) -> _core.Case:
    """Builds a single case; see :class:`CaseBuilder`.

    Raises:
        ConfigError: The schedule or the platform has the wrong type.
        LayoutError: The size does not match the datatype or the collective.
    """
    _check_schedule(schedule)
    builder = CaseBuilder(platform, datatype=datatype, conditions=conditions)
    return builder.case(schedule, size=size, seed=seed)


def _flows(platform: Platform, conditions: Conditions | None) -> list[_core.BackgroundFlow]:
    """Returns the core's background flows.

    Raises:
        ConfigError: There are flows, and nothing that they can share with messages.
    """
    flows = conditions.background.flows if conditions else []
    if flows and platform.effective_contention.kind not in {"flow", "packet"}:
        message = "background flows need a platform with the flow model or packets"
        hint = "give the platform routes, or use a background load, which needs only links"
        raise ConfigError(message, kind="invalid", hint=hint)
    return [flow.core for flow in flows]


def _check_schedule(schedule: object) -> None:
    """Rejects anything but a schedule, such as its name."""
    if not isinstance(schedule, Schedule):
        hint = "generate it first: tutti.schedule(name, ranks=...)"
        raise ConfigError(f"{schedule!r} is not a schedule", kind="invalid", hint=hint)


def check_platform(platform: object) -> None:
    """Rejects anything but a platform, such as its name.

    Raises:
        ConfigError: The value is not a `Platform`.
    """
    from tutti.platforms.machine import Platform

    if not isinstance(platform, Platform):
        hint = "use tutti.Platform(...), or tutti.platforms.platform(name) for a bundled platform"
        raise ConfigError(f"{platform!r} is not a platform", kind="invalid", hint=hint)


def has_energy(platform: Platform) -> bool:
    """Returns whether the platform models the energy of its routers and links."""
    contention = platform.effective_contention
    if contention.kind == "packet":
        return contention.package is not None
    return contention.kind in {"flit", "mesh"} and contention.technology is not None


def unequal_parts(
    schedule: Schedule, platform: Platform, *, sizes: Sequence[Size], datatype: str
) -> dict[int, LayoutError]:
    """Returns the errors of the sizes, in bytes, that a schedule of equal chunks cannot use.

    Raises:
        LayoutError: A size does not match the datatype or the collective of any schedule.
    """
    refused: dict[int, LayoutError] = {}
    if not schedule.moves_chunks:
        return refused
    builder = CaseBuilder(platform, datatype=datatype)
    for size in sizes:
        try:
            builder.case(schedule, size=size)
        except LayoutError as error:
            if error.kind != "unequal_parts":
                raise
            refused[size.bytes] = error
    return refused


def run_all(
    cases: Sequence[_core.Case],
    finished: Callable[[int, Figures], object],
    *,
    threads: int = 0,
    races: Races | None = None,
) -> None:
    """Runs cases in threads.

    Args:
        cases: The cases.
        finished: Called with the index and the figures of each case that gave a result.
        threads: The number of threads; 0 uses one per core. Results do not depend on it.
        races: The cases of which only the fastest need a result; the others may give none.

    Raises:
        SimulationError: A run gives no result; raised for the first such case, after all have run.
        KeyboardInterrupt: Ctrl-C was pressed.
    """
    failed: dict[int, Exception] = {}

    def received(index: int, result: Figures | Exception | None) -> None:
        if isinstance(result, Exception):
            failed[index] = result
        elif result is not None:
            finished(index, result)

    if races is None:
        _core.simulate_many(cases, received, threads=threads)
    else:
        _core.simulate_fastest(cases, received, threads=threads, **races._asdict())
    if failed:
        raise failed[min(failed)]


def measured(
    cases: Sequence[_core.Case], threads: int, done: Callable[[int, int], object] | None
) -> Iterator[Figures]:
    """Returns the figures of each case, in order; calls `done` with (finished, total)."""
    found: dict[int, Figures] = {}

    def finished(index: int, figures: Figures) -> None:
        found[index] = figures
        if done is not None:
            done(len(found), len(cases))

    run_all(cases, finished, threads=threads)
    return (found[index] for index in range(len(cases)))


def timed(case: _core.Case, laid_out: Schedule, size: Size, figures: Figures) -> dict[str, Any]:
    """Returns the figures of a case, named as in :data:`tutti.collectives.frames.MEASUREMENTS`.

    Those of the lower bound are those of :func:`limit_of`.

    Args:
        case: The case.
        laid_out: Its schedule.
        size: Its size.
        figures: Completion time in ps, number of messages, and bytes in them.
    """
    time, messages, message_bytes = figures
    return {
        "collective": laid_out.collective,
        "algorithm": laid_out.name.split(":", 1)[0],
        "schedule": laid_out.name,
        "ranks": laid_out.ranks,
        "size_bytes": size.bytes,
        "time_ps": time,
        "algbw_bytes_per_s": _core.algbw(size.bytes, time),
        "busbw_bytes_per_s": _core.busbw(laid_out.collective, laid_out.ranks, size.bytes, time),
        "messages": messages,
        "message_bytes": message_bytes,
        "closed_form_ps": case.closed_form_ps(),
    }


def limit_of(bound_ps: int | None, figures: Figures) -> dict[str, Any]:
    """Returns the figures of a lower bound, null without one."""
    time = figures[0]
    return {"bound_ps": bound_ps, "of_limit": None if bound_ps is None else bound_ps / time}
