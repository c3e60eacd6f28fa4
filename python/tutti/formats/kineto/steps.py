"""The time of a training step in a profile of PyTorch, and that of its kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tutti.formats.kineto.profile import load_profile
from tutti.workloads.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["ProfiledStep", "read_step"]


class ProfiledStep(NamedTuple):
    """Times of a step in seconds.

    Attributes:
        seconds: The mean time of a step, from the annotations `ProfilerStep#N`.
        kernels: The mean time of a step in which the GPU runs kernels that do not communicate.
        steps: The number of steps.
    """

    seconds: float
    kernels: float
    steps: int


def read_step(path: Path) -> ProfiledStep:
    """Reads the profile of a rank.

    Raises:
        ConfigError: The file cannot be read, is truncated or not JSON.
        TraceError: It is not a profile of PyTorch, or has no annotation of a step.
    """
    profile = load_profile(path)
    if not profile.steps:
        message = f"{path}: the profile has no annotation `ProfilerStep#N`: expected steps"
        hint = "call `step()` of the profiler after each step, or state the time in a CSV file"
        raise TraceError(message, kind="not_a_profile", hint=hint)
    count = len(profile.steps)
    start, end = min(one[0] for one in profile.steps), max(one[1] for one in profile.steps)
    busy = _union((one.start, one.end) for one in profile.activities if not one.communicates)
    return ProfiledStep((end - start) / count * 1e-9, busy / count * 1e-9, count)


def _union(intervals: Iterable[tuple[int, int]]) -> int:
    """Returns the length of the union of intervals."""
    total, reached = 0, -(1 << 62)
    for start, end in sorted(intervals):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total
