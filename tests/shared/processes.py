"""Waits for processes that a test has started."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable


def processor_seconds(process: int) -> float:
    """Returns the processor time of a process and its threads, or 0 if it does not exist."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_until(process: subprocess.Popen[str], condition: Callable[[], bool]) -> None:
    """Waits for a condition, as long as the process runs.

    The time limit of the test is the only one: on a busy machine, others would be too short.
    """
    while not condition():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


def wait_until_computed(process: subprocess.Popen[str], seconds: float) -> None:
    """Waits until the process has computed for some time from now on.

    A pause would not do: a busy machine might not schedule the process meanwhile.
    """
    end = processor_seconds(process.pid) + seconds
    wait_until(process, lambda: processor_seconds(process.pid) >= end)
