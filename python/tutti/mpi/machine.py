"""The machine that this process runs on, in words: for results, which outlive it."""

from __future__ import annotations

import os
import platform
from pathlib import Path

__all__ = ["cores_at_hand", "this_machine"]


def this_machine() -> str:
    """Its name, how many cores are at hand, of which processor, and its system."""
    system = f"{platform.system()} {platform.release()}"
    return f"{platform.node()}: {cores_at_hand()} cores of {_processor()}, {system}"


def cores_at_hand() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processor() -> str:
    try:
        said = Path("/proc/cpuinfo").read_text("utf-8", errors="replace").splitlines()
    except OSError:
        said = []
    named = (line.partition(":")[2] for line in said if line.startswith("model name"))
    found = " ".join(next(named, "").split())
    return found or platform.processor() or platform.machine()
