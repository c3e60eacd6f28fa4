"""Measures GOAL and Chakra traces as complete processes, and LogGOPSim if it is installed.

LogGOPSim is compared if `LOGGOPSIM` names the folder with the programs LogGOPSim and txt2bin.
Inputs are those of `goal_traces.py` and `chakra_traces.py`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import chakra_traces
from goal_traces import write

RUNS = 3
INPUTS = {
    "dissemination of 4,096 ranks": ("dissemination", 4096),
    "dissemination of 65,536 ranks": ("dissemination", 65536),
    "ring of 512 ranks": ("ring", 512),
}
CHAKRA_NODES = 300_000
AIMS = {"dissemination of 65,536 ranks, run": "1.3 s, 120 MB"}


def traces() -> list[tuple[Any, ...]]:
    """Returns a row per run: bench, case, aim, run, CPU seconds, rate, unit, peak MiB."""
    peer = os.environ.get("LOGGOPSIM")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (pattern, ranks) in INPUTS.items():
            text, binary = (Path(folder, f"trace.{end}") for end in ("goal", "bin"))
            write(pattern, ranks, text)
            cases = {
                f"{name}, text to binary": _tutti("convert", text, binary),
                f"{name}, run": _tutti("trace", "run", binary),
                f"{name}, run of text": _tutti("trace", "run", text),
            }
            if peer:
                theirs = Path(folder, "theirs.bin")
                simulate = [f"{peer}/LogGOPSim", "-b", "-S", "2000000000", "-f", str(theirs)]
                cases[f"{name}, txt2bin"] = [f"{peer}/txt2bin", "-i", str(text), "-o", str(theirs)]
                cases[f"{name}, LogGOPSim"] = simulate
            for case, command in cases.items():
                rows += _runs(case, command)
        nodes = Path(folder, "trace.0.et")
        chakra_traces.write(CHAKRA_NODES, nodes)
        run = _tutti("trace", "run", nodes, "--algorithm", "ring")
        rows += _runs(f"Chakra, {CHAKRA_NODES:,} nodes, run", run)
    return rows


def _runs(case: str, command: list[str]) -> list[tuple[Any, ...]]:
    return [("traces", case, AIMS.get(case), run, *used(command)) for run in range(RUNS)]


def _tutti(*words: object) -> list[str]:
    return [str(Path(sys.executable).with_name("tutti")), *map(str, words)]


def used(command: list[str]) -> tuple[float, None, None, float]:
    """Returns the CPU seconds and the peak MiB of a process, with no rate."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {child.returncode}")
    return usage.ru_utime + usage.ru_stime, None, None, usage.ru_maxrss / 1024
