"""Runs of kernels on chips with coherent caches: one, or several in parallel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tutti import _core
from tutti.base.files.described import key
from tutti.base.files.typed import refuse_arguments, refuse_fields
from tutti.networks.coherence.chip import Chip
from tutti.networks.coherence.results import CoherenceRun
from tutti.networks.coherence.traces import PREFIX, read_trace
from tutti.networks.errors import CoherenceError
from tutti.networks.loads import Threads, measure_all
from tutti.networks.mesh import SmartMesh

Protocol = Literal["ht", "tc"]
Scale = Literal["tiny", "small", "large"]

SCALES: tuple[Scale, ...] = ("tiny", "small", "large")
"""Problem sizes of kernels: about 10^4, 10^6 and 10^7 instructions."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A kernel or a trace, and the chip that runs it.

    Attributes:
        kernel: Name of the kernel; `kernels` lists them. `trace:FILE` repeats the accesses of a
            file instead (`tutti.networks.coherence.traces`).
        mesh: The mesh between the caches.
        chip: Caches and memory.
    """

    kernel: str
    protocol: Protocol = key(
        "ht",
        description="`ht`: the home node broadcasts each request and all caches respond; "
        "`tc`: token coherence, the requester broadcasts.",
    )
    mesh: SmartMesh = field(default_factory=SmartMesh)
    scale: Scale = key("small", description="Problem size: about 10^4, 10^6 or 10^7 instructions.")
    cores: int | None = key(
        None, ge=0, lt=1 << 32, description="Number of cores with a thread; default: all."
    )
    seed: int = key(1, ge=0, lt=1 << 62, description="Random seed of the kernel's input.")
    chip: Chip = field(default_factory=Chip)

    def __post_init__(self) -> None:
        """Refuses values of a wrong type or out of range.

        Raises:
            CoherenceError: A value is wrong.
        """
        refuse_fields(self, CoherenceError)

    @property
    def core(self) -> _core.CoherenceCase:
        """The case for the core.

        Raises:
            CoherenceError: The kernel is unknown or does not fit the mesh, or a setting of the chip
                is out of range.
            ConfigError: A trace cannot be read.
            NocError: The mesh does not support the protocol's messages.
        """
        chip: Any = self.chip.given(self.protocol)
        if self.kernel.startswith(PREFIX):
            _refuse_keys_of_kernels(self)
            trace = read_trace(_file_of(self.kernel))
            _check_cores(trace, self.mesh)
            return _core.CoherenceCase.of_trace(self.mesh.core, chip, trace)
        return _core.CoherenceCase(
            self.mesh.core, chip, self.kernel, self.scale, self.cores, self.seed
        )


def _file_of(kernel: str) -> Path:
    """Returns the file of a trace."""
    name = kernel.removeprefix(PREFIX)
    if not name:
        message = f"`{kernel}` names no file: expected {PREFIX}FILE"
        raise CoherenceError(message, kind="unknown_kernel", hint="give the file of the trace")
    return Path(name)


def _check_cores(trace: _core.CoherenceTrace, mesh: SmartMesh) -> None:
    """Refuses a trace whose last core exceeds the nodes of the mesh."""
    if trace.cores > mesh.nodes:
        message = (
            f"the trace has accesses of core {trace.cores - 1}: expected cores 0 to "
            f"{mesh.nodes - 1}, as the mesh has {mesh.nodes} nodes"
        )
        raise CoherenceError(message, kind="trace", hint="enlarge the mesh, or rename the core")


def _refuse_keys_of_kernels(case: Case) -> None:
    """Refuses settings of kernels that a trace does not have."""
    for name, default in (("scale", "small"), ("cores", None), ("seed", 1)):
        value = getattr(case, name)
        if value != default:
            message = f"`{name}` is {value!r}, and a trace has none: expected the default"
            raise CoherenceError(message, kind="trace", fields={"what": name})


def kernels() -> dict[str, str]:
    """Returns every kernel, with a description."""
    return dict(_core.coherence_kernels())


def check(case: Case) -> None:
    """Validates a case without running it.

    Raises:
        CoherenceError: The kernel is unknown or does not fit the mesh, or a setting of the chip is
            out of range.
        NocError: The mesh does not support the protocol's messages.
    """
    refuse_arguments("check", CoherenceError, case=(case, Case))
    _ = case.core


def run(
    *,
    kernel: str,
    protocol: Protocol = "ht",
    mesh: SmartMesh | None = None,
    scale: Scale = "small",
    cores: int | None = None,
    seed: int = 1,
    chip: Chip | None = None,
) -> CoherenceRun:
    """Runs a kernel on a chip, and compares its result with that of the serial program.

    Args:
        kernel: Name of the kernel; `kernels` lists them. `trace:FILE` repeats the accesses of a
            file, without a result to compare.
        protocol: `ht`: the home node broadcasts each request and all caches respond. `tc`: token
            coherence.
        mesh: The mesh between the caches; default ``SmartMesh()``.
        scale: Problem size.
        cores: Number of cores with a thread; default: all.
        seed: Random seed of the kernel's input.
        chip: Caches and memory; default ``Chip()``.

    Raises:
        CoherenceError: The kernel is unknown or does not fit the mesh, or a setting of the chip is
            out of range.
        NocError: The mesh does not support the protocol's messages.
        CoherenceRunError: The run failed, or its result is wrong.
    """
    refuse_arguments("run", CoherenceError, mesh=(mesh, SmartMesh | None), chip=(chip, Chip | None))
    case = Case(
        kernel=kernel,
        protocol=protocol,
        mesh=mesh or SmartMesh(),
        scale=scale,
        cores=cores,
        seed=seed,
        chip=chip or Chip(),
    )
    return run_all([case])[0]


def run_all(
    cases: Sequence[Case],
    *,
    threads: int = 0,
    done: Callable[[CoherenceRun], object] | None = None,
) -> list[CoherenceRun]:
    """Runs many cases in parallel on all cores of this machine.

    Args:
        cases: The cases.
        threads: Number of threads; 0 for one per core. Results do not depend on it.
        done: Called with each run as soon as it finishes, in no particular order.

    Returns:
        The runs, in the order of the cases.

    Raises:
        CoherenceError: A kernel is unknown or does not fit its mesh, or a setting of a chip is out
            of range.
        NocError: A mesh does not support the protocol's messages.
        CoherenceRunError: A run failed, or its result is wrong.
    """
    refuse_arguments("run_all", CoherenceError, cases=(cases, tuple[Case, ...]),
                     threads=(threads, Threads), done=(done, Callable | None))  # fmt: skip
    core_cases = [case.core for case in cases]

    def run_of(index: int, results: list[_core.CoherenceResult]) -> CoherenceRun:
        return CoherenceRun.of_core(cases[index], core_cases[index].described(), results[0])

    return measure_all([[one] for one in core_cases], run_of, threads=threads, done=done)
