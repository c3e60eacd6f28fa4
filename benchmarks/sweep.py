"""Measures the overhead of a sweep outside its simulations, with one and two workers.

Each line is a `tutti sweep` of 1,000 measurements in a separate process, from the start of the
interpreter to its exit. `outside` is the share of worker time outside simulations: start-up,
validation of 1,000 points, verification, submission, storing and display of results. `executing`
is the same share between the first submission and the last stored result. Requires as many idle
cores as workers. The benchmark has no pass criterion.
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

    from tutti.sweeps.executors import Crew
    from tutti.sweeps.worker import Item

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
    """Runs `tutti sweep` in the child process, and records the time of the execution."""
    from tutti.cli import main as tutti
    from tutti.sweeps import executors

    prepare = executors.prepare

    def prepare_and_watch(executor: str | Executor, address: str | None = None) -> None:
        prepare(executor, address)
        _watch(folder / "watch")

    executors.prepare = prepare_and_watch
    sys.argv = ["tutti", "sweep", str(folder / "sweep.toml"), "--workers", workers]
    sys.argv += ["--executor", executor]
    tutti()


def _watch(file: Path) -> None:
    """Records the seconds of the execution and of the core."""
    from tutti.sweeps.session import Session

    run = Session.run

    def watched(session: Session, crew: Crew, finished: Callable[[Item], object]) -> None:
        started = time.perf_counter()
        run(session, crew, finished)
        took = time.perf_counter() - started
        file.write_text(f"{took} {session.outcome.core_seconds}", "utf-8")

    Session.run = watched  # type: ignore[method-assign]


def measured(executor: str, workers: int, ranks: int) -> tuple[float, float, float]:
    """Returns the seconds of the process, of the execution, and of the core in all workers."""
    values = ", ".join(f'"{1_000 + n} ns"' for n in range(POINTS))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = SWEEP.format(folder=folder, ranks=ranks, values=values)
        (folder / "sweep.toml").write_text(text, "utf-8")
        command = [sys.executable, __file__, "--child", executor, str(workers), name]
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, text=True)
        total = time.perf_counter() - started
        took, core = (folder / "watch").read_text("utf-8").split()
    return total, float(took), float(core)


def main() -> None:
    """Runs the selected sweeps and prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[256, 512], help="of the rings")
    parser.add_argument("--executors", nargs="+", default=EXECUTORS, choices=EXECUTORS)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        executor, workers, folder = options.child
        sweep(executor, workers, Path(folder))
        return
    print("executor   workers  ranks  ms each  total s  outside   executing")
    for ranks in options.ranks:
        for executor in options.executors:
            for workers in (1, 2):
                total, took, core = measured(executor, workers, ranks)
                outside, executing = (1 - core / (time * workers) for time in (total, took))
                print(
                    f"{executor:<10} {workers:>7} {ranks:>6} {1_000 * core / POINTS:>8.2f} "
                    f"{total:>8.2f} {outside:>8.1%} {executing:>11.1%}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
