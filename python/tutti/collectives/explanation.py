"""Explains why a schedule is faster than another, from the parts of their closed forms.

The critical path of a schedule is a list of stages, whose times the network model determines. Three
counts summarise it: the stages (each waits for a message), the messages that a rank sends
sequentially, and their bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti import _core
from tutti.schedules.errors import AlgorithmError

if TYPE_CHECKING:
    from tutti.schedules.ir import Schedule

_MOST_RANKS = 4096
"""Most ranks of a schedule whose steps are counted rank by rank."""


@dataclass(frozen=True)
class Parts:
    """The demands of a schedule on the network: on its critical path, or per rank on average.

    Attributes:
        stages: Stages of the critical path that wait for messages; None without a closed form.
        steps: The largest number of steps of a rank; None if not counted.
        messages: Messages that a rank sends sequentially.
        bytes: Bytes in these messages.
    """

    stages: int | None
    steps: int | None
    messages: float
    bytes: float


def parts(
    laid_out: Schedule, size: int, *, measured: tuple[int, int] | None = None
) -> Parts | None:
    """Returns the parts of a schedule's closed form, or else the measured averages.

    Args:
        laid_out: The schedule.
        size: The payload, in bytes.
        measured: All messages of a run, and all bytes in them.
    """
    ranks = laid_out.ranks
    steps = None
    if ranks <= _MOST_RANKS:
        steps = max(laid_out.steps(rank) for rank in range(ranks))
    stages = _critical_path(laid_out)
    if stages is not None:
        return Parts(
            stages=sum(1 for stage in stages if stage.messages),
            steps=steps,
            messages=sum(stage.messages for stage in stages),
            bytes=size * sum(stage.messages * stage.chunks / stage.of for stage in stages),
        )
    if measured is not None:
        return Parts(None, steps, measured[0] / ranks, measured[1] / ranks)
    return None


def _critical_path(laid_out: Schedule) -> list[_core.Stage] | None:
    if laid_out.core.notation is None:  # built by hand, or for a graph
        return None
    identity = laid_out.name, laid_out.collective, laid_out.ranks
    try:
        return _core.critical_path(*identity, root=laid_out.root or 0)
    except AlgorithmError:  # built by hand
        return None


def why(
    faster: Parts | None, slower: Parts | None, *, gap_ps: float = 0, ps_per_byte: float = 1
) -> str:
    """Returns a short text on what the faster schedule saves; empty if nothing is saved.

    Args:
        faster: The parts of the faster schedule.
        slower: The parts of the slower schedule.
        gap_ps: The difference in time; bytes count as a reason only if they explain a fifth of it.
        ps_per_byte: The time per byte of the model.
    """
    if faster is None or slower is None:
        return ""
    fewer, more = faster.stages, slower.stages
    if fewer is None or more is None:
        fewer, more = faster.steps, slower.steps
    reasons = []
    if fewer is not None and more is not None and fewer < more:
        reasons.append(f"{fewer} step{'s' * (fewer != 1)}, not {more}")
    saved = slower.bytes - faster.bytes
    if saved > 0 and saved * ps_per_byte >= gap_ps / 5:
        reasons.append(f"{_size(faster.bytes)} per rank, not {_size(slower.bytes)}")
    if not reasons and faster.messages < slower.messages:
        reasons.append(f"{faster.messages:.3g} messages, not {slower.messages:.3g}")
    return "; ".join(reasons)


def _size(size: float) -> str:
    """Returns a size rounded to three digits, in a binary unit."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 999.5 * (1 << power) / 1024:
            return f"{size / (1 << power):.3g} {unit}"
    return f"{size:.3g} B"
