"""Times of each iteration on each process, from JSON of nccl-tests (``-J FILE -I 1``).

Source: ``writePerIterReport`` in ``src/util.cu`` of nccl-tests 2.18.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeGuard

import polars as pl

from tutti.base.files.reader import parse_json
from tutti.formats.nccl.inspector import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_US: Final = 1e15
_MOST_SIZE: Final = 1 << 62
_HALVES: Final = ("out_of_place_per_iter", "in_place_per_iter")


def parse_per_process(text: str, *, source: str) -> pl.DataFrame:
    """Returns the iterations as operations, with the columns of the Inspector.

    ``rank`` is the number of the process, which may have several GPUs. Files without ``-I 1`` have
    no rows.

    Raises:
        ConfigError: The text is not a JSON object.
    """
    tables = parse_json(text, source=source, expected="the output of nccl-tests with -J FILE")
    results = tables.get("results")
    hosts = _hosts(tables)
    rows = [
        row
        for place, result in enumerate(results if isinstance(results, list) else [], start=1)
        if isinstance(result, dict)
        for half in _HALVES
        for row in _rows(result, half, place, hosts, source)
    ]
    return pl.DataFrame(rows, schema=OPERATIONS, orient="row")


def _hosts(tables: dict[str, Any]) -> list[str | None]:
    """Returns the host of each process."""
    config = tables.get("config")
    devices = config.get("devices") if isinstance(config, dict) else None
    names = [
        one.get("hostname") if isinstance(one, dict) else None
        for one in (devices if isinstance(devices, list) else [])
    ]
    return [name if isinstance(name, str) else None for name in names]


def _rows(
    result: dict[str, Any], half: str, place: int, hosts: list[str | None], source: str
) -> Iterator[dict[str, Any]]:
    report, size = result.get(half), result.get("size")
    if not (isinstance(report, dict) and _is_number(size, _MOST_SIZE)):
        return
    processes = report.get("per_process_max_times_us")
    for process, times in enumerate(processes if isinstance(processes, list) else []):
        for iteration, time in enumerate(times if isinstance(times, list) else []):
            if _is_number(time, _MOST_US):
                yield {
                    **dict.fromkeys(OPERATIONS),
                    "file": source,
                    "line": place,
                    "communicator": source,
                    "host": hosts[process] if process < len(hosts) else None,
                    "collective": half.removesuffix("_per_iter"),
                    "sequence": place << 32 | iteration,
                    "rank": process,
                    "size_bytes": int(size),
                    "time_us": float(time),
                }


def _is_number(value: object, most: float) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most
