"""How much of a sweep's time goes into its simulations, and what a second worker is worth.

Each line is a sweep of 1,000 measurements in a process of its own, from its start to its end,
results written. `outside` is the part of all workers' time that was not spent in simulations:
start-up, reading and checking 1,000 points, handing work over, keeping and writing results. Needs
as many idle cores as workers. Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

POINTS = 1_000
EXECUTORS = ("processes", "dask")

SWEEP = """
output = "{folder}/out"
[experiment]
platform = "cray_xc30"
collective = "all_reduce"
algorithms = ["ring"]
ranks = {ranks}
sizes = "8 B"
[sweep.grid]
"platform.models.minimum.alpha_p" = [{values}]
"""


def sweep(executor: str, workers: int, folder: Path) -> None:
    """What the child does: the steps of `tutti sweep`; prints seconds at work and in the core."""
    from tutti.config import load_sweep
    from tutti.results import write
    from tutti.sweep.executors import crew
    from tutti.sweep.plan import plan_sweep
    from tutti.sweep.session import Session

    read = load_sweep(folder / "sweep.toml")
    with crew(executor, workers) as at_work:
        assert at_work is not None
        session = Session(plan_sweep(read), read.output / "cache")
        started = time.perf_counter()
        session.run(at_work, lambda _: None)
        took = time.perf_counter() - started
    write(session.frame(), read.output / "results.parquet")
    print(took, session.outcome.core_seconds)


def measured(executor: str, workers: int, ranks: int) -> tuple[float, float, float]:
    """Seconds of the whole process, of the work, and of the core in all workers together."""
    values = ", ".join(f'"{1_000 + n} ns"' for n in range(POINTS))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = SWEEP.format(folder=folder, ranks=ranks, values=values)
        (folder / "sweep.toml").write_text(text, "utf-8")
        command = [sys.executable, __file__, "--child", executor, str(workers), name]
        started = time.perf_counter()
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        whole = time.perf_counter() - started
    took, core = done.stdout.split()
    return whole, float(took), float(core)


def main() -> None:
    """Runs what is asked for and prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[256, 512], help="of the rings")
    parser.add_argument("--executors", nargs="+", default=EXECUTORS, choices=EXECUTORS)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        executor, workers, folder = asked.child
        sweep(executor, int(workers), Path(folder))
        return
    print("executor   workers  ms each  whole s  at work s  outside")
    for ranks in asked.ranks:
        for executor in asked.executors:
            for workers in (1, 2):
                whole, took, core = measured(executor, workers, ranks)
                outside = 1 - core / (whole * workers)
                print(
                    f"{executor:<10} {workers:>7} {1_000 * core / POINTS:>8.1f} {whole:>8.2f} "
                    f"{took:>10.2f} {outside:>8.1%}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
