"""Output of the NCCL Inspector: a JSON object per line, operation and rank.

Source: ``plugins/profiler/inspector`` of NCCL 2.30.7 (format v4.0).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import polars as pl
from pydantic import ConfigDict, Field

from tutti.base.errors import ConfigError
from tutti.base.files import limits
from tutti.base.files.mistakes import mistake
from tutti.base.files.reader import decoded, parse_json, read_bytes
from tutti.base.files.tables import Count, Table
from tutti.base.files.validate import validated

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

OPERATIONS: Final[dict[str, type[pl.DataType]]] = {
    "file": pl.String,
    "line": pl.Int64,
    "communicator": pl.String,
    "host": pl.String,
    "collective": pl.String,
    "sequence": pl.Int64,
    "rank": pl.Int64,
    "ranks": pl.Int64,
    "nodes": pl.Int64,
    "peer": pl.Int64,
    "size_bytes": pl.Int64,
    "time_us": pl.Float64,
    "timing": pl.String,
    "bytes_per_s": pl.Float64,
    "bus_bytes_per_s": pl.Float64,
}
"""The columns of operations; `peer` is null for collectives.

- ``collective``: a collective of tutti, or ``send`` and ``recv``.
- ``sequence``: the number of the operation in its communicator; the same on all ranks.
- ``size_bytes``: by tutti's convention: for all_gather and reduce_scatter the sum of all shards.
- ``time_us``: the time of the operation on this rank. It includes waiting for other ranks.
- ``timing``: the source of the time, such as ``kernel_gpu``."""

_EXPECTED: Final = "output of the NCCL Inspector: a JSON object per line"
_SHARDS: Final = frozenset({"all_gather", "reduce_scatter"})
_COLLECTIVES: Final = {
    "AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter",
    "Broadcast": "broadcast", "Reduce": "reduce", "Send": "send", "Recv": "recv",
}  # fmt: skip
_LONGEST: Final = 1 << 20


class Inspected(NamedTuple):
    """Operations with the columns of :data:`OPERATIONS`, and lines left out with the reason."""

    rows: pl.DataFrame
    omitted: list[tuple[int, str]]


class _Header(Table):
    model_config = ConfigDict(extra="ignore")

    id: str = Field(description="The communicator.", max_length=64)
    rank: int = Field(ge=0, lt=limits.RANKS)
    n_ranks: int = Field(ge=1, lt=limits.RANKS)
    nnodes: int = Field(0, ge=0, lt=limits.RANKS)


class _Metadata(Table):
    model_config = ConfigDict(extra="ignore")

    inspector_output_format_version: str = Field(max_length=16)
    hostname: str = Field("", max_length=256)


_Rate = Annotated[float, Field(ge=0, le=1e9)]


class _Operation(Table):
    """The values of an operation; the keys start with ``coll_`` or ``p2p_``."""

    model_config = ConfigDict(extra="ignore")

    name: str = Field(max_length=64)
    sn: Count
    msg_size_bytes: Count
    exec_time_us: float = Field(ge=0, le=1e15)
    timing_source: str = Field("", max_length=64)
    algobw_gbs: _Rate = 0.0
    busbw_gbs: _Rate = 0.0
    peer: Annotated[int, Field(ge=-1, lt=limits.RANKS)] | None = None


def is_inspector(text: str) -> bool:
    """Returns whether a text is output of the Inspector."""
    return text.lstrip().startswith("{") and '"inspector_output_format_version"' in text[:_LONGEST]


def read_inspector(paths: str | Path | Iterable[str | Path]) -> Inspected:
    """Reads files of the Inspector, one per process.

    Returns:
        The operations. Invalid lines, such as a truncated last one, are left out and listed.

    Raises:
        ConfigError: A file cannot be read or has no operation.
    """
    paths = [paths] if isinstance(paths, str | Path) else paths
    parts = []
    for path in map(Path, paths):
        data = read_bytes(path, limits.Bytes.TABLE, _EXPECTED)
        text = decoded(data, source=str(path), expected=_EXPECTED)
        parts.append(parse_inspector(text, source=str(path)))
    rows = [part.rows for part in parts] or [pl.DataFrame(schema=OPERATIONS)]
    return Inspected(pl.concat(rows), [one for part in parts for one in part.omitted])


def parse_inspector(text: str, *, source: str) -> Inspected:
    """Reads output of the Inspector from text, as :func:`read_inspector`."""
    rows, omitted = [], []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            rows.append(_row(line, number, source))
        except ConfigError as error:
            omitted.append((number, str(error.fields.get("problem", "invalid"))))
    if not rows:
        raise mistake(
            "has no operation",
            source=source,
            value=omitted[0][1] if omitted else "",
            expected=f'{_EXPECTED} with "header", "metadata" and "coll_perf" or "p2p_perf"',
        )
    return Inspected(pl.DataFrame(rows, schema=OPERATIONS, orient="row"), omitted)


def _row(line: str, number: int, source: str) -> dict[str, Any]:
    place = f"{source}, line {number}"
    tables = parse_json(line, source=place, expected=_EXPECTED)
    header = validated(_Header, _part(tables, "header", place), source=place)
    metadata = validated(_Metadata, _part(tables, "metadata", place), source=place)
    prefix = "coll" if "coll_perf" in tables else "p2p"
    values = dict(_keys(_part(tables, f"{prefix}_perf", place), prefix))
    one = validated(_Operation, values, source=place)
    collective = _COLLECTIVES.get(one.name)
    if collective is None:
        expected = ", ".join(_COLLECTIVES)
        raise mistake(f"unknown operation {one.name}", source=place, expected=expected)
    shards = header.n_ranks if collective in _SHARDS else 1
    return {
        "file": source,
        "line": number,
        "communicator": header.id,
        "host": metadata.hostname,
        "collective": collective,
        "sequence": one.sn,
        "rank": header.rank,
        "ranks": header.n_ranks,
        "nodes": header.nnodes or None,
        "peer": one.peer,
        "size_bytes": min(one.msg_size_bytes * shards, limits.MOST),
        "time_us": float(one.exec_time_us),
        "timing": one.timing_source or None,
        "bytes_per_s": one.algobw_gbs * 1e9,
        "bus_bytes_per_s": one.busbw_gbs * 1e9,
    }


def _part(tables: dict[str, Any], name: str, place: str) -> dict[str, Any]:
    part = tables.get(name)
    if not isinstance(part, dict):
        raise mistake(f"lacks `{name}`", source=place, expected=_EXPECTED)
    return part


def _keys(part: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Yields the keys of an operation without their prefix."""
    for key, value in part.items():
        yield ("name" if key == prefix else key.removeprefix(f"{prefix}_")), value
