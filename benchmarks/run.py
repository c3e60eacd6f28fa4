"""What `make bench` runs: the engine, the verifier and the start-up, as one table.

`--save FOLDER` also writes every single run as CSV, with a note of the machine and the commit.
Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
STARTS = {
    "import tutti": ((sys.executable, "-c", "import tutti"), "0.5 s"),
    "tutti --help": ((str(Path(sys.executable).with_name("tutti")), "--help"), "0.7 s"),
}
RUNS_OF_A_START = 11
COLUMNS = ("case", "aim", "run", "messages", "seconds", "peak_mib")


def engine_and_verifier(parts: list[str]) -> pl.DataFrame:
    """Every run of the compiled cases, or of those whose name contains one of the parts."""
    command = ["cargo", "bench", "--quiet", "--package", "tutti-core", "--bench", "spine", "--"]
    done = subprocess.run([*command, *parts], cwd=ROOT, check=True, capture_output=True, text=True)
    rows = [line.split("\t") for line in done.stdout.splitlines() if line.count("\t") == 5]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")
    numbers = {"run": pl.Int64, "messages": pl.Int64, "seconds": pl.Float64, "peak_mib": pl.Float64}
    return frame.cast(numbers)  # type: ignore[arg-type]


def start(name: str) -> pl.DataFrame:
    """How long the interpreter takes to get there, whole process, the first run left out."""
    command, aim = STARTS[name]
    rows = []
    for run in range(RUNS_OF_A_START + 1):
        begin = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, _, used = os.wait4(child.pid, 0)
        child.returncode = 0  # reaped above, which also gives this child's own peak memory
        seconds = time.perf_counter() - begin
        rows.append((name, aim, run, None, seconds, used.ru_maxrss / 1024))
    return pl.DataFrame(rows[1:], schema=list(COLUMNS), orient="row")


def shown(frame: pl.DataFrame) -> Table:
    """Median, fastest and slowest run of each case."""
    table = Table(title="one thread; median (fastest to slowest)", title_justify="left")
    table.add_column("case", overflow="fold")
    for name in ("seconds", "M messages/s", "peak MiB", "aim"):
        table.add_column(name, justify="right")
    for (case, aim), runs in frame.group_by("case", "aim", maintain_order=True):
        seconds = runs["seconds"]
        median = float(seconds.median())  # type: ignore[arg-type]
        spread = f"{median:.4g} ({seconds.min():.4g} to {seconds.max():.4g})"
        messages = runs["messages"][0]
        speed = "" if messages is None else f"{messages / median / 1e6:.1f}"
        table.add_row(str(case), spread, speed, f"{runs['peak_mib'].max():.0f}", str(aim))
    return table


def machine() -> str:
    """What the figures depend on."""
    info = Path("/proc/cpuinfo")
    models = (
        [x for x in info.read_text().splitlines() if "model name" in x] if info.exists() else []
    )
    processor = models[0].split(":", 1)[1].strip() if models else platform.processor()
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    commit = subprocess.run(git, check=False, capture_output=True, text=True).stdout.strip()
    compiler = subprocess.run(["rustc", "--version"], check=True, capture_output=True, text=True)
    return (
        f"{processor}, {os.cpu_count()} cores; load {load}; {platform.system()} "
        f"{platform.machine()}; {compiler.stdout.strip()}; Python {platform.python_version()}; "
        f"commit {commit or 'unknown'}"
    )


def main() -> None:
    """Runs what is asked for and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help="parts of names of engine and verifier cases")
    parser.add_argument("--save", type=Path, help="folder for the raw figures")
    asked = parser.parse_args()
    console = Console()
    where = machine()
    console.print(where, markup=False)
    with console.status("measuring, which takes a few minutes"):
        frames = [engine_and_verifier(asked.parts)]
        if not asked.parts:
            frames += [start(name).cast(frames[0].schema) for name in STARTS]  # type: ignore[arg-type]
    frame = pl.concat(frames)
    console.print(shown(frame))
    if asked.save:
        asked.save.mkdir(parents=True, exist_ok=True)
        frame.write_csv(asked.save / "raw.csv")
        (asked.save / "README.md").write_text(f"# {asked.save.name}\n\n{where}\n", "utf-8")
        console.print(f"wrote {asked.save / 'raw.csv'}", markup=False)


if __name__ == "__main__":
    main()
