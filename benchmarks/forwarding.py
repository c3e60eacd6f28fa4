"""Measures what `libtutti_mpi` adds to the calls that it forwards to the MPI library.

Each rank calls `MPI_Allreduce` (through the library) and `PMPI_Allreduce` (the MPI library alone)
in turns, in blocks, within one process; other functions likewise. Each line is a function: the
median time of the MPI library, and the median ratio of neighbouring blocks with its 95 % confidence
interval. The plan has rules for larger sizes of the same collectives, so that every call is looked
up.

`python benchmarks/forwarding.py --mpicc .venv/bin/mpicc build/mpich/bin/mpicc --ranks 2 4`. The
Fortran function is that of `mpi/tests/fortran_binding.c`, over Open MPI only. The benchmark has no
pass criterion.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

from tutti.mpi import CollectivePlan, Mpi, Rule, find_mpi
from tutti.mpi.launch import run_ranks
from tutti.mpi.library import built
from tutti.schedules.ir import schedule

HERE = Path(__file__).parent
BINDING = HERE.parent / "mpi" / "tests" / "fortran_binding.c"
LARGE = (1 << 20, (1 << 64) - 1)
ALGORITHMS = {
    "all_reduce": "ring",
    "broadcast": "binomial",
    "all_gather": "ring",
    "reduce_scatter": "ring",
}


def compiled(mpi: Mpi, folder: Path) -> Path:
    """Returns the program, linked to Fortran functions if those of the MPI library are covered."""
    program = folder / f"forwarding-{mpi.kind}"
    link: list[str] = []
    if mpi.kind == "openmpi":
        subprocess.run([mpi.mpicc, "-O2", "-shared", "-fPIC", BINDING, "-o",
                        folder / "libmpi_mpifh.so"], check=True)  # fmt: skip
        link = ["-Wl,--no-as-needed", f"-L{folder}", "-lmpi_mpifh", f"-Wl,-rpath,{folder}"]
    subprocess.run([mpi.mpicc, "-O2", HERE / "forwarding.c", "-o", program, *link, "-ldl", "-lm"],
                   check=True)  # fmt: skip
    return program


def plan(ranks: int, folder: Path) -> Path:
    rules = [
        Rule(name, ranks, schedule(by, ranks=ranks, collective=name), LARGE)
        for name, by in ALGORITHMS.items()
    ]
    return CollectivePlan(rules).write(folder / f"{ranks}.tutti")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpicc", nargs="+", required=True)
    parser.add_argument("--ranks", nargs="+", type=int, default=[2, 4])
    parser.add_argument("--blocks", type=int, default=400, help="per function and side")
    parser.add_argument("--calls", type=int, default=200, help="per block")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for mpicc in options.mpicc:
            mpi = find_mpi(mpicc)
            program = compiled(mpi, folder)
            for ranks in options.ranks:
                done = run_ranks(
                    mpi,
                    ranks,
                    [program, str(options.blocks), str(options.calls)],
                    env={"TUTTI_MPI_PLAN": str(plan(ranks, folder)), "TUTTI_MPI_REPORT": ""},
                    preload=[built(mpi).library],
                )
                print(f"{mpi}, {ranks} ranks\n{done.stdout}{done.stderr}", flush=True)


if __name__ == "__main__":
    main()
