"""Simulates one schedule on a platform, or compares many algorithms.

Schedules are verified before they are timed. The core runs without the GIL. Results do not depend
on the number of threads.
"""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING

from tutti.base.errors import ConfigError
from tutti.collectives import candidates as planning
from tutti.collectives import measurement as measuring
from tutti.collectives.bounds import bound_platform
from tutti.collectives.case import check_platform, make_case
from tutti.collectives.library import with_baselines
from tutti.collectives.request import ComparisonRequest
from tutti.collectives.result import Run
from tutti.schedules import proving

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl

    from tutti import _core
    from tutti.base.units import Size
    from tutti.platforms.conditions import Conditions
    from tutti.platforms.machine import Platform
    from tutti.schedules.block_sizes import Matrix
    from tutti.schedules.ir import Schedule

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
    record: bool = False,
    bound_on: Platform | None = None,
) -> Run:
    """Runs a schedule on a platform, after verifying it.

    Args:
        schedule: The schedule.
        platform: The platform.
        size: The payload, such as ``"64 KiB"``, by the convention of nccl-tests: for all_reduce the
            bytes of one rank's buffer, for all_gather and related collectives the total, for
            all_to_all_v the bytes of the busiest source.
        datatype: The datatype of the elements, whose size divides `size`.
        conditions: Noise, arrival skew, slow ranks and background traffic; none by default.
        seed: The random seed.
        verify: Whether to verify the schedule first. A schedule is verified once, unless it sends
            more than :data:`tutti.schedules.proving.MOST_VERIFIED` messages; ``run.not_verified``
            states the reason.
        record: Whether to record activities and messages, which takes memory. Without a record, the
            first use of ``run.timeline`` or ``run.messages_frame`` repeats the run.
        bound_on: The platform whose lower bound the run is compared with, if `platform` has the
            costs of one protocol of a library; `platform` by default.

    Raises:
        UnitError: The size cannot be parsed.
        LayoutError: The size does not match the datatype or the collective.
        VerificationError: The schedule is not correct.
        DeadlockError: Ranks wait for messages that never arrive; the message names them.
        SimulationError: The run gives no result for another reason.
    """
    from tutti.base.units import Size

    size = Size.of_any(size)
    case_on = functools.partial(
        make_case, schedule, size=size, datatype=datatype, conditions=conditions, seed=seed
    )
    case = case_on(platform)

    def bound_case() -> _core.Case:
        limit = bound_platform(bound_on or platform, schedule.collective, schedule.ranks)
        return case if limit is platform else case_on(limit)

    not_verified = proving.verify(schedule, skip=not verify)
    return Run(
        case,
        bound_case=bound_case,
        schedule=schedule,
        platform=platform,
        size=size,
        datatype=datatype,
        not_verified=not_verified,
        record=record,
        bound_on=bound_on,
    )


def compare(
    platform: Platform,
    *,
    collective: str,
    ranks: Sequence[int],
    sizes: Sequence[str | Size],
    algorithms: Sequence[str | Schedule] | None = None,
    root: int = 0,
    blocks: str | Matrix | None = None,
    datatype: str = "float32",
    conditions: Conditions | None = None,
    repetitions: int = 1,
    seed: int = 0,
    threads: int = 0,
    done: Callable[[int, int], object] | None = None,
    verify: bool = True,
    remark: Callable[[str], object] | None = None,
    prune: bool = True,
) -> pl.DataFrame:
    """Measures algorithms on one platform, after verifying their schedules.

    Args:
        platform: The platform.
        collective: The collective.
        ranks: Rank counts.
        sizes: Payload sizes, by the convention of nccl-tests.
        algorithms: Notations, schedule files or schedules. By default every algorithm that supports
            the collective, the rank count and all sizes. Algorithms have rows only for rank counts
            that they support.
        root: The root of a rooted collective.
        blocks: The relative sizes of the blocks of an all_to_all_v, as in :func:`tutti.schedule`.
        datatype: The datatype of the elements.
        conditions: Noise, arrival skew, slow ranks and background traffic.
        repetitions: Repetitions of each measurement; repetition k uses ``seed + k``.
        seed: The seed of the first repetition.
        threads: The number of threads; 0 uses one per core. Results do not depend on it.
        done: Called with (finished, total) after each measurement.
        verify: Whether to verify the schedules first, each once; see the column ``verified``.
        remark: Called with a line for each schedule that is left out or not verified, with the
            reason. By default the logger ``tutti`` warns on stderr.
        prune: Whether to leave out schedules of 100,000 and more messages at sizes at which their
            lower bound exceeds the time of the second-fastest algorithm. Without conditions, on
            flows and packets with fixed routes, and unless algorithms are named.

    Returns:
        A row per measurement, ordered by ranks, algorithms, sizes, repetitions, with the columns of
        :data:`tutti.collectives.frames.MEASUREMENTS`. On platforms with a library, rows with the
        algorithm ``library`` follow: what the library's own model predicts for its choice.

    Raises:
        ConfigError: The platform is not a `Platform`, or repetitions or seed are out of range.
        AlgorithmError: An algorithm fits none of the rank counts.
        LayoutError: A size does not match the datatype or the collective.
        VerificationError: A schedule is not correct.
        SimulationError: A run gives no result.
    """
    from tutti.base.units import Size
    from tutti.collectives.frames import config_hash

    check_platform(platform)
    _check_repetitions(repetitions, seed)
    payloads = [Size.of_any(size) for size in sizes]
    inputs = {
        "platform": platform.inputs,
        "collective": collective,
        "ranks": list(ranks),
        "sizes": [size.bytes for size in payloads],
        "algorithms": None if algorithms is None else [_identity(one) for one in algorithms],
        "root": root,
        "blocks": _content(blocks, ranks),
        "datatype": datatype,
        "conditions": conditions.model_dump(mode="json") if conditions else None,
        "repetitions": repetitions,
        "seed": seed,
    }
    request = ComparisonRequest(
        platform=platform,
        collective=collective,
        ranks=ranks,
        sizes=payloads,
        algorithms=algorithms,
        root=root,
        blocks=blocks,
        datatype=datatype,
        conditions=conditions,
        repetitions=repetitions,
        seed=seed,
        config_hash=config_hash(inputs),
        prune=prune,
    )
    plan = planning.try_plan(request).checked()
    unverified = proving.prove(plan, skip=not verify)
    for line in [*proving.remarks(plan, unverified), *proving.pruned_remarks(plan)]:
        (remark or _LOG.warning)(line)
    return _measured(plan, threads, done)


def _measured(
    plan: planning.ComparisonPlan, threads: int, done: Callable[[int, int], object] | None
) -> pl.DataFrame:
    rows = measuring.Rows(plan)

    def finished(_: int) -> None:
        if done is not None:
            done(rows.count, len(plan.points))

    measuring.measure(plan, rows, done=finished, threads=threads)
    return with_baselines(plan, rows.frame())


def _check_repetitions(repetitions: int, seed: int) -> None:
    from tutti.platforms.conditions import check_seed

    if repetitions < 1:
        message = f"repetitions = {repetitions!r} is out of range: expected an integer, 1 or more"
        raise ConfigError(message, kind="invalid", fields={"repetitions": repetitions})
    check_seed(seed)
    check_seed(seed + repetitions - 1)


def _content(blocks: str | Matrix | None, ranks: Sequence[int]) -> list[list[int]] | None:
    """Returns the sizes of blocks for each rank count, for hashes."""
    from tutti.schedules.block_sizes import block_sizes

    return None if blocks is None else [block_sizes(blocks, one) for one in ranks]


def _identity(algorithm: str | Schedule) -> str:
    return algorithm if isinstance(algorithm, str) else f"{algorithm.name} on {algorithm.ranks}"
