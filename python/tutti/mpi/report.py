"""What the library did in a run: one JSON object, which rank 0 writes at MPI_Finalize."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tutti.errors import LaunchError

if TYPE_CHECKING:
    import os

__all__ = ["Covered", "PassedOn", "Report"]


@dataclass(frozen=True)
class Covered:
    """Calls of a collective that a schedule performed."""

    collective: str
    schedule: str
    ranks: int
    calls: int


@dataclass(frozen=True)
class PassedOn:
    """Calls that went to the MPI underneath, and why; `call` is MPI's name of it."""

    call: str
    reason: str
    calls: int


@dataclass(frozen=True)
class Report:
    """A report.

    Attributes:
        covered: By schedule. Each call of a communicator counts once, whatever its ranks.
        passed_on: By reason.
        data: Everything that the library wrote.
    """

    covered: tuple[Covered, ...]
    passed_on: tuple[PassedOn, ...]
    data: dict[str, Any]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Report:
        """Reads what the library wrote.

        Raises:
            LaunchError: It is no report.
        """
        try:
            data = json.loads(Path(path).read_text("utf-8"))
            covered = [
                Covered(row["collective"], row["schedule"], int(row["ranks"]), int(row["calls"]))
                for row in data["covered"]
            ]
            passed_on = [
                PassedOn(row["call"], row["reason"], int(row["calls"])) for row in data["passed"]
            ]
        except (OSError, ValueError, KeyError, TypeError) as error:
            message = f"{path}: is no report of the library: {error!r}"
            raise LaunchError(message, kind="report", fields={"path": str(path)}) from None
        return cls(tuple(covered), tuple(passed_on), data)

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Writes it as JSON, for other programs.

        Raises:
            LaunchError: It cannot be written.
        """
        path = Path(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(self.data, indent=1) + "\n", "utf-8")
        except OSError as error:
            message = f"{path}: the report cannot be written: {error.strerror}"
            raise LaunchError(message, kind="report", fields={"path": str(path)}) from None
        return path
