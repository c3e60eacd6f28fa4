"""Runs of kernels on chips with coherent caches: one, or many at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from tutti import _core
from tutti.coherence.chip import Chip
from tutti.coherence.measured import CoherenceRun
from tutti.errors import CoherenceError
from tutti.files.described import beyond_bounds
from tutti.noc.measuring import measure_all
from tutti.noc.smart import SmartMesh

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Protocol = Literal["ht", "tc"]
Scale = Literal["tiny", "small", "large"]

SCALES: tuple[Scale, ...] = ("tiny", "small", "large")
"""How much work kernels are: some 10^4, 10^6, 10^7 instructions."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A kernel, and the chip it is to run on.

    Attributes:
        kernel: Its name; `kernels` lists them.
        mesh: The mesh between the caches.
        seed: Draws the kernel's input.
        chip: Caches and memory.
    """

    kernel: str
    protocol: Annotated[
        Protocol,
        Field(
            description="Coherence protocol. `ht`: the home of a line broadcasts requests, "
            "and all cores respond; `tc`: token coherence, in which the core that"
            " misses broadcasts.",
        ),
    ] = "ht"
    mesh: SmartMesh = field(default_factory=SmartMesh)
    scale: Annotated[
        Scale, Field(description="Amount of work: about 10^4, 10^6 or 10^7 instructions.")
    ] = "small"
    cores: Annotated[
        int | None,
        Field(ge=0, lt=1 << 32, description="Cores that run a thread; all if absent."),
    ] = None
    seed: Annotated[
        int, Field(ge=0, lt=1 << 62, description="Random seed of the kernel's input.")
    ] = 1
    chip: Chip = field(default_factory=Chip)

    @property
    def core(self) -> _core.CoherenceCase:
        """As the core takes it.

        Raises:
            CoherenceError: There is no such kernel, it does not suit the mesh, or a setting of the
                chip is out of its range.
            NocError: The mesh does not take the protocol's messages.
        """
        for name, value, least, most in beyond_bounds(self):
            message = f"`{name}` is {value!r}: expected a whole number from {least} to {most}"
            raise CoherenceError(message, kind="out_of_range", fields={"what": name})
        chip: Any = self.chip.given(self.protocol)
        return _core.CoherenceCase(
            self.mesh.core, chip, self.kernel, self.scale, self.cores, self.seed
        )


def kernels() -> dict[str, str]:
    """Every kernel, and a sentence on it."""
    return dict(_core.coherence_kernels())


def check(case: Case) -> None:
    """Refuses what cannot be run, without running it.

    Raises:
        CoherenceError: There is no such kernel, it does not suit the mesh, or a setting of the chip
            is out of its range.
        NocError: The mesh does not take the protocol's messages.
    """
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
    """Runs a kernel on a chip, and checks its result against that of the serial program.

    Args:
        kernel: Its name; `kernels` lists them.
        protocol: `ht`, a home per line that broadcasts every request, and all answer; `tc`, tokens.
        mesh: The mesh between the caches; ``SmartMesh()`` if it is left out.
        scale: How much work.
        cores: How many cores have a thread; all if it is left out.
        seed: Draws the kernel's input.
        chip: Caches and memory; ``Chip()`` if it is left out.

    Raises:
        CoherenceError: There is no such kernel, it does not suit the mesh, or a setting of the chip
            is out of its range.
        NocError: The mesh does not take the protocol's messages.
        CoherenceRunError: The run gives no result.
    """
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
    """Runs many cases at once on all cores of this machine.

    Args:
        cases: What to run.
        threads: How many; 0 is one per core. The results do not depend on it.
        done: Told of each run as soon as it is there, in no particular order.

    Returns:
        The runs, in the order of the cases.

    Raises:
        CoherenceError: There is no such kernel, it does not suit the mesh, or a setting of a chip
            is out of its range.
        NocError: A mesh does not take the protocol's messages.
        CoherenceRunError: A run gives no result.
    """
    made = [case.core for case in cases]

    def run_of(index: int, results: list[dict[str, Any]]) -> CoherenceRun:
        return CoherenceRun.of_core(cases[index], made[index].described(), results[0])

    return measure_all([[one] for one in made], run_of, threads=threads, done=done)
