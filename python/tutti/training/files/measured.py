"""Logs of measured training steps: CSV or TOML files, a row per plan or recipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import Field

from tutti.base.files.mistakes import mistake
from tutti.base.files.reader import read_rows, read_toml
from tutti.base.files.tables import Positive, Table
from tutti.base.files.validate import validated
from tutti.workloads.kernels import Precision
from tutti.workloads.tokens import Format
from tutti.workloads.transfers import CpCommType, Recompute

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["MeasuredRow", "NumberedRow", "read_measured"]

_MOST_ROWS = 10_000
_Above = Annotated[float, Field(gt=0, lt=1e12)]


class MeasuredRow(Table):
    """A measured step: its plan or its recipe, and its time.

    A recipe has the options of `tutti train plan` by name, with `_` for `-`.
    """

    plan: str = ""
    seconds: _Above | None = None
    tokens_per_s_per_gpu: _Above | None = None
    model: str = ""
    platform: str = ""
    gpus: Positive | None = None
    gpu: str = ""
    global_batch: Positive | None = None
    precision: Precision = "bf16"
    gradients: str = "fp32"
    dispatcher: str = ""
    overlap_experts: bool = False
    cuda_graphs: str = ""
    tensor: Positive = 1
    context: Positive = 1
    pipeline: Positive = 1
    expert: Positive = 1
    micro_batch: Positive = 1
    chunks: Positive = 1
    recompute: Recompute = "selective"
    zero: int | None = Field(None, ge=0, le=3)
    cp_comm_type: CpCommType = "all_gather"
    dispatch_format: Format | None = None
    expert_imbalance: Annotated[float, Field(ge=1, le=1e4)] = 1.0


class NumberedRow(NamedTuple):
    """A row, and its place for messages."""

    source: str
    row: MeasuredRow


def read_measured(path: Path) -> list[NumberedRow]:
    """Reads the rows of a CSV file with a heading, or the tables `[[step]]` of a TOML file.

    Raises:
        ConfigError: The file cannot be read, has no rows, or a row is invalid.
    """
    tables = _of_toml(path) if path.suffix == ".toml" else _of_csv(path)
    found = [NumberedRow(source, _row(table, source)) for source, table in tables]
    if not found:
        raise mistake("has no measured steps", source=str(path), expected=_EXPECTED)
    return found


_EXPECTED = (
    "rows with `plan` (a file of `tutti train plan --out`) or a recipe (model, platform, gpus, "
    "global_batch, ...), and `seconds` or `tokens_per_s_per_gpu`"
)


def _row(table: dict[str, Any], source: str) -> MeasuredRow:
    row = validated(MeasuredRow, table, source=source)
    if (row.seconds is None) == (row.tokens_per_s_per_gpu is None):
        problem = "has no time" if row.seconds is None else "has two times"
        expected = "`seconds` of a step, or `tokens_per_s_per_gpu`"
        raise mistake(problem, source=source, expected=expected)
    recipe = [key for key in table if key not in _TIMES]
    if row.plan and recipe:
        hint = "a plan states its recipe: remove the column, or the plan"
        raise mistake("conflicts with `plan`", source=source, key=recipe[0], hint=hint)
    if not row.plan and not recipe:
        return row
    for key in ("model", "global_batch") if not row.plan else ():
        if key not in table:
            raise mistake("is missing", source=source, key=key, expected=_EXPECTED)
    return row


_TIMES = ("plan", "seconds", "tokens_per_s_per_gpu")


def _of_toml(path: Path) -> list[tuple[str, dict[str, Any]]]:
    tables = read_toml(path, _EXPECTED)
    steps = tables.pop("step", [])
    if tables or not isinstance(steps, list):
        key = next(iter(tables), "step")
        raise mistake("is not valid", source=str(path), key=key, expected="tables `[[step]]` only")
    for table in steps:
        if not isinstance(table, dict):
            raise mistake("is not valid", source=str(path), key="step", expected="[[step]]")
    return [(f"{path}, step {number}", table) for number, table in enumerate(steps, 1)]


def _of_csv(path: Path) -> list[tuple[str, dict[str, Any]]]:
    head: list[str] = []
    found: list[tuple[str, dict[str, Any]]] = []
    for line, cells in read_rows(path, f"a CSV file of {_EXPECTED}"):
        if not any(cells) or cells[0].startswith("#"):
            continue
        if not head:
            head = cells
            continue
        source = f"{path}, line {line}"
        if len(cells) != len(head):
            problem, expected = f"has {len(cells)} cells", f"{len(head)}, as the heading"
            raise mistake(problem, source=source, expected=expected)
        if len(found) == _MOST_ROWS:
            raise mistake("has too many rows", source=source, expected=f"at most {_MOST_ROWS:,}")
        found.append((source, {key: _value(cell) for key, cell in zip(head, cells, strict=True)
                               if cell}))  # fmt: skip
    return found


def _value(cell: str) -> int | float | bool | str:
    """Returns a cell as a number or a Boolean if it is one."""
    if cell in ("true", "false"):
        return cell == "true"
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell
