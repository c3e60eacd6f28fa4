"""Simulation: one schedule on one machine, or many algorithms compared.

The core does it all, without the interpreter's lock; the same input gives the same bits, whatever
the number of threads.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from tutti import _core
from tutti.errors import AlgorithmError, ConfigError, LayoutError
from tutti.run import Run
from tutti.schedule import Schedule, candidates, schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl

    from tutti.conditions import Conditions
    from tutti.platform import Platform
    from tutti.topology import Routes
    from tutti.units import Size

__all__ = ["Run", "compare", "simulate"]


def simulate(
    schedule: Schedule,
    platform: Platform,
    *,
    size: str | Size,
    datatype: str = "float32",
    conditions: Conditions | None = None,
    seed: int = 0,
) -> Run:
    """Runs a schedule on a machine.

    Args:
        schedule: what to run.
        platform: where.
        size: on how much data, such as ``"64 KiB"``, by the convention of nccl-tests: for
            all_reduce the bytes of one rank's buffer, for all_gather and its kin the total.
        datatype: of the elements; the size is a multiple of theirs.
        conditions: noise, arrival skew and slow ranks; nothing of that unless given.
        seed: of everything that is random.

    Raises:
        UnitError: the size cannot be read.
        LayoutError: the size does not suit the datatype or the collective.
        DeadlockError: ranks wait for messages that never come; the message names them.
        SimulationError: the run gives no result for another reason.
    """
    from tutti.units import Size

    size = Size.of_any(size)
    case = make_case(
        schedule, platform, size=size, datatype=datatype, conditions=conditions, seed=seed
    )
    return Run(case, schedule=schedule, platform=platform, size=size, datatype=datatype)


def make_case(
    schedule: Schedule,
    platform: Platform,
    *,
    size: Size,
    datatype: str,
    conditions: Conditions | None = None,
    seed: int = 0,
) -> _core.Case:
    """Everything that a run depends on, for the core.

    Raises:
        ConfigError: the schedule or the platform is something else, such as its name.
        LayoutError: the size does not suit the datatype or the collective.
    """
    from tutti.datatypes import DATATYPES

    _refuse_names(schedule, platform)
    if datatype not in DATATYPES:
        message = f"there is no datatype `{datatype}`: expected one of {', '.join(DATATYPES)}"
        raise LayoutError(message, kind="unknown_datatype", fields={"datatype": datatype})
    model = platform.model
    met = conditions.core(ranks=schedule.ranks, seed=seed) if conditions else None
    load = conditions.background.core(platform.routes) if conditions else None
    flows = conditions.background.flows if conditions else []
    if flows and platform.packets is None:
        message = "flows of others need a network in which messages meet"
        hint = "give the platform packets, or a load instead, which needs only links"
        raise ConfigError(message, kind="invalid", hint=hint)
    return _core.Case(
        schedule.core,
        model.core,
        size=size.bytes,
        element=DATATYPES[datatype],
        gamma=model.gamma.core,
        reduce_overhead_ps=model.reduce_overhead.ps,
        copy=model.copy_.core,
        conditions=met,
        routes=platform.routes.core if platform.routes else None,
        packets=platform.packets.core if platform.packets else None,
        flits=platform.core_flits,
        mesh=platform.mesh.core if platform.mesh else None,
        load=load,
        flows=[flow.core for flow in flows],
        seed=seed,
    )


def _refuse_names(schedule: object, platform: object) -> None:
    """Says what to write where a name was given for the thing itself."""
    from tutti.platform import Platform

    if not isinstance(schedule, Schedule):
        hint = "lay it out first: tutti.schedule(name, ranks=...)"
        raise ConfigError(f"{schedule!r} is no schedule", kind="invalid", hint=hint)
    if not isinstance(platform, Platform):
        hint = "tutti.Platform(...), or tutti.platforms.platform(name) for one that tutti knows"
        raise ConfigError(f"{platform!r} is no platform", kind="invalid", hint=hint)


def compare(
    platform: Platform,
    *,
    collective: str,
    ranks: Sequence[int],
    sizes: Sequence[str | Size],
    algorithms: Sequence[str | Schedule] | None = None,
    root: int = 0,
    datatype: str = "float32",
    conditions: Conditions | None = None,
    repetitions: int = 1,
    seed: int = 0,
    threads: int = 0,
    done: Callable[[int, int], object] | None = None,
) -> pl.DataFrame:
    """Measures algorithms against each other on one machine.

    Args:
        platform: the machine.
        collective: what is to be performed.
        ranks: rank counts.
        sizes: payloads, by the convention of nccl-tests.
        algorithms: notations, or schedules, which have rows at their own rank count. Without them,
            every algorithm that claims the collective and rank count, and whose schedule can be
            laid out for every size: one that needs equal parts is left out where a size has none.
            A notation that does not fit a rank count has no rows there.
        root: the root of a rooted collective.
        datatype: of the elements.
        conditions: noise, arrival skew and slow ranks.
        repetitions: how often each measurement is made, repetition k with ``seed + k``.
        seed: of the first repetition.
        threads: how many to use; 0 is one per core. No result depends on it.
        done: called with (finished, total) after each measurement.

    Returns:
        A row per measurement, in the order of the arguments: ranks, algorithms, sizes, repetitions.
        Columns are those of :data:`tutti.results.MEASUREMENTS`.

    Raises:
        ConfigError: no repetition, or a seed that is no whole number of 63 bits.
        AlgorithmError: an algorithm that fits none of the rank counts.
        LayoutError: a size that does not suit the datatype or the collective.
        SimulationError: a run gives no result.
    """
    from tutti.units import Size

    _check_repetitions(repetitions, seed)
    payloads = [Size.of_any(size) for size in sizes]
    if algorithms is None:
        laid_out = _every_schedule(collective, ranks, root, platform, payloads)
        laid_out = _divisible(laid_out, platform, payloads, datatype)
    else:
        laid_out = _schedules(collective, ranks, algorithms, root, platform.routes)
    asked = {
        "platform": platform.model_dump(mode="json"),
        "collective": collective,
        "ranks": list(ranks),
        "sizes": [size.bytes for size in payloads],
        "algorithms": None if algorithms is None else [_asked_as(one) for one in algorithms],
        "root": root,
        "datatype": datatype,
        "conditions": conditions.model_dump(mode="json") if conditions else None,
        "repetitions": repetitions,
        "seed": seed,
    }
    points = list(itertools.product(laid_out, payloads, range(seed, seed + repetitions)))
    cases = [
        make_case(one, platform, size=size, datatype=datatype, conditions=conditions, seed=its_seed)
        for one, size, its_seed in points
    ]
    found = measured(cases, threads, done)
    return _rows(points, cases, found, datatype=datatype, platform=platform, asked=asked, seed=seed)


def _rows(
    points: list[tuple[Schedule, Size, int]],
    cases: list[_core.Case],
    found: Iterator[tuple[int, int, int]],
    *,
    datatype: str,
    platform: Platform,
    asked: dict[str, Any],
    seed: int,
) -> pl.DataFrame:
    """A row for each (schedule, size, seed); `seed` is that of the first repetition."""
    from tutti.results import config_hash, measurement_frame

    shared = {
        "datatype": datatype,
        "model": platform.network,
        "platform": platform.name,
        "config_hash": config_hash(asked),
    }
    return measurement_frame(
        shared
        | {"repetition": its_seed - seed, "seed": its_seed}
        | figures_of(case, chosen, size, figures)
        for (chosen, size, its_seed), case, figures in zip(points, cases, found, strict=True)
    )


def _every_schedule(
    collective: str, ranks: Sequence[int], root: int, platform: Platform, sizes: Sequence[Size]
) -> list[Schedule]:
    """The schedules of all algorithms that claim a rank count, each once, and the search's best."""
    from tutti.search import winners

    every: dict[tuple[int, str], Schedule] = {}
    for count in ranks:
        named = candidates(collective, count, root=root, routes=platform.routes)
        for notation in named + winners(platform, collective, count, sizes):
            made = _laid_out(notation, collective, count, root, platform.routes)
            every.setdefault((count, made.name), made)
    return list(every.values())


def _check_repetitions(repetitions: int, seed: int) -> None:
    from tutti.conditions import check_seed

    if repetitions < 1:
        message = f"repetitions = {repetitions!r} is refused: expected a whole number, 1 or more"
        raise ConfigError(message, kind="invalid", fields={"repetitions": repetitions})
    check_seed(seed)
    check_seed(seed + repetitions - 1)


def _asked_as(algorithm: str | Schedule) -> str:
    return algorithm if isinstance(algorithm, str) else f"{algorithm.name} on {algorithm.ranks}"


def _laid_out(
    algorithm: str | Schedule, collective: str, ranks: int, root: int, routes: Routes | None
) -> Schedule:
    """A schedule as it is, where it fits; or that of a notation, which may be made for a graph."""
    if isinstance(algorithm, str):
        return schedule(algorithm, collective=collective, ranks=ranks, root=root, topology=routes)
    if (algorithm.collective, algorithm.ranks) == (collective, ranks):
        return algorithm
    problem = f"{algorithm.name} is {algorithm.collective} on {algorithm.ranks} ranks"
    raise AlgorithmError(problem, kind="wrong_ranks", fields={"ranks": ranks})


def _schedules(
    collective: str,
    ranks: Sequence[int],
    algorithms: Sequence[str | Schedule],
    root: int,
    routes: Routes | None,
) -> list[Schedule]:
    """The schedules that fit, by rank count, then in the order of the algorithms."""
    found: list[Schedule] = []
    refused: dict[tuple[int, int], AlgorithmError] = {}
    for count, (place, algorithm) in itertools.product(ranks, enumerate(algorithms)):
        try:
            found.append(_laid_out(algorithm, collective, count, root, routes))
        except AlgorithmError as error:
            refused[place, count] = error
    for place in range(len(algorithms)):
        misfits = [refused.get((place, count)) for count in ranks]
        if misfits and misfits[0] and all(misfits):
            raise misfits[0]
    return found


def _divisible(
    laid_out: list[Schedule], platform: Platform, sizes: Sequence[Size], datatype: str
) -> list[Schedule]:
    """The schedules that can do with the parts of every size.

    Raises:
        LayoutError: none of them can.
    """
    refusals = [unequal_parts(one, platform, sizes=sizes, datatype=datatype) for one in laid_out]
    fitting = [one for one, refusal in zip(laid_out, refusals, strict=True) if refusal is None]
    refused = next((refusal for refusal in refusals if refusal), None)
    if refused and not fitting:
        raise refused
    return fitting


def unequal_parts(
    schedule: Schedule, platform: Platform, *, sizes: Sequence[Size], datatype: str
) -> LayoutError | None:
    """Why a schedule that needs equal parts cannot be laid out for one of the sizes, if so.

    Raises:
        LayoutError: a size does not suit the datatype or the collective, whatever the schedule.
    """
    for size in sizes if schedule.moves_chunks else ():
        try:
            make_case(schedule, platform, size=size, datatype=datatype)
        except LayoutError as error:
            if error.kind != "unequal_parts":
                raise
            return error
    return None


def measured(
    cases: list[_core.Case], threads: int, done: Callable[[int, int], object] | None
) -> Iterator[tuple[int, int, int]]:
    """What each case came to, in order."""
    found: dict[int, tuple[int, int, int]] = {}
    failed: dict[int, Exception] = {}

    def heard(index: int, result: tuple[int, int, int] | Exception) -> None:
        if isinstance(result, Exception):
            failed[index] = result
        else:
            found[index] = result
        if done is not None:
            done(len(found) + len(failed), len(cases))

    _core.simulate_many(cases, heard, threads=threads)
    if failed:
        raise failed[min(failed)]
    return (found[index] for index in range(len(cases)))


def figures_of(
    case: _core.Case, laid_out: Schedule, size: Size, figures: tuple[int, int, int]
) -> dict[str, Any]:
    """What was measured, and of what, under the names of :data:`tutti.results.MEASUREMENTS`.

    Args:
        case: what ran.
        laid_out: its schedule.
        size: its size.
        figures: completion time in ps, messages handed to the network, and bytes in these.
    """
    time, messages, message_bytes = figures
    bound_ps = case.bound().at_least_ps
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
        "bound_ps": bound_ps,
        "of_limit": bound_ps / time,
    }
