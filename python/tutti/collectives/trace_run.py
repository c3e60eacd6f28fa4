"""Simulates a trace on a platform."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti import _core
from tutti.base.errors import ConfigError, TuttiError
from tutti.workloads.errors import WorkloadError
from tutti.workloads.operations import Kind, StoredRanks

if TYPE_CHECKING:
    from tutti.platforms.machine import Platform
    from tutti.workloads.operations import Trace


@dataclass(frozen=True, slots=True)
class TraceRun:
    """A simulated trace.

    Attributes:
        finish_ps: When the last operation of each rank completes, in ps.
        busy_ps: Time that operations occupy the streams of each rank, summed, in ps.
        messages: The number of messages.
        message_bytes: Bytes in them.
    """

    finish_ps: tuple[int, ...]
    busy_ps: tuple[int, ...]
    messages: int
    message_bytes: int

    @property
    def completion_ps(self) -> int:
        """When the last operation of all ranks completes, in ps."""
        return max(self.finish_ps, default=0)


def simulate_trace(trace: Trace, platform: Platform, *, seed: int = 0) -> TraceRun:
    """Runs a trace on a platform with a cost model, flows or packets.

    A send and a receive occupy their stream for the overhead of the model; a posted receive does
    not while it waits. The streams of a rank share its port. Messages match by source,
    destination and tag, in order.

    Args:
        trace: The trace, whose collectives have messages or times; see
            :func:`tutti.collectives.lowering.expand` and
            :func:`tutti.collectives.lowering.timed`.
        platform: The platform.
        seed: The seed of routing that draws random numbers.

    Raises:
        ConfigError: The platform is not a `Platform`, or simulates flits.
        WorkloadError: The trace is invalid or has collectives.
        DeadlockError: Ranks wait for messages that never arrive; the message names them.
        SimulationError: The run gives no result for another reason.
    """
    from tutti.collectives.case import check_platform

    check_platform(platform)
    if platform.effective_contention.kind in {"flit", "mesh"}:
        hint = "use the platform's packets or flows"
        raise ConfigError("traces do not run on flit networks", kind="invalid", hint=hint)
    stored = isinstance(trace.ranks, StoredRanks)  # without collectives
    if not stored and any((of.kinds == Kind.COLLECTIVE).any() for of in trace.ranks):
        hint = "replace them first: tutti.collectives.lowering.expand(trace, algorithm)"
        message = f"trace {trace.name} has collectives"
        raise WorkloadError(message, kind="trace_collective", hint=hint)
    try:
        finish, busy, messages, message_bytes = _core.simulate_trace(
            trace.core, platform.core, seed=seed
        )
    except TuttiError as error:
        from tutti.workloads.trace_errors import explained

        raise explained(error, trace) from None
    return TraceRun(tuple(finish), tuple(busy), messages, message_bytes)
