"""The report of the library: one JSON object, which rank 0 writes at MPI_Finalize."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tutti.mpi.errors import LaunchError

if TYPE_CHECKING:
    import os


@dataclass(frozen=True)
class Covered:
    """Calls of a collective that a schedule performed."""

    collective: str
    schedule: str
    ranks: int
    calls: int


@dataclass(frozen=True)
class PassedOn:
    """Calls that were forwarded to the MPI library; `call` is the name of the MPI function."""

    call: str
    reason: str
    calls: int


@dataclass(frozen=True)
class Report:
    """A report.

    Attributes:
        covered: Calls by schedule. Each call counts once, whatever the number of ranks.
        passed_on: Forwarded calls by reason.
        data: The complete JSON object.
    """

    covered: tuple[Covered, ...]
    passed_on: tuple[PassedOn, ...]
    data: dict[str, Any]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Report:
        """Reads the report of the library.

        Raises:
            LaunchError: It is not a report.
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
            message = f"{path}: not a report of the library: {error!r}"
            raise LaunchError(message, kind="report", fields={"path": str(path)}) from None
        return cls(tuple(covered), tuple(passed_on), data)

    def to_json(self) -> str:
        """Returns the complete report as JSON."""
        return json.dumps(self.data, indent=1) + "\n"

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Writes the report as JSON.

        Raises:
            LaunchError: It cannot be written.
        """
        path = Path(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.to_json(), "utf-8")
        except OSError as error:
            message = f"{path}: the report cannot be written: {error.strerror}"
            raise LaunchError(message, kind="report", fields={"path": str(path)}) from None
        return path
