"""How much of a sweep's time goes into its simulations, and what a second worker is worth.

Each line is a `tutti sweep` of 1,000 measurements in a process of its own, from the start of the
interpreter to its end, results written. `outside` is the part of all workers' time that was not
spent in simulations: start-up of the interpreter and of the workers, reading and checking 1,000
points, proving the schedule, handing work over, keeping, writing and showing results. `once begun`
counts from the moment when the first work is handed over to the moment when the last is kept.
Needs as many idle cores as workers. Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from tutti.sweep.executors import Crew
    from tutti.sweep.worker import Item

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


def sweep(executor: str, workers: str, folder: Path) -> None:
    """What the child does: `tutti sweep`, with a stopwatch around its work."""
    from tutti.cli import main as tutti
    from tutti.sweep import executors

    prepare = executors.prepare

    def prepare_and_watch(executor: str | Executor, address: str | None = None) -> None:
        prepare(executor, address)
        _watch(folder / "watch")

    executors.prepare = prepare_and_watch
    sys.argv = ["tutti", "sweep", str(folder / "sweep.toml"), "--workers", workers]
    sys.argv += ["--executor", executor]
    tutti()


def _watch(file: Path) -> None:
    """Notes the seconds at work, and those in the core."""
    from tutti.sweep.session import Session

    run = Session.run

    def watched(session: Session, crew: Crew, finished: Callable[[Item], object]) -> None:
        started = time.perf_counter()
        run(session, crew, finished)
        took = time.perf_counter() - started
        file.write_text(f"{took} {session.outcome.core_seconds}", "utf-8")

    Session.run = watched  # type: ignore[method-assign]


def measured(executor: str, workers: int, ranks: int) -> tuple[float, float, float]:
    """Seconds of the whole process, of the work, and of the core in all workers together."""
    values = ", ".join(f'"{1_000 + n} ns"' for n in range(POINTS))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = SWEEP.format(folder=folder, ranks=ranks, values=values)
        (folder / "sweep.toml").write_text(text, "utf-8")
        command = [sys.executable, __file__, "--child", executor, str(workers), name]
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, text=True)
        whole = time.perf_counter() - started
        took, core = (folder / "watch").read_text("utf-8").split()
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
        sweep(executor, workers, Path(folder))
        return
    print("executor   workers  ranks  ms each  whole s  outside  once begun")
    for ranks in asked.ranks:
        for executor in asked.executors:
            for workers in (1, 2):
                whole, took, core = measured(executor, workers, ranks)
                outside, begun = (1 - core / (time * workers) for time in (whole, took))
                print(
                    f"{executor:<10} {workers:>7} {ranks:>6} {1_000 * core / POINTS:>8.2f} "
                    f"{whole:>8.2f} {outside:>8.1%} {begun:>11.1%}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
