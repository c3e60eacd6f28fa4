"""Jobs of the benchmark program: the job file, the run, and the samples."""

from __future__ import annotations

import json
import platform
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tutti.mpi.distance import EMULATE
from tutti.mpi.errors import BenchError
from tutti.mpi.launch import common_folder, run_ranks, stay_here
from tutti.mpi.library import built
from tutti.mpi.machine import this_machine
from tutti.mpi.plan import COLLECTIVES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tutti.mpi.distance import Distance
    from tutti.mpi.launch import Finished
    from tutti.mpi.plan import CollectivePlan
    from tutti.mpi.underneath import Mpi

TYPES: Final = (
    "int8", "uint8", "int32", "uint32", "int64", "uint64", "float32", "float64",
)  # fmt: skip
"""Datatypes, numbered as in job files."""
OPERATIONS: Final = ("sum", "prod", "min", "max")
IMPLEMENTATIONS: Final = ("schedule", "own", "call", "forced")
"""Numbered as in job files: the library with a schedule, the MPI library, an application's call,
which the library performs by the plan's first rule, or the MPI library with control variables that
force one of its algorithms."""

NO_GROUP: Final = -1
"""Replaces the group's number for multicasts."""

_NS: Final = 1_000_000_000
_PS_PER_NS: Final = 1000
_POLL_SECONDS: Final = 0.3
_RANKS_DECIDE: Final = -1
"""Setting `quiet`: ranks sleep while they wait if they outnumber the cores."""


@dataclass(frozen=True)
class Settings:
    """How to measure.

    Attributes:
        blocks: Number of blocks for each case (250 in Ruefenacht et al. 2017).
        each: Back-to-back collectives in a block (10 there).
        warmup: Blocks before the recorded ones.
        check: Whether every result is checked.
        distance: The model that emulates the distance between ranks; None for real distance.
        quiet: Whether waiting ranks sleep. By default they do with emulated distance, or if they
            outnumber the cores of a host.
        aligned: Whether all ranks start a block at an agreed time. Otherwise each rank starts when
            it has finished the previous block, which uses the cores of a busy machine better.
        timeout: Seconds after which a run is ended; None waits indefinitely.
        options: Options of the launcher, such as host lists.
        variables: Environment variables of the ranks.
    """

    blocks: int = 250
    each: int = 10
    warmup: int = 2
    check: bool = True
    distance: Distance | None = None
    quiet: bool | None = None
    aligned: bool = True
    timeout: float | None = None
    options: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    def lines(self, ranks: int) -> list[str]:
        """Returns the settings of a job file."""
        quiet = _RANKS_DECIDE if self.quiet is None else int(self.quiet)
        if self.distance is not None and self.quiet is None:
            quiet = 1
        late, window, poll = self._waits(ranks, quiet=False)
        quiet_late, quiet_window, _ = self._waits(ranks, quiet=True)
        lines = [
            f"blocks {self.blocks}",
            f"each {self.each}",
            f"warmup {self.warmup}",
            f"check {int(self.check)}",
            f"quiet {quiet}",
            f"aligned {int(self.aligned)}",
            f"tolerance_ns {round(late * _NS)}",
            f"window_ns {round(window * _NS)}",
            f"quiet_tolerance_ns {round(quiet_late * _NS)}",
            f"quiet_window_ns {round(quiet_window * _NS)}",
            f"poll_ns {round(poll * _NS)}",
        ]
        if self.distance is not None:
            flight = round(self.distance.flight_s * _NS)
            lines += [f"flight_ns {flight}", self.distance.job_line]
        return lines

    def tolerance_s(self, ranks: int, *, crowded: bool) -> float:
        """Returns how late the last of `ranks` ranks may start a block, in seconds."""
        quiet = crowded if self.quiet is None else self.quiet
        return self._waits(ranks, quiet=quiet)[0]

    def _waits(self, ranks: int, *, quiet: bool) -> tuple[float, float, float]:
        """Returns tolerance, lead time of a start and polling interval, in seconds."""
        if self.distance is not None:
            message = self.distance.message_s
            return max(1e-3, message / 8), 5e-3 + 2e-4 * ranks, min(5e-3, max(2e-4, message / 8))
        if quiet:
            return 1e-3, 2e-3 + 2e-4 * ranks, 1e-3
        return 5e-6, 2e-4, 1e-3


@dataclass(frozen=True)
class RunInfo:
    """Properties of a run, as the ranks reported them.

    Attributes:
        mpi: The version string of the MPI library.
        host: Host of rank 0.
        hosts: Number of hosts.
        crowded: Whether ranks outnumbered the cores of a host.
        clock_error_ns: Maximum error of the hosts' clocks by group (NO_GROUP for multicasts); 0 on
            one host.
    """

    mpi: str
    host: str
    hosts: int
    crowded: bool
    clock_error_ns: dict[int, int]

    def columns(self, group: int = NO_GROUP) -> dict[str, bool | int | str]:
        """Returns the columns that the rows of a group share."""
        return {
            "crowded": self.crowded,
            "clock_error_ps": self.clock_error_ns[group] * _PS_PER_NS,
            "mpi": self.mpi,
            "host": self.machine,
        }

    @property
    def machine(self) -> str:
        """Describes the machine of the run."""
        if self.hosts > 1:
            return f"{self.hosts} hosts, rank 0 on {self.host}"
        return this_machine() if self.host == platform.node() else self.host


@dataclass(frozen=True)
class Group:
    """One collective at one size, and its cases, which take turns.

    Attributes:
        collective: Name of the collective.
        count: Total number of elements.
        datatype: One of :data:`TYPES`.
        operation: One of :data:`OPERATIONS`.
        root: Root of a rooted collective.
        cases: Implementation, and the index of a schedule in the plan or of the control variables.
    """

    collective: str
    count: int
    datatype: str
    operation: str
    root: int
    cases: Sequence[tuple[str, int]]

    def lines(self) -> list[str]:
        """Returns the lines of a job file."""
        numbers = (
            COLLECTIVES.index(self.collective),
            self.count,
            TYPES.index(self.datatype),
            OPERATIONS.index(self.operation),
            self.root,
        )
        return [
            " ".join(["group", *map(str, numbers)]),
            *(f"case {IMPLEMENTATIONS.index(name)} {schedule}" for name, schedule in self.cases),
        ]


@dataclass(frozen=True)
class Job:
    """A run of the benchmark program.

    Attributes:
        ranks: Number of ranks.
        settings: How to measure.
        plan: The schedules; None if none are needed.
        groups: Collectives to measure.
        peers: Maximum number of peers of multicasts; 0 for no multicasts.
        controls: Sets of control variables of the MPI library (MPI_T), values by name.
    """

    ranks: int
    settings: Settings
    plan: CollectivePlan | None = None
    groups: Sequence[Group] = ()
    peers: int = 0
    controls: Sequence[Mapping[str, str]] = ()

    @property
    def expected(self) -> int:
        """Number of samples that the program writes."""
        cases = sum(len(group.cases) for group in self.groups)
        return self.settings.blocks * (cases + 2 * self.peers)

    def run(
        self, mpi: Mpi, *, done: Callable[[int, int], object] | None = None
    ) -> tuple[RunInfo, list[dict[str, Any]]]:
        """Runs the program; returns properties of the run, and its samples.

        Args:
            mpi: The MPI library.
            done: Called repeatedly with (written, expected).

        Raises:
            BenchError: The program exited with an error.
            LaunchError: It could not be started, or exceeded the timeout.
        """
        here = stay_here(mpi.starts, self.settings.options)
        with common_folder("bench", here=here) as folder:
            path = self._write(folder)
            samples = folder / "samples"
            env = dict(self.settings.variables)
            if self.settings.distance is not None:
                env[EMULATE] = self.settings.distance.variable
            if self.plan is not None:
                env["TUTTI_MPI_PLAN"] = str(folder / "plan.tutti")
            with _Watch(samples, self.expected, done):
                finished = run_ranks(
                    mpi, self.ranks, [built(mpi).bench, path], env=env,
                    timeout=self.settings.timeout, extra=self.settings.options,
                )  # fmt: skip
            if finished.code != 0 or not samples.is_file():
                problem = failure_text(finished, samples)
                message = f"the benchmark program exited with {finished.code}: {problem}"
                fields = {"output": finished.stderr or finished.stdout, "code": finished.code}
                raise BenchError(message, kind="failed", fields=fields)
            lines = samples.read_text("utf-8", errors="replace").splitlines()
        return self._split(lines)

    def _split(self, lines: Sequence[str]) -> tuple[RunInfo, list[dict[str, Any]]]:
        """Separates the properties of the run from its samples."""
        rows = [json.loads(line) for line in lines]
        samples = [row for row in rows[1:] if row["kind"] != "clock"]
        if not rows or len(samples) != self.expected:
            message = f"{len(samples)} samples were written: expected {self.expected}"
            raise BenchError(message, kind="failed")
        errors = {row["group"]: row["error_ns"] for row in rows if row["kind"] == "clock"}
        head = rows[0]
        hosts = (head["host"], head["hosts"])
        return RunInfo(head["mpi"], *hosts, bool(head["crowded"]), errors), samples

    def _write(self, folder: Path) -> Path:
        lines = [f"out {folder / 'samples'}", *self.settings.lines(self.ranks)]
        if self.plan is not None:
            lines.append(f"plan {self.plan.write(folder / 'plan.tutti')}")
        if self.peers:
            lines += [f"peers {self.peers}", f"samples {self.settings.blocks}"]
        for number, values in enumerate(self.controls):
            lines += [f"control {number} {name} {value}" for name, value in values.items()]
        for group in self.groups:
            lines += group.lines()
        path = folder / "job"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path


def failure_text(finished: Finished, samples: Path) -> str:
    """Returns the error message of the benchmark program.

    The program also writes it next to its samples: launchers may drop output that a rank wrote just
    before its job was aborted.
    """
    written = samples.with_name(f"{samples.name}.error")
    text = written.read_text("utf-8", errors="replace") if written.is_file() else finished.stderr
    lines = [line.strip() for line in (text or finished.stdout).splitlines() if line.strip()]
    own = [line for line in lines if "tutti" in line]
    return "\n".join(dict.fromkeys((own or lines)[:3])) or "no output"


class _Watch:
    """Reports the number of samples written, from a separate thread."""

    def __init__(
        self, path: Path, expected: int, done: Callable[[int, int], object] | None
    ) -> None:
        self._path, self._expected, self._done = path, expected, done
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)

    def __enter__(self) -> None:
        if self._done is not None:
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._left.set()
        if self._done is not None:
            self._thread.join()

    def _poll(self) -> None:
        written = at = 0
        while not self._left.wait(_POLL_SECONDS):
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
