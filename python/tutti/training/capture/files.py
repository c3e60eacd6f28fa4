"""A captured step as a folder: `step.json`, and the operators and memory of each role.

`step.json` states format, program, versions, roles and process groups. `rank<N>.parquet` has a row
per operator of the role of rank N, `rank<N>.memory.parquet` one per change of device memory.
Groups are stored as strides: the ranks `first + i * stride` for each stride and size, in sequence.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import polars as pl
from pydantic import BaseModel, ConfigDict, ValidationError

from tutti.base.files.limits import RANKS, Bytes
from tutti.base.files.reader import read_bytes
from tutti.training.capture.grid import pairs_of, ranks_of
from tutti.training.capture.record import (
    KINDS,
    MEMORY_KINDS,
    PHASES,
    CapturedStep,
    Exchange,
    Group,
    MemoryChange,
    Operator,
    Role,
)
from tutti.training.errors import CaptureError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["FORMAT", "STEP", "is_captured", "read_step", "write_step"]

FORMAT = "tutti.captured_step/1"
STEP = "step.json"
_EXPECTED = "the folder of `tutti train capture`"

_COLUMNS: dict[str, Any] = {
    "name": pl.String, "module": pl.String, "phase": pl.Enum(PHASES), "stream": pl.Int64,
    "kind": pl.Enum(KINDS), "after": pl.List(pl.Int64), "flops": pl.Int64, "bytes": pl.Int64,
    "weight": pl.Int64, "dtype": pl.String, "shapes": pl.String, "collective": pl.String,
    "group": pl.Int64, "peer": pl.Int64, "tag": pl.Int64,
}  # fmt: skip
_MEMORY: dict[str, Any] = {"operator": pl.Int64, "bytes": pl.Int64, "module": pl.String,
           "kind": pl.Enum(MEMORY_KINDS)}  # fmt: skip


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Group(_Strict):
    name: str
    first: int
    strides: list[tuple[int, int]]


class _Role(_Strict):
    rank: int
    parameters: int
    weights: int
    remarks: list[str]
    groups: list[_Group]
    ranks: list[tuple[int, int]] = []


class _Step(_Strict):
    format: str
    script: str
    world_size: int
    torch: str
    compiled: bool
    seconds: float
    roles: list[_Role]


def is_captured(path: Path) -> bool:
    """Returns whether a path is the folder of a captured step."""
    return (path / STEP).is_file()


def write_step(folder: Path, step: CapturedStep) -> Path:
    """Writes a captured step to a folder, and returns its `step.json`.

    Raises:
        CaptureError: A group is not a grid of ranks.
    """
    folder.mkdir(parents=True, exist_ok=True)
    roles = []
    for role in step.roles:
        groups = []
        for group in role.groups:
            first, strides = pairs_of(group.ranks)
            groups.append({"name": group.name, "first": first, "strides": strides})
        named = {"ranks": _runs(role.ranks)} if role.ranks else {}
        roles.append({"rank": role.rank, "parameters": role.parameters, "weights": role.weights,
                      "remarks": list(role.remarks), "groups": groups, **named})  # fmt: skip
        rows = [_row(one) for one in role.operators]
        pl.DataFrame(rows, schema=_COLUMNS, orient="row").write_parquet(
            folder / f"rank{role.rank}.parquet"
        )
        changes = [tuple(asdict(one).values()) for one in role.memory]
        pl.DataFrame(changes, schema=_MEMORY, orient="row").write_parquet(
            folder / f"rank{role.rank}.memory.parquet"
        )
    tables = {
        "format": FORMAT, "script": step.script, "world_size": step.world_size,
        "torch": step.torch, "compiled": step.compiled, "seconds": step.seconds, "roles": roles,
    }  # fmt: skip
    path = folder / STEP
    path.write_text(json.dumps(tables, indent=1) + "\n", encoding="utf-8")
    return path


def _runs(ranks: tuple[int, ...]) -> list[tuple[int, int]]:
    """Returns ascending ranks as the first and last of each run of consecutive ones."""
    starts = [rank for at, rank in enumerate(ranks) if not at or ranks[at - 1] != rank - 1]
    ends = [rank for at, rank in enumerate(ranks, 1) if at == len(ranks) or ranks[at] != rank + 1]
    return list(zip(starts, ends, strict=True))


def _row(one: Operator) -> tuple[Any, ...]:
    to = one.exchange
    exchange = (to.collective, to.group, to.peer, to.tag) if to else (None, None, None, None)
    return (one.name, one.module, one.phase, one.stream, one.kind, list(one.after), one.flops,
            one.bytes, one.weight, one.dtype, one.shapes, *exchange)  # fmt: skip


def read_step(folder: Path) -> CapturedStep:
    """Reads a captured step.

    Raises:
        ConfigError: A file cannot be read.
        CaptureError: A file is not one of a captured step.
    """
    path = folder / STEP
    try:
        stored = _Step.model_validate_json(read_bytes(path, Bytes.TABLE, _EXPECTED))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise _invalid(path, f"`{where}`: {first['msg']}") from None
    if stored.format != FORMAT:
        raise _invalid(path, f"format `{stored.format}`: expected {FORMAT}")
    if not 1 <= stored.world_size <= RANKS or not stored.roles:
        raise _invalid(path, f"world size {stored.world_size} and {len(stored.roles)} roles")
    roles = tuple(_role(folder, one, stored.world_size) for one in stored.roles)
    return CapturedStep(
        script=stored.script,
        world_size=stored.world_size,
        torch=stored.torch,
        roles=roles,
        compiled=stored.compiled,
        seconds=stored.seconds,
    )


def _role(folder: Path, stored: _Role, world: int) -> Role:
    path = folder / f"rank{stored.rank}.parquet"
    groups = tuple(
        Group(one.name, _checked(ranks_of(one.first, one.strides), world, path))
        for one in stored.groups
    )
    operators = tuple(
        _operator(row, number, len(groups), world, path)
        for number, row in enumerate(_table(path, _COLUMNS).iter_rows(named=True))
    )
    changes = _table(folder / f"rank{stored.rank}.memory.parquet", _MEMORY)
    return Role(
        rank=stored.rank,
        operators=operators,
        groups=groups,
        parameters=stored.parameters,
        weights=stored.weights,
        memory=tuple(MemoryChange(*row) for row in changes.iter_rows()),
        remarks=tuple(stored.remarks),
        ranks=_named(stored.ranks, world, folder / STEP),
    )


def _named(runs: list[tuple[int, int]], world: int, path: Path) -> tuple[int, ...]:
    """Returns the ranks of a role, of which files have the runs."""
    if any(not 0 <= first <= last < world for first, last in runs):
        raise _invalid(path, f"a role has ranks outside 0 to {world - 1}")
    return tuple(rank for first, last in runs for rank in range(first, last + 1))


def _table(path: Path, columns: dict[str, Any]) -> pl.DataFrame:
    try:
        frame = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise _invalid(path, str(error).splitlines()[0]) from None
    if dict(frame.schema) != columns:
        raise _invalid(path, f"columns {', '.join(frame.columns)[:200]}")
    return frame


def _operator(row: dict[str, Any], number: int, groups: int, world: int, path: Path) -> Operator:
    collective = row.pop("collective")
    group, peer, tag = (row.pop(key) for key in ("group", "peer", "tag"))
    after = tuple(row.pop("after") or ())
    is_early = all(0 <= one < number for one in after)
    has_ranks = collective is None or (0 <= group < groups and 0 <= (peer or 0) < world)
    if not is_early or not has_ranks or min(row["flops"], row["bytes"], row["weight"]) < 0:
        raise _invalid(path, f"row {number}: a dependency, group, peer or amount is out of range")
    exchange = None if collective is None else Exchange(collective, group, row["bytes"], peer, tag)
    return Operator(after=after, exchange=exchange, **row)


def _checked(ranks: tuple[int, ...], world: int, path: Path) -> tuple[int, ...]:
    if not ranks or min(ranks) < 0 or max(ranks) >= world:
        raise _invalid(path, f"a group has ranks outside 0 to {world - 1}")
    return ranks


def _invalid(path: Path, problem: str) -> CaptureError:
    message = f"{path}: {problem}: expected a file of `tutti train capture`"
    return CaptureError(message, kind="file", fields={"path": str(path)})
