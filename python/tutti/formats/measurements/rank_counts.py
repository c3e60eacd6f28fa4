"""The number of ranks of a run of nccl-tests, from all that its log states.

Sources are the list of devices, the command with `-t` and `-g`, NCCL's `Init COMPLETE`, and busbw
over algbw, which is 2 (n - 1) / n for all_reduce and (n - 1) / n for collectives of shards. They
are compared. A list that lacks ranks, as in shortened logs, needs another source.

Source of the factors: ``doc/PERFORMANCE.md`` of nccl-tests.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tutti.collectives.sizes import DEALT_OUT
from tutti.formats.benchmarks.nccl_tests import Device, device_of, gpus_of_process
from tutti.formats.nccl.debug import COMPLETE, RANK_OF

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tutti.formats.measurements.launches import Launch

_BY_RATES: Final = "busbw / algbw"
_LIST: Final = "the list of devices"
_USE: Final = "use --ranks N"
_NEAR: Final = 1e-9

Row = dict[str, Any]


class RankCount(NamedTuple):
    """The size of a run.

    Attributes:
        ranks: The number of ranks; None if it is unknown.
        nodes: The number of nodes; None if it is unknown.
        source: `file`, `launcher` or `argument`, as in measurements.
        problem: Why the rows of the run are of no use; empty if they are.
    """

    ranks: int | None = None
    nodes: int | None = None
    source: str | None = None
    problem: str = ""


class _Stated(NamedTuple):
    """What the lines of a run state: rank counts with their sources, and the least count."""

    counts: dict[int, str]
    least: int
    lacking: str
    alone: int
    nodes: int | None
    of_command: bool


def rank_count(
    lines: Sequence[str],
    launches: Sequence[Launch],
    rows: Sequence[Row],
    given: int | None,
    *,
    listed: int | None = None,
) -> RankCount:
    """Returns the number of ranks of a run.

    Args:
        lines: The lines of the run, without prefixes.
        launches: Commands that started it.
        rows: Its rows, with `operation` and `bus_per_alg`.
        given: The number that the user states; it settles contradictions of the file.
        listed: The number of devices that a JSON file lists.
    """
    stated = _stated(lines, launches)
    counts = stated.counts
    if listed is not None:
        counts[listed] = _LIST
    if not counts:
        return _without_list(stated, _by_rates(rows), rows, given)
    if len(counts) > 1:
        if given in counts and _fits_some(rows, given):
            return RankCount(given, stated.nodes, "argument")
        every = " and ".join(f"{count} by {source}" for count, source in counts.items())
        return RankCount(problem=f"the run states several numbers of ranks: {every}: {_USE}")
    return _of_one(stated, rows, given)


def _of_one(stated: _Stated, rows: Sequence[Row], given: int | None) -> RankCount:
    """Returns the count of a run that states one, if its rates agree."""
    low, high = _by_rates(rows)
    count, source = next(iter(stated.counts.items()))
    if stated.lacking and count < stated.least:
        last = f"a line of a device states rank {stated.least - 1}"
        return RankCount(problem=f"{source} states {count} ranks, but {last}")
    if not _fits_some(rows, count):
        if given is not None and given > count and _fits_some(rows, given):
            return RankCount(given, None, "argument")  # the list is cut
        return RankCount(problem=f"{source} states {count} ranks, but {_rates(rows, low, high)}")
    if count == 1:
        return RankCount(problem=_alone(stated.alone))
    return RankCount(count, stated.nodes, "launcher" if stated.of_command else "file")


def fits(row: Row, ranks: int) -> bool:
    """Returns whether busbw and algbw of a row are those of a number of ranks."""
    low, high = _interval(row)
    return low - _NEAR <= ranks <= high + _NEAR


def why_not(row: Row, ranks: int) -> str:
    """Returns why a row is not of a number of ranks."""
    return f"{_rates([row], *_interval(row))}, and the run has {ranks}"


def _without_list(
    stated: _Stated, interval: tuple[float, float], rows: Sequence[Row], given: int | None
) -> RankCount:
    """Returns the count of a run that states it only by its rates, or by some of its ranks."""
    low, high = interval
    if low <= high < math.inf:
        single = math.ceil(low - _NEAR)
        exact = single if single == math.floor(high + _NEAR) else None
        if exact is None and stated.least and low - _NEAR <= stated.least <= high + _NEAR:
            exact = stated.least
        if exact == 1:
            return RankCount(problem=_alone(stated.alone))
        if exact is not None and exact >= stated.least:
            return RankCount(exact, None, "file")
    if low > high or stated.least > high + _NEAR:
        least = f"a line of a device states rank {stated.least - 1}, but " if stated.least else ""
        return RankCount(problem=f"{least}{_rates(rows, low, high)}")
    if given is not None and (given < stated.least or not low - _NEAR <= given <= high + _NEAR):
        least = f"there is a rank {stated.least - 1}" if given < stated.least else ""
        return RankCount(problem=f"{least or _rates(rows, low, high)}, not {given} ranks")
    if given is None and stated.lacking:
        return RankCount(problem=f"{stated.lacking}: {_USE}")
    return RankCount(given, None, None if given is None else "argument")


def _alone(processes: int) -> str:
    """Returns why a run of one rank is of no use."""
    if processes > 1:
        return (
            f"every process ran alone ({processes} lines `Rank 0`, busbw 0): nccl-tests was built "
            "without MPI=1"
        )
    return "the run has one rank (busbw 0): a process that is built without MPI=1 runs alone"


# --- what the lines state -------------------------------------------------------------------------


def _stated(lines: Sequence[str], launches: Sequence[Launch]) -> _Stated:
    devices = [device for line in lines if (device := device_of(line)) is not None]
    counts: dict[int, str] = {}
    ranks = sorted({device.rank for device in devices})
    missing = _missing(ranks)
    repeated = _processes_alone(devices)
    if ranks and not missing:
        counts[_of_group(devices)] = _LIST
    of_list = bool(counts)
    for count in _of_commands(launches, gpus_of_process(lines) if repeated < 2 else None):
        counts.setdefault(count, "the command")
    of_command = bool(counts) and not of_list
    for line in lines:
        if COMPLETE in line and (match := RANK_OF.search(line)) and int(match["ranks"]):
            counts.setdefault(int(match["ranks"]), f"NCCL's record `{COMPLETE}`")
    hosts = {device.host for device in devices if device.host}
    nodes = len(hosts) or None
    on_hosts = {(device.host, device.rank) for device in devices if device.host}
    if repeated > 1 and len(on_hosts) == len(hosts) * len(ranks):
        nodes = 1  # each host has all ranks: processes without MPI, and not several jobs
    if not of_list:
        nodes = next((one.nodes for one in launches if one.nodes), None)
    least = ranks[-1] + 1 if ranks else 0
    lacking = f"the list of devices lacks {missing}" if missing else ""
    return _Stated(counts, least, lacking, repeated, nodes, of_command)


def _missing(ranks: Sequence[int]) -> str:
    """Returns the first range of ranks that a sorted list lacks; empty if it lacks none."""
    before = -1
    for rank in ranks:
        if rank != before + 1:
            first, last = before + 1, rank - 1
            return f"rank {first}" if first == last else f"ranks {first} to {last}"
        before = rank
    return ""


def _processes_alone(devices: Sequence[Device]) -> int:
    """Returns how often rank 0 is listed: each process without MPI lists its GPUs from 0."""
    return max(Counter(device.group for device in devices if device.rank == 0).values(), default=0)


def _of_group(devices: Sequence[Device]) -> int:
    """Returns the ranks of a communicator: those of a group (NCCL_TESTS_SPLIT), if all are equal.

    The sum of all groups where they differ, which no group has.
    """
    ranks = {(device.group, device.rank) for device in devices}
    sizes = Counter(group for group, _ in ranks)
    return next(iter(sizes.values())) if len(set(sizes.values())) == 1 else len(ranks)


def _of_commands(launches: Iterable[Launch], gpus: int | None) -> set[int]:
    """Returns the numbers of ranks that commands state: processes times GPUs of each."""
    if gpus is None:
        return set()
    return {one.ranks * gpus for one in launches if one.ranks is not None}


# --- busbw over algbw -----------------------------------------------------------------------------


def _factor(collective: str | None) -> float | None:
    """Returns busbw / algbw of infinitely many ranks; None if it does not depend on the ranks."""
    if collective == "all_reduce":
        return 2.0
    return 1.0 if collective in DEALT_OUT else None


def _interval(row: Row) -> tuple[float, float]:
    """Returns bounds of the number of ranks of a row; they are crossed if no number fits."""
    factor, bounds = _factor(row["operation"]), row.get("bus_per_alg")
    if factor is None or bounds is None:
        return 1.0, math.inf
    low, high = bounds
    if low >= factor:
        return math.inf, 0.0
    most = factor / (factor - high) if high < factor else math.inf
    return max(1.0, factor / (factor - low)), most


def _by_rates(rows: Iterable[Row]) -> tuple[float, float]:
    """Returns bounds of the number of ranks of all rows."""
    low, high = 1.0, math.inf
    for row in rows:
        least, most = _interval(row)
        low, high = max(low, least), min(high, most)
    return low, high


def _fits_some(rows: Sequence[Row], ranks: int) -> bool:
    return not rows or any(fits(row, ranks) for row in rows)


def _rates(rows: Sequence[Row], low: float, high: float) -> str:
    """Returns which number of ranks the rates of rows state, for errors."""
    bounds = next((row["bus_per_alg"] for row in rows if row.get("bus_per_alg")), (0.0, 0.0))
    ratio = f"{_BY_RATES} = {sum(bounds) / 2:.4g}"
    first = math.ceil(low - _NEAR) if low < math.inf else 0
    last = math.floor(high + _NEAR) if high < math.inf else None
    if last is not None and (low > high or first > last):
        return f"{ratio} is that of no number of ranks of {rows[0]['operation']}"
    if last is None:
        return f"{ratio} is that of at least {first} ranks"
    return f"{ratio} is that of {first} ranks" if first == last else (
        f"{ratio} is that of {first} to {last} ranks"
    )  # fmt: skip
