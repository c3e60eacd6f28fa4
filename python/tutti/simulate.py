"""Simulation: one schedule on one machine, or many algorithms compared.

Schedules are verified before they are timed. The core does the rest, without the interpreter's
lock; the same input gives the same bits, whatever the number of threads.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tutti import planning, proving
from tutti.cases import check_platform, make_case
from tutti.errors import ConfigError
from tutti.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl

    from tutti.conditions import Conditions
    from tutti.platform import Platform
    from tutti.schedule import Schedule
    from tutti.units import Size

__all__ = ["Run", "compare", "simulate"]

_LOG = logging.getLogger("tutti")


def simulate(
    schedule: Schedule,
    platform: Platform,
    *,
    size: str | Size,
    datatype: str = "float32",
    conditions: Conditions | None = None,
    seed: int = 0,
    verify: bool = True,
) -> Run:
    """Runs a schedule on a machine, after verifying it.

    Args:
        schedule: what to run.
        platform: where.
        size: on how much data, such as ``"64 KiB"``, by the convention of nccl-tests: for
            all_reduce the bytes of one rank's buffer, for all_gather and its kin the total.
        datatype: of the elements; the size is a multiple of theirs.
        conditions: noise, arrival skew and slow ranks; nothing of that unless given.
        seed: of everything that is random.
        verify: whether to verify the schedule first. A schedule is verified once, however often it
            is run, and not at all where it sends more than
            :data:`tutti.proving.MOST_VERIFIED` messages; ``run.not_verified`` states why not.

    Raises:
        UnitError: the size cannot be read.
        LayoutError: the size does not suit the datatype or the collective.
        VerificationError: the schedule does not do what it is meant to do.
        DeadlockError: ranks wait for messages that never come; the message names them.
        SimulationError: the run gives no result for another reason.
    """
    from tutti.units import Size

    size = Size.of_any(size)
    case = make_case(
        schedule, platform, size=size, datatype=datatype, conditions=conditions, seed=seed
    )
    not_verified = proving.verify(schedule, skip=not verify)
    return Run(
        case,
        schedule=schedule,
        platform=platform,
        size=size,
        datatype=datatype,
        not_verified=not_verified,
    )


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
    verify: bool = True,
    remark: Callable[[str], object] | None = None,
) -> pl.DataFrame:
    """Measures algorithms against each other on one machine, after verifying their schedules.

    Args:
        platform: the machine.
        collective: what is to be performed.
        ranks: rank counts.
        sizes: payloads, by the convention of nccl-tests.
        algorithms: notations, schedule files or schedules, which have rows at their own rank count.
            Without them, every algorithm that claims the collective and rank count, and whose
            schedule can be laid out for every size: one that needs equal parts is left out where a
            size has none. A notation that does not fit a rank count has no rows there.
        root: the root of a rooted collective.
        datatype: of the elements.
        conditions: noise, arrival skew and slow ranks.
        repetitions: how often each measurement is made, repetition k with ``seed + k``.
        seed: of the first repetition.
        threads: how many to use; 0 is one per core. No result depends on it.
        done: called with (finished, total) after each measurement.
        verify: whether to verify the schedules first, each once; the column ``verified`` states
            which were.
        remark: called with a line for each schedule that is left out or not verified, with the
            reason. By default these are warnings of the logger ``tutti``, which Python writes to
            stderr.

    Returns:
        A row per measurement, in the order of the arguments: ranks, algorithms, sizes, repetitions.
        Columns are those of :data:`tutti.results.MEASUREMENTS`.

    Raises:
        ConfigError: no platform but its name, no repetition, or a seed that is no whole number of
            63 bits.
        AlgorithmError: an algorithm that fits none of the rank counts.
        LayoutError: a size that does not suit the datatype or the collective.
        VerificationError: a schedule does not do what it is meant to do.
        SimulationError: a run gives no result.
    """
    from tutti.results import config_hash
    from tutti.units import Size

    check_platform(platform)
    _check_repetitions(repetitions, seed)
    payloads = [Size.of_any(size) for size in sizes]
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
    request = planning.Request(
        platform=platform,
        collective=collective,
        ranks=ranks,
        sizes=payloads,
        algorithms=algorithms,
        root=root,
        datatype=datatype,
        conditions=conditions,
        repetitions=repetitions,
        seed=seed,
        config_hash=config_hash(asked),
    )
    plan = planning.try_plan(request).checked()
    unverified = proving.prove(plan, skip=not verify)
    for line in proving.remarks(plan, unverified):
        (remark or _LOG.warning)(line)
    return _measured(plan, threads, done)


def _measured(
    plan: planning.ComparisonPlan, threads: int, done: Callable[[int, int], object] | None
) -> pl.DataFrame:
    rows = planning.Rows(plan)

    def finished(_: int) -> None:
        if done is not None:
            done(rows.count, len(plan.points))

    planning.measure(plan, rows, done=finished, threads=threads)
    return rows.frame()


def _check_repetitions(repetitions: int, seed: int) -> None:
    from tutti.conditions import check_seed

    if repetitions < 1:
        message = f"repetitions = {repetitions!r} is refused: expected a whole number, 1 or more"
        raise ConfigError(message, kind="invalid", fields={"repetitions": repetitions})
    check_seed(seed)
    check_seed(seed + repetitions - 1)


def _asked_as(algorithm: str | Schedule) -> str:
    return algorithm if isinstance(algorithm, str) else f"{algorithm.name} on {algorithm.ranks}"
