"""Describes the machine that this process runs on, for stored results."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def this_machine() -> str:
    """Returns its name, usable cores, processor and operating system."""
    system = f"{platform.system()} {platform.release()}"
    return f"{platform.node()}: {cores_at_hand()} cores of {_processor()}, {system}"


def cores_at_hand() -> int:
    """Returns the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2] for line in lines if line.startswith("model name"))
    found = " ".join(next(named, "").split())
    return found or platform.processor() or platform.machine()
