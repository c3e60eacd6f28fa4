"""`tutti tune`: selects the fastest schedules, writes them for an MPI library, and checks them."""

from __future__ import annotations

from tutti.cli.grouped import grouped
from tutti.cli.tune_options import Measuring, TuningInput, Writing, tuning_of
from tutti.measured.tune import study


@grouped
def tune(request: TuningInput, measuring: Measuring, writing: Writing) -> None:
    """Find the fastest schedule for each size, and write it for the libraries that run it.

    Writes plan.tutti for libtutti_mpi, openmpi.rules for Open MPI 5, openmpi4.rules for 4.1 and
    openmpi6.json for 6 (5 and 6 with rules of han), mpich.json and mpich_device.json (MPICH's stock
    selection trees with the rules added). Each has an .env file with the variables that enable it;
    UCC has no other file.
    times.parquet contains all times, decisions.csv the decisions. With --by measurement or both,
    the algorithms of the MPI library here are timed, and rules are written only where they are
    faster than its default; rules for other libraries come from the model. If a library lacks the
    fastest schedule, the slowdown is printed. With --prove the collectives run with the files, and
    the messages and bytes of each pair of ranks are compared with those of the schedule; exit code
    3 if they differ, 1 if something could not be checked.

    \b
    Examples:
      tutti tune --ranks 4,6,8 --platform cray_xc30 -e 64K
      tutti tune all_reduce all_gather --ranks 2 --by measurement \\
        -b 64K -e 64K -a ring -n 3
      tutti tune --ranks 6 --platform cray_xc30 -b 768K -e 768K --for openmpi --prove
      tutti tune --ranks 3 --by both --platform cray_xc30 -b 12 -e 12 --for plan \\
        --prove -a ring -a recursive_multiplying:a3 -n 3 --each 1 \\
        --emulate 'pipelining_postal:alpha_p=2 ms,alpha_r=1 ms'
    """
    tuning = tuning_of(request, measuring, writing)
    written = study.tune(tuning, writing.to)
    if writing.prove and tuning.mpi is not None:
        study.prove(written, tuning.mpi, measuring.launcher_option or [])
