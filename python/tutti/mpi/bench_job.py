"""Jobs of the program that measures: what it is told, how it is run, and the samples it writes."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tutti.errors import BenchError
from tutti.mpi.distance import EMULATE
from tutti.mpi.launch import run_ranks
from tutti.mpi.library import built
from tutti.mpi.plan import COLLECTIVES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tutti.mpi.distance import Distance
    from tutti.mpi.host import Host
    from tutti.mpi.plan import Plan

__all__ = ["OPERATIONS", "TYPES", "Group", "Job", "Settings"]

TYPES: Final = (
    "int8", "uint8", "int32", "uint32", "int64", "uint64", "float32", "float64",
)  # fmt: skip
"""Datatypes by their numbers in job files."""
OPERATIONS: Final = ("sum", "prod", "min", "max")
WAYS: Final = ("schedule", "host", "call")
"""Whose code carries a collective out, by their numbers in job files: the library's on a schedule,
the MPI's own, or an application's call, which the library answers by the plan's first rule."""

_NS: Final = 1_000_000_000
_SECONDS_BETWEEN_LOOKS: Final = 0.3


@dataclass(frozen=True)
class Settings:
    """How to measure.

    Attributes:
        blocks: How many for each case (250 in Ruefenacht et al. 2017).
        each: Collectives in a row in a block (10 there).
        warmup: Blocks before that, which are not recorded.
        check: Whether every result is checked.
        distance: The model that keeps the ranks apart; None for what the machine does.
        quiet: Whether waiting ranks sleep; None where they outnumber the cores or are kept apart.
        aligned: Whether all ranks begin a block at an agreed time. Otherwise each begins when it is
            done with the one before, so that on a busy machine, where ranks seldom have cores at
            the same time, they use that time for blocks.
        timeout: Seconds until a run is ended; None waits for ever.
    """

    blocks: int = 250
    each: int = 10
    warmup: int = 2
    check: bool = True
    distance: Distance | None = None
    quiet: bool | None = None
    aligned: bool = True
    timeout: float | None = None

    def is_quiet(self, ranks: int) -> bool:
        """Whether so many ranks sleep where they wait."""
        if self.quiet is not None:
            return self.quiet
        return self.distance is not None or ranks > len(os.sched_getaffinity(0))

    def lines(self, ranks: int) -> list[str]:
        """The settings of a job file."""
        quiet = self.is_quiet(ranks)
        late, window, poll = self._waits(ranks, quiet)
        lines = [
            f"blocks {self.blocks}",
            f"each {self.each}",
            f"warmup {self.warmup}",
            f"check {int(self.check)}",
            f"quiet {int(quiet)}",
            f"aligned {int(self.aligned)}",
            f"tolerance_ns {round(late * _NS)}",
            f"window_ns {round(window * _NS)}",
            f"poll_ns {round(poll * _NS)}",
        ]
        if self.distance is not None:
            flight = round(self.distance.flight_s * _NS)
            lines += [f"flight_ns {flight}", self.distance.job_line]
        return lines

    def _waits(self, ranks: int, quiet: bool) -> tuple[float, float, float]:
        """Seconds: how late a rank may begin, how far ahead a window is, how rarely ranks look."""
        if self.distance is not None:
            message = self.distance.message_s
            return max(1e-3, message / 8), 5e-3 + 2e-4 * ranks, min(5e-3, max(2e-4, message / 8))
        if quiet:
            return 1e-3, 2e-3 + 2e-4 * ranks, 1e-3
        return 5e-6, 2e-4, 1e-3


@dataclass(frozen=True)
class Group:
    """One collective on one size, and its cases, which take turns.

    Attributes:
        collective: Its name.
        count: Elements in all.
        datatype: One of :data:`TYPES`.
        operation: One of :data:`OPERATIONS`.
        root: Of a rooted collective.
        cases: Way, and the number of a schedule in the plan.
    """

    collective: str
    count: int
    datatype: str
    operation: str
    root: int
    cases: Sequence[tuple[str, int]]

    def lines(self) -> list[str]:
        """Its lines of a job file."""
        numbers = (
            COLLECTIVES.index(self.collective),
            self.count,
            TYPES.index(self.datatype),
            OPERATIONS.index(self.operation),
            self.root,
        )
        return [
            " ".join(["group", *map(str, numbers)]),
            *(f"case {WAYS.index(way)} {schedule}" for way, schedule in self.cases),
        ]


@dataclass(frozen=True)
class Job:
    """A run of the program.

    Attributes:
        ranks: How many.
        settings: How to measure.
        plan: The schedules; None where none is needed.
        groups: What to measure.
        peers: Of multicasts, at most; 0 for none.
    """

    ranks: int
    settings: Settings
    plan: Plan | None = None
    groups: Sequence[Group] = ()
    peers: int = 0

    @property
    def expected(self) -> int:
        """Samples that it writes."""
        cases = sum(len(group.cases) for group in self.groups)
        return self.settings.blocks * (cases + 2 * self.peers)

    def run(
        self, host: Host, *, done: Callable[[int, int], object] | None = None
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Runs it; what the program says of the run, and its samples.

        Args:
            host: The MPI.
            done: Called with (written, expected) now and then.

        Raises:
            BenchError: The program ended with an error.
            LaunchError: It could not be started, or had not ended in time.
        """
        with tempfile.TemporaryDirectory(prefix="tutti-bench-") as folder:
            path = self._write(Path(folder))
            samples = Path(folder) / "samples"
            env = (
                {} if self.settings.distance is None else {EMULATE: self.settings.distance.variable}
            )
            if self.plan is not None:
                env["TUTTI_MPI_PLAN"] = str(Path(folder) / "plan.tutti")
            with _Watch(samples, self.expected, done):
                finished = run_ranks(
                    host, self.ranks, [built(host).bench, path], env=env,
                    timeout=self.settings.timeout,
                )  # fmt: skip
            if finished.code != 0:
                raise _failed(finished.stderr or finished.stdout, finished.code)
            lines = samples.read_text("utf-8", errors="replace").splitlines()
        if len(lines) != self.expected + 1:
            message = f"{len(lines) - 1} samples were written: expected {self.expected}"
            raise BenchError(message, kind="failed")
        return json.loads(lines[0]), [json.loads(line) for line in lines[1:]]

    def _write(self, folder: Path) -> Path:
        lines = [f"out {folder / 'samples'}", *self.settings.lines(self.ranks)]
        if self.plan is not None:
            lines.append(f"plan {self.plan.write(folder / 'plan.tutti')}")
        if self.peers:
            lines += [f"peers {self.peers}", f"samples {self.settings.blocks}"]
        for group in self.groups:
            lines += group.lines()
        path = folder / "job"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path


def _failed(said: str, code: int) -> BenchError:
    """What the program said of its end: its own line, where there is one."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    own = [line for line in lines if "tutti" in line]
    shown = "\n".join((own or lines)[:3]) or "it says nothing"
    message = f"the program that measures ended with {code}: {shown}"
    return BenchError(message, kind="failed", fields={"output": said, "code": code})


class _Watch:
    """Tells how many samples have been written, from a thread of its own."""

    def __init__(
        self, path: Path, expected: int, done: Callable[[int, int], object] | None
    ) -> None:
        self._path, self._expected, self._done = path, expected, done
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._look_now_and_then, daemon=True)

    def __enter__(self) -> None:
        if self._done is not None:
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._left.set()
        if self._done is not None:
            self._thread.join()

    def _look_now_and_then(self) -> None:
        written = at = 0
        while not self._left.wait(_SECONDS_BETWEEN_LOOKS):
            try:
                with self._path.open("rb") as file:
                    file.seek(at)
                    new = file.read()
            except OSError:
                continue  # not there yet
            at += len(new)
            written += new.count(b"\n")
            if self._done is not None:
                self._done(max(written - 1, 0), self._expected)
