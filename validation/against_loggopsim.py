"""Compares traces of schedules with LogGOPSim.

`loggopsim/traces.csv` has the finishing times of LogGOPSim. `LOGGOPSIM=<folder with the programs
LogGOPSim and txt2bin> python validation/against_loggopsim.py` measures them again and writes the
file.
"""

from __future__ import annotations

import csv
import os
import re
import subprocess
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tutti
from tutti import platforms
from tutti.base.units import Size
from tutti.collectives.lowering import lower
from tutti.formats.formats import Options
from tutti.formats.goal.text import write_goal, write_goal_binary

if TYPE_CHECKING:
    from tutti.workloads.operations import Trace

FOLDER = Path(__file__).parent / "loggopsim"
STORED = FOLDER / "traces.csv"
VARIABLE = "LOGGOPSIM"
_FINISH = re.compile(r"Maximum finishing time at host \d+: (\d+)")
_ALWAYS_EAGER = "2000000000"


@dataclass(frozen=True)
class Row:
    """A schedule and LogGOPSim's finishing time of its trace."""

    algorithm: str
    collective: str
    ranks: int
    size_bytes: int
    finish_ns: int

    def trace(self) -> Trace:
        """Returns the trace of the schedule."""
        schedule = tutti.schedule(self.algorithm, collective=self.collective, ranks=self.ranks)
        return lower(schedule, Size.of_any(f"{self.size_bytes} B"))


def stored() -> list[Row]:
    with STORED.open(encoding="utf-8", newline="") as file:
        return [
            Row(
                each["algorithm"],
                each["collective"],
                int(each["ranks"]),
                int(each["size_bytes"]),
                int(each["finish_ns"]),
            )
            for each in csv.DictReader(file)
        ]


def platform() -> tutti.Platform:
    """Returns LogGOPSim's default parameters; see case.toml."""
    return platforms.platform("loggp_cluster")


def programs() -> Path | None:
    """Returns the folder with LogGOPSim's programs, if the variable names one."""
    folder = os.environ.get(VARIABLE)
    return Path(folder) if folder else None


def measured(trace: Trace, folder: Path) -> int:
    """Returns the finishing time of LogGOPSim in ns; its txt2bin must write our binary form."""
    with tempfile.TemporaryDirectory() as place:
        text, binary, theirs = (Path(place, name) for name in ("t.goal", "t.bin", "theirs.bin"))
        write_goal(trace, text, Options())
        write_goal_binary(trace, binary, Options())
        subprocess.run([folder / "txt2bin", "-i", text, "-o", theirs], check=True)
        assert binary.read_bytes() == theirs.read_bytes()
        command = [str(folder / "LogGOPSim"), "-b", "-S", _ALWAYS_EAGER, "-f", str(binary)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = _FINISH.search(done.stdout)
    assert found is not None, done.stdout
    return int(found[1])


def ours(row: Row) -> int:
    """Returns the completion time of the trace in ps."""
    return tutti.simulate_trace(row.trace(), platform()).completion_ps


def about() -> dict[str, object]:
    return tomllib.loads((FOLDER / "case.toml").read_text("utf-8"))


def main() -> None:
    """Measures all rows again and writes the file."""
    folder = programs()
    if folder is None:
        message = f"set {VARIABLE} to the folder with the programs LogGOPSim and txt2bin"
        raise SystemExit(message)
    lines = ["algorithm,collective,ranks,size_bytes,finish_ns"]
    for row in stored():
        finish = measured(row.trace(), folder)
        lines.append(f"{row.algorithm},{row.collective},{row.ranks},{row.size_bytes},{finish}")
    STORED.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
