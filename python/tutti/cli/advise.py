"""`tutti advise`: algorithms for larger jobs, from measurements of a few nodes."""

from __future__ import annotations

from tutti.base.files.extras import check_extra
from tutti.base.files.mistakes import mistake
from tutti.cli.advise_options import AdviceOutput, LargerJob, MeasuredInput, request_of
from tutti.cli.grouped import grouped
from tutti.measured.advise.hardware import stated_ranks_per_node
from tutti.measured.advise.study import advise_from, read_named


@grouped
def advise(measured: MeasuredInput, job: LargerJob, output: AdviceOutput) -> None:
    """Choose algorithms for larger jobs from measurements of a few nodes.

    A model of the machine is calibrated on the measured collectives, and predicts each algorithm at
    larger rank counts. For each collective and rank count, the table lists ranges of sizes with the
    fastest algorithm, its time with the 90 % interval, the confidence (the probability that it is
    within 5 % of the fastest) and the runner-up. `gain` is how much longer the library's default
    would take, if it was measured. Rows that cannot be used are counted with the reason.

    With --out, writes advice.parquet and .csv (all predictions), decisions.csv, report.html and the
    rules of Open MPI or MPICH, with the gain of each, and plan.tutti for libtutti_mpi. Algorithms
    for which the library has no rule are named.

    \b
    Examples:
      tutti advise examples/22_advise/cluster.csv --ranks 64,256
      tutti advise examples/22_advise/cluster.csv --ranks 128 --algorithms library \\
        --collective all_reduce -b 1K -e 1M --out out/advise
    """
    check_extra("calibrate")
    if output.to is not None:
        check_extra("reports")
    if not measured.files and measured.manifest is None:
        raise mistake("no measurements", source="tutti advise", expected="FILE or --manifest FILE")
    request = request_of(measured, job)
    rows = read_named(
        measured.files or [], measured.algorithm or [], manifest=measured.manifest,
        allocations=measured.allocations,
        ranks=measured.measured_ranks,
        ranks_per_node=job.ranks_per_node or stated_ranks_per_node(measured.platform),
        collective=job.collective[0] if job.collective and len(job.collective) == 1 else None,
    )  # fmt: skip
    advise_from(rows, request, output.to, output.csel_base, extend=output.extend)
