"""Runs the benchmarks of `make bench`: engines, the verifier, the start-up of commands, traces.

The table has a line per case. Long names are shortened in the middle, and aims need 110 columns;
`raw.csv` has both. A start-up is the CPU time of the process, with the number of modules that it
loads; the part `start` selects start-ups only. `--save FOLDER` also writes all runs as CSV, with
the machine and the commit.
The benchmarks have no pass criterion.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[1]
MAIN = "from tutti.cli.app import main; main()"
PAIR = """num_ranks 2

rank 0 {
l1: send 1024b to 1 tag 0
}

rank 1 {
l1: recv 1024b from 0 tag 0
}
"""
MESH = "noc run --mesh 4x4 --rate 0.1 --set measure.measure=500 --set measure.warmup=100"
SMALL = "-p loggp_cluster --ranks 64"
STARTS = {
    "import tutti": ("", "0.5 s"),
    "tutti --help": ("--help", "0.25 s"),
    "tutti convert": ("convert ring.xml ring.schedule", "0.25 s"),
    "tutti schedule show": ("schedule show ring --ranks 4", "0.25 s"),
    "tutti nccl explain": ("nccl explain --nodes 2 --size 64MiB", "0.25 s"),
    "tutti trace run": ("trace run pair.goal", "0.25 s"),
    "tutti noc run": (MESH, "0.25 s"),
    "tutti noc run, no files": (f"{MESH} --no-files", "0.25 s"),
    "tutti compare": (f"compare {SMALL} -b 1MiB -e 1MiB --no-report", "0.5 s"),
    "tutti compare, report": (f"compare {SMALL} -b 1MiB -e 1MiB --report", "0.8 s"),
    "tutti run": (f"run ring {SMALL} --size 1MiB", "1 s"),
    "tutti train run": (
        f"train run {ROOT}/examples/12_resnet50_on_64_npus/training.toml --out train",
        "1.2 s",
    ),
}
"""Commands, without the program, and aims for their CPU time; "" imports the package."""
RUNS_OF_A_START = 11
COLUMNS: dict[str, type[pl.DataType]] = {
    "bench": pl.String,
    "case": pl.String,
    "aim": pl.String,
    "run": pl.Int64,
    "seconds": pl.Float64,
    "rate": pl.Float64,
    "unit": pl.String,
    "peak_mib": pl.Float64,
}
"""``rate`` is in ``unit``; columns that a benchmark does not measure are null."""
WITH_AIMS = 110
"""Minimum columns of a terminal to show aims."""


def _spine(case: str, aim: str, *cells: str) -> dict[str, Any]:
    run, done, seconds, peak = cells
    rate = float(done) / float(seconds) / 1e6
    name, _, counted = case.partition(" (")
    return {"case": name, "aim": aim, "run": run, "seconds": seconds, "rate": rate,
            "unit": "M hops/s" if counted else "M/s", "peak_mib": peak}  # fmt: skip


def _flit(case: str, run: str, _cycles: str, hops: str) -> dict[str, Any]:
    return {"case": case, "run": run, "rate": hops, "unit": "M hops/s"}


def _coherence(case: str, run: str, *cells: str) -> dict[str, Any]:
    _cycles, rate, _mips, ms, _digest = cells
    return {"case": case, "run": run, "rate": float(rate) / 1e3, "unit": "k cycles/s",
            "seconds": float(ms) / 1e3}  # fmt: skip


def _training(case: str, run: str, seconds: str, _: str, rate: str) -> dict[str, Any]:
    return {"case": case, "run": run, "seconds": seconds, "rate": rate, "unit": "M pkts/s"}


BENCHES: dict[str, Callable[..., dict[str, Any]]] = {
    "spine": _spine,
    "flit": _flit,
    "coherence": _coherence,
    "training": _training,
}
"""The compiled benchmarks, and functions that convert their lines."""


def compiled(bench: str, parts: list[str]) -> pl.DataFrame:
    """Returns all runs of the cases of a benchmark whose names contain one of the parts."""
    command = ["cargo", "bench", "--quiet", "--bench", bench, "--"]
    done = subprocess.run([*command, *parts], cwd=ROOT, check=True, capture_output=True, text=True)
    return rows_of(bench, done.stdout)


def rows_of(bench: str, written: str) -> pl.DataFrame:
    """Parses the tab-separated lines of a benchmark."""
    cells = [line.split("\t") for line in written.splitlines() if "\t" in line]
    rows = [{"bench": bench} | BENCHES[bench](*row) for row in cells]
    found = [{name: row.get(name) for name in COLUMNS} for row in rows]
    texts = {
        name: [None if row[name] is None else str(row[name]) for row in found] for name in COLUMNS
    }
    return pl.DataFrame(texts, schema=dict.fromkeys(COLUMNS, pl.String)).cast(COLUMNS)  # type: ignore[arg-type]


def start(name: str, folder: Path) -> pl.DataFrame:
    """Measures CPU time and loaded modules of a complete process, without the first run."""
    line, aim = STARTS[name]
    code = MAIN if line else "import tutti"
    command = [sys.executable, "-c", code, *line.split()]
    counted = f"import atexit, sys; atexit.register(lambda: print(len(sys.modules))); {code}"
    done = subprocess.run([sys.executable, "-c", counted, *line.split()], cwd=folder, check=True,
                          capture_output=True, text=True)  # fmt: skip
    modules = float(done.stdout.split()[-1])
    rows = []
    for run in range(RUNS_OF_A_START + 1):
        child = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        _, _, used = os.wait4(child.pid, 0)
        child.returncode = 0  # Reaped by wait4, which also returns the use of this child.
        seconds, peak = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
        rows.append(("start", name, aim, run, seconds, modules, "modules", peak))
    return pl.DataFrame(rows[1:], schema=COLUMNS, orient="row")


def starts() -> list[pl.DataFrame]:
    """Measures the start-up of commands on small inputs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pair.goal").write_text(PAIR, encoding="utf-8")
        ring = "convert ring ring.xml --ranks 4 --to msccl-xml"
        subprocess.run([sys.executable, "-c", MAIN, *ring.split()], cwd=folder, check=True,
                       capture_output=True)  # fmt: skip
        return [start(case, folder) for case in STARTS]


def shown(frame: pl.DataFrame, width: int) -> Table:
    """Returns median and spread of each case, with the aims if the terminal is wide enough."""
    names = ["seconds", "spread", "rate", "MiB", *(["aim"] if width >= WITH_AIMS else [])]
    lines = []
    for (_, case, aim), runs in frame.group_by("bench", "case", "aim", maintain_order=True):
        of = "seconds" if runs["seconds"].is_not_null().all() else "rate"
        spread = runs[of].max() / runs[of].min() - 1  # type: ignore[operator]
        seconds, rate, peak = (runs[name].median() for name in ("seconds", "rate", "peak_mib"))
        cells = [str(case), "" if seconds is None else f"{seconds:.4g}", f"{spread:.0%}"]
        cells.append("" if rate is None else f"{rate:.4g} {runs['unit'][0]}")
        cells.append("" if peak is None else f"{peak:.0f}")
        lines.append([*cells, str(aim or "")][: 1 + len(names)])
    widths = [
        max(len(name), *(len(line[at]) for line in lines)) for at, name in enumerate(names, start=1)
    ]
    table = Table(title="one thread, medians; spread: slowest over fastest; MiB: peak memory",
                  title_justify="left", box=None, pad_edge=False, padding=(0, 1, 0, 0))  # fmt: skip
    left = width - sum(widths) - len(widths) - 1
    table.add_column("case", no_wrap=True)
    for name, wide in zip(names, widths, strict=True):
        table.add_column(name, justify="right", no_wrap=True, min_width=wide)
    for case, *cells in lines:
        table.add_row(shortened(case, left), *cells)
    return table


def shortened(name: str, width: int) -> str:
    """Returns a name of at most `width` characters without its middle: names differ at the end."""
    if len(name) <= width:
        return name
    end = (width - 1) // 2
    return f"{name[: width - 1 - end]}…{name[len(name) - end :]}"


def machine() -> str:
    """Returns processor, load, compiler and commit of the run."""
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
    """Runs the selected benchmarks and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help="parts of names of compiled cases")
    parser.add_argument("--save", type=Path, help="folder for the raw figures")
    options = parser.parse_args()
    console = Console()
    where = machine()
    console.print(where, markup=False)
    with console.status("measuring, which takes a few minutes"):
        only = options.parts == ["start"]
        frames = [] if only else [compiled(bench, options.parts) for bench in BENCHES]
        if only or not options.parts:
            frames += starts()
        if not options.parts:
            from traces import traces  # in the folder of this script, which tests do not search

            frames.append(pl.DataFrame(traces(), schema=COLUMNS, orient="row"))
    frame = pl.concat(frames)
    console.print(shown(frame, console.width))
    if options.save:
        options.save.mkdir(parents=True, exist_ok=True)
        frame.write_csv(options.save / "raw.csv")
        (options.save / "README.md").write_text(f"# {options.save.name}\n\n{where}\n", "utf-8")
        console.print(f"wrote {options.save / 'raw.csv'}", markup=False)


if __name__ == "__main__":
    main()
