"""Measures how fast each long command exits after Ctrl-C.

Each command runs in a separate session with a terminal as standard error. SIGINT goes to its
process group at stratified random moments, as a terminal sends it. A line states the slowest exit
of a command and the phase of its progress bar at that moment. It lists violations: an exit code
other than 130, a traceback, a process that is left, or a stored file that cannot be read. Moments
count from the time that tutti has loaded, since Python handles Ctrl-C until then. An interrupt that
arrives after the command has finished does not count.

`python benchmarks/interrupt.py --samples 6` measures all commands; `--only noc` those that contain
`noc`. Times depend on other load. The benchmark has no pass criterion.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
from sweep import SWEEP

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
LOADED = "loaded"
START = (
    sys.executable,
    "-c",
    f"from tutti.cli import main; open({LOADED!r}, 'w').close(); main()",
)
HORIZON = 8.0
"""Seconds: later moments of a command are not sampled."""
AIM = 2.0
VARIABLES = {
    "TERM": "xterm-256color",
    "COLUMNS": "100",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}
LONGEST_EXIT = 20.0
INTERRUPTED = 130
BAR = re.compile(r"([^\r\n\x1b━╸╺]+?) +[━╸╺]")
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

MESH = """
cycle = "1 ns"
flit = "16 B"
[topology]
build = "mesh:{side}x{side}"
links = [{{ rate = "16 GB/s", latency = "1 ns" }}]
routing = "dimension_order"
[traffic]
pattern = "uniform"
rate = 0.1
[measure]
measure = {cycles}
"""
EXPERIMENT = """
platform = "cray_xc30"
collective = "all_reduce"
algorithms = ["ring"]
ranks = 8
sizes = "8 B"
output = "out"
"""


@dataclass(frozen=True)
class Case:
    """A long command, with the files that it requires in its folder."""

    name: str
    command: str
    files: dict[str, str] = field(default_factory=dict)
    horizon: float = HORIZON
    code: int = INTERRUPTED
    """Another exit code that is accepted."""


@dataclass(frozen=True)
class Exit:
    """How a command ended after SIGINT."""

    moment: float
    phase: str
    seconds: float
    lasted: float
    problems: tuple[str, ...]
    finished: bool


def _sweep(ranks: int, points: int) -> str:
    values = ", ".join(f'"{1_000 + n} ns"' for n in range(points))
    return SWEEP.format(folder=".", ranks=ranks, values=values)


def _example(name: str, file: str) -> str:
    (path,) = EXAMPLES.glob(f"{name}_*/{file}")
    return str(path)


def _cases() -> list[Case]:
    flits = {"noc.toml": MESH.format(side=8, cycles=100_000_000)}
    wide = {"noc.toml": MESH.format(side=96, cycles=1_000_000)}
    train, smart = _example("26", "training.toml"), _example("16", "mixed.toml")
    step, best = _example("21", "training.toml"), _example("06", "experiment.toml")
    choose, osu = _example("20", "training.toml"), _example("22", "cluster.csv")
    xc30 = "--platform cray_xc30"
    reports = "--ranks 2:64 -b 8 -e 1MiB -f 2"
    app = _example("18", "app.py")
    machine = {"e.toml": EXPERIMENT}
    return [
        Case("compare, layout", f"compare {xc30} --ranks 4096:65536 -b 8 -e 64KiB"),
        Case("compare, measurements", f"compare {xc30} -a ring --ranks 4:2048 -n 1000"),
        Case("compare, report", f"compare {xc30} {reports} --report"),
        Case("compare, flows", "compare --platform dgx_h100_cluster --ranks 256 -b 1MiB -e 1GiB"),
        Case("run, verification", "run direct --ranks 4096 --size 8"),
        Case("run, simulation", "run ring --ranks 4096 --size 64MiB --no-verify"),
        Case("run, report", "run ring --ranks 512 --size 1MiB"),
        Case("search", "search e.toml --ranks 720720 --size 8", machine),
        Case("search, sizes", "search e.toml --ranks 4096 -b 8 -e 16MiB", machine),
        Case("search, exhaustive", "search e.toml --ranks 256 --size 8 --exhaustive", machine),
        Case("search, order", f"search {best} --ranks 64 -b 8 -e 1MiB"),
        Case("schedule verify", "schedule verify ring --ranks 8192"),
        Case("schedule show", "schedule show direct --ranks 2048 -c all_to_all"),
        Case("schedule draw", "schedule draw ring --ranks 12"),
        Case("sweep", "sweep sweep.toml", {"sweep.toml": _sweep(512, 3_000)}),
        Case("sweep, one point", "sweep sweep.toml", {"sweep.toml": _sweep(8192, 2)}),
        Case("noc run", "noc run noc.toml", flits),
        Case("noc run, layout", "noc run noc.toml", wide),
        Case("noc run, report", f"noc run {_example('08', 'noc.toml')} -o out"),
        Case("noc sweep", "noc sweep noc.toml", flits),
        Case("noc run, SMART", f"noc run {smart} --set measure.measure=100000000"),
        Case("noc sweep, SMART", f"noc sweep {smart} --set measure.measure=1000000"),
        Case("noc watch", f"noc watch {smart} --cycles 1000"),
        Case("coherence run", "coherence run -k radix_like -o out"),
        Case("bypass map", "bypass map double_binary_tree:nccl --mesh 12x12"),
        Case("bypass search", "bypass search double_binary_tree:nccl --trials 100000"),
        Case("bypass run", "bypass run ring:12x12 --mesh 12x12 -s 64KiB -s 64MiB"),
        Case("bypass endpoints", "bypass endpoints -s 16MiB"),
        Case("train run", f"train run {step} --set iterations=1000"),
        Case("train run, report", f"train run {_example('12', 'training.toml')} -o out"),
        Case("train search", f"train search {choose} -o out"),
        Case("train disturb", f"train disturb {train} --slow 0.1:1.5 --draws 1000 -o out"),
        Case("train overlap", "train overlap e.toml --ranks 1024 -a ring", machine),
        Case("train plan", "train plan llama3_405b -p dgx_h100_cluster -g 1024 "
             "--global-batch 1024"),
        Case("moe", "moe deepseek_v3 --platform h800_deepep --ranks 256 --simulate-up-to 256"),
        Case("calibrate", f"calibrate {osu} --joint"),
        Case("calibrate, live", "calibrate --live --samples 50"),
        Case("tune, model", f"tune --ranks 64,512,1024 {xc30} -o out"),
        Case("tune, measurement", "tune --ranks 2 --by measurement -o out"),
        Case("advise", f"advise {osu} --ranks 64,256 -o out"),
        Case("paper ace", "paper ace -o out"),
        Case("paper aries", "paper aries -o out"),
        Case("paper smart", "paper smart -o out"),
        Case("paper recursive-multiplying", "paper recursive-multiplying -o out"),
        Case("paper live", "paper recursive-multiplying-live -o out"),
        Case("convert", "convert direct out.schedule --ranks 2048"),
        Case("convert, GOAL", "convert ring out.goal --ranks 1024 --size 1MiB"),
        Case("convert, read", "convert in.schedule out.msccl.xml"),
        Case("trace run", "trace run in.goal -p loggp_cluster"),
        Case("nccl doctor", f"nccl doctor {_example('23', 'default.log')}"),
        Case("mpi plan", "mpi plan --ranks 2-64 --for-every mpich-not-slower --out plan.tutti"),
        Case("mpi bench", "mpi bench all_reduce --ranks 4 -b 8 -e 1MiB"),
        Case("mpi exec", f"mpi exec --plan in.tutti -- mpiexec -n 2 {sys.executable} app.py",
             {"app.py": Path(app).read_text("utf-8").replace("range(10)", "range(10_000_000)")},
             code=1),
        Case("explore", "explore --no-browser", horizon=5.0),
    ]  # fmt: skip


INPUTS = {
    "in.schedule": "convert direct in.schedule --ranks 512",
    "in.goal": "convert ring in.goal --ranks 512 --size 1MiB",
    "in.tutti": "mpi plan --ranks 2 all_reduce=ring --out in.tutti",
}
"""Input files that are generated once, and the commands that write them."""


def _generated(folder: Path) -> None:
    for command in INPUTS.values():
        subprocess.run([*START, *command.split()], cwd=folder, check=True, capture_output=True)
    (folder / LOADED).unlink()


def _session_members(leader: int) -> list[int]:
    """Returns the running processes of a session; a zombie does not count."""
    members = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = stat.read_text("utf-8").rpartition(")")[2].split()[:4]
        except OSError:  # it has exited
            continue
        if int(session) == leader and state != "Z":
            members.append(int(stat.parent.name))
    return members


class Running:
    """A command in a separate session, whose standard error is a terminal."""

    def __init__(self, command: str, folder: Path) -> None:
        self._terminal, theirs = pty.openpty()
        self._received = bytearray()
        self._folder = folder
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.process = subprocess.Popen(
            [*START, *command.split()],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=theirs,
            start_new_session=True,
            env=os.environ | VARIABLES | {"PATH": path},
        )
        os.close(theirs)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._terminal, 65_536)
            except OSError:  # no process has the terminal open
                return
            self._received += data

    @property
    def text(self) -> str:
        """Returns what the command has printed to the terminal."""
        return CONTROL.sub("", self._received.decode("utf-8", "replace"))

    @property
    def phase(self) -> str:
        """Returns the name of the last progress bar."""
        bars = BAR.findall(self.text)
        return bars[-1].strip() if bars else ""

    def loaded(self) -> float:
        """Waits until tutti has loaded, in 0.3 s; returns that time."""
        while not (self._folder / LOADED).exists() and self.process.poll() is None:
            time.sleep(0.005)
        return time.monotonic()

    def interrupt(self) -> float:
        """Sends SIGINT; returns the seconds until all processes have exited."""
        started = time.monotonic()
        os.killpg(self.process.pid, signal.SIGINT)
        try:
            self.process.wait(LONGEST_EXIT)
        except subprocess.TimeoutExpired:
            return LONGEST_EXIT
        while _session_members(self.process.pid) and time.monotonic() < started + LONGEST_EXIT:
            time.sleep(0.01)
        return time.monotonic() - started

    def close(self) -> list[int]:
        """Kills what is left of the session, and returns it."""
        left = _session_members(self.process.pid)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join(1.0)
        os.close(self._terminal)
        return left


def _unreadable(folder: Path) -> list[str]:
    """Returns a problem for each stored file that cannot be read."""
    problems = []
    readers = {".parquet": pl.read_parquet, ".json": lambda file: json.loads(file.read_bytes())}
    for file in folder.rglob("*"):
        reader = readers.get(file.suffix)
        try:
            if reader is not None:
                reader(file)
            elif file.suffix == ".html" and "</html>" not in file.read_text("utf-8")[-200:]:
                problems.append(f"{file.name} is truncated")
        except Exception as error:  # noqa: BLE001 - whatever a reader raises
            problems.append(f"{file.name}: {error}")
    return problems


def interrupted(case: Case, moment: float, generated: Path) -> Exit:
    """Runs a command and interrupts it after `moment` seconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in generated.iterdir():
            (folder / file.name).symlink_to(file)
        for file_name, text in case.files.items():
            (folder / file_name).write_text(text, "utf-8")
        running = Running(case.command, folder)
        started = running.loaded()
        try:
            running.process.wait(moment)
            finished, seconds, phase = True, 0.0, ""
            lasted = time.monotonic() - started
        except subprocess.TimeoutExpired:
            finished, phase, lasted = False, running.phase, moment
            seconds = running.interrupt()
        left, code = running.close(), running.process.returncode
        problems = [f"left {len(left)} processes"] if left else []
        if code not in (0, INTERRUPTED, case.code):  # 0: it finished before it handled the signal
            problems.append(f"exit code {code}")
            print(running.text[-2000:], file=sys.stderr)
        if "Traceback" in running.text or "Aborted" in running.text:
            problems.append("traceback")
            print(running.text[-4000:], file=sys.stderr)
        problems += _unreadable(folder)
    return Exit(moment, phase, seconds, lasted, tuple(problems), finished)


def measured(case: Case, samples: int, seed: int, generated: Path) -> dict[str, object]:
    """Returns the row of a case: its slowest exit and its problems."""
    moments = random.Random(f"{seed} {case.name}")
    first = interrupted(case, case.horizon, generated)
    end = case.horizon
    if first.finished:
        end = first.lasted
    exits = [] if first.finished else [first]
    for index in range(samples - len(exits)):
        moment = end * (index + moments.random()) / samples
        exits.append(interrupted(case, moment, generated))
    counted = [each for each in exits if not each.finished]
    slowest = max(counted, key=lambda each: each.seconds, default=first)
    problems = sorted({problem for each in (first, *exits) for problem in each.problems})
    return {
        "case": case.name,
        "interrupts": len(counted),
        "slowest_s": round(slowest.seconds, 2),
        "at_s": round(slowest.moment, 1),
        "phase": slowest.phase,
        "phases": ", ".join(sorted({each.phase for each in counted if each.phase})),
        "problems": "; ".join(problems),
    }


def main() -> None:
    """Prints a row per case, and writes them as CSV on request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=6, help="interrupts of each command")
    parser.add_argument("--seed", type=int, default=1, help="seed of the moments")
    parser.add_argument("--only", default="", help="only cases that contain this text")
    parser.add_argument("--save", type=Path, help="CSV file")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        generated = Path(name)
        _generated(generated)
        for case in _cases():
            if options.only in case.name:
                rows.append(measured(case, options.samples, options.seed, generated))
                print("  ".join(str(value) for value in rows[-1].values()), flush=True)
                if options.save:
                    pl.DataFrame(rows).write_csv(options.save)
    late = [row["case"] for row in rows if float(str(row["slowest_s"])) > AIM]
    print(f"later than {AIM:g} s: {', '.join(map(str, late)) or 'none'}")


if __name__ == "__main__":
    main()
